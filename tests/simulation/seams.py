"""Where the simulator takes the place of threads, clocks, RocksDB and Kafka's clients.

The shell imports these by name, so every such name in its modules is replaced, found by identity:
a module that joins the shell later is covered without being named here.  Of constants one is less:
the number of fillers.  Nothing else is replaced: take-over, loop, transactions, outputs, readers
and the pure rooms run as shipped.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import confluent_kafka
from confluent_kafka.admin import AdminClient

import belfry.assembly  # noqa: F401  # with it comes the whole shell
from belfry.host import rocks
from belfry.kafka import broker_features, fetcher, lacking, open_transactions, row_signing
from belfry.store import row_judge
from belfry.store.ordered_map import Damaged
from belfry.transactions import brokers, loop
from tests.simulation import admin, clients, direct, disk, fetching, primitives, readers

REPLACED: Final[list[tuple[Any, Any]]] = [
    (threading.Event, primitives.SimEvent),
    (threading.Thread, primitives.SimThread),
    (threading.Lock, primitives.SimSemaphore),
    (threading.RLock, primitives.SimRLock),
    (threading.Semaphore, primitives.SimSemaphore),
    (threading.BoundedSemaphore, primitives.SimSemaphore),
    (queue.SimpleQueue, primitives.SimSimpleQueue),
    (queue.Queue, primitives.SimSimpleQueue),
    (time.monotonic, primitives.monotonic),
    (time.sleep, primitives.sleep),
    (confluent_kafka.Producer, clients.SimProducer),
    (confluent_kafka.Consumer, readers.SimConsumer),
    (confluent_kafka.Message, clients.SimMessage),
    (AdminClient, admin.SimAdmin),
    (fetcher.Fetcher, fetching.SimFetcher),
    (open_transactions.open_transactions, admin.open_transactions),
    (broker_features.ask_brokers, admin.ask_brokers),
    (lacking.lacking, admin.nothing_lacks),
    (brokers.BrokerConnections, direct.SimCluster),
    (loop.WriterLoop, direct.SimWriterLoop),
    (rocks.RocksMap, disk.SimRocks),
    (rocks.wipe, disk.wipe),
    (rocks.move, disk.move),
]
ROOMS: Final = (
    "belfry.group.",
    "belfry.host.",
    "belfry.kafka.",
    "belfry.outputs.",
    "belfry.partitions.",
    "belfry.policies.",
    "belfry.process.",
    "belfry.recovery.",
    "belfry.transactions.",
    "belfry.assembly",
)
# Records that say nothing slow the stage down: there are fewer, for writers and readers alike.
FILLERS: Final = 32
# Faust lives on an event loop of its own; the simulator has its own group.
SPARED: Final = ("belfry.group.membership", "belfry.process.worker")


@contextmanager
def replaced() -> Iterator[None]:
    """Within it the shell plays on the simulator's stage."""
    disk.SimRocks.damaged = Damaged
    before: list[tuple[Any, str, Any]] = []
    for name, module in sorted(sys.modules.items()):
        if name.startswith(ROOMS) and name not in SPARED:
            for attribute, value in list(vars(module).items()):
                for original, stand_in in REPLACED:
                    if value is original and module is not rocks:
                        before.append((module, attribute, value))
                        setattr(module, attribute, stand_in)
    for module, attribute, fewer in (
        (row_judge, "NEAR", FILLERS),
        (row_signing, "NEAR", FILLERS),
        (row_signing, "_FILLERS", row_signing._FILLERS[:FILLERS]),
    ):
        before.append((module, attribute, getattr(module, attribute)))
        setattr(module, attribute, fewer)
    try:
        yield
    finally:
        for module, attribute, value in before:
            setattr(module, attribute, value)
