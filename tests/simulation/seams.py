"""Where the simulator takes the place of threads, time, RocksDB and Kafka's clients.

The shell takes them by the name of a module, each time anew: threads and time of `host/machine.py`,
clients of `kafka/librdkafka.py`, and the few adapters of belfry's own.  So these names of modules
are all that is set, and `tests/architecture/test_doors.py` checks that no room goes past them.  Of
constants one is less: the number of fillers; those of day files are smaller (`day_objects`); and
engines may move key groups, which no setting lets them do so far.  Some worlds keep fewer manifests
(`slotted`), in some no step has time left (`HURRIED`), and in some steps have little room
(`crowded`).  Workers find keys of payloads in their environment.  Nothing else is replaced:
take-over, loop, transactions, outputs, readers and the pure rooms run as shipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from belfry.client import redrive, redrive_reading
from belfry.host import machine, object_store, rocks
from belfry.kafka import (
    broker_features,
    client_loop,
    fetcher,
    lacking,
    librdkafka,
    offset_client,
    open_transactions,
    row_signing,
)
from belfry.partitions import steps
from belfry.process import self_check
from belfry.store import recovery, row_judge
from belfry.store.layout import keys
from belfry.store.ordered_map import Damaged
from belfry.transactions import brokers
from tests.simulation import (
    admin,
    beside,
    clients,
    consumer_groups,
    day_objects,
    delivering,
    direct,
    disk,
    fetching,
    offsets,
    primitives,
    reading_back,
)
from tests.simulation.payload_keys import VARIABLES

# Records that say nothing slow the stage down: there are fewer, for writers and readers alike.
FILLERS: Final = 32
# Module, name, and what stands there instead.
DOORS: Final[list[tuple[Any, str, Any]]] = [
    (machine, "Event", primitives.SimEvent),
    (machine, "Thread", primitives.SimThread),
    (machine, "Lock", primitives.SimSemaphore),
    (machine, "RLock", primitives.SimRLock),
    (machine, "Semaphore", primitives.SimSemaphore),
    (machine, "BoundedSemaphore", primitives.SimSemaphore),
    (machine, "SimpleQueue", primitives.SimSimpleQueue),
    (machine, "Queue", primitives.SimSimpleQueue),
    (machine, "monotonic", primitives.monotonic),
    (machine, "sleep", primitives.sleep),
    (redrive, "headers_of", clients.headers_of),
    (redrive, "monotonic", primitives.monotonic),
    (redrive_reading, "headers_of", clients.headers_of),
    (redrive_reading, "monotonic", primitives.monotonic),
    (redrive, "sleep", primitives.sleep),
    (librdkafka, "Producer", beside.producer),
    (librdkafka, "Consumer", consumer_groups.consumer),
    (librdkafka, "Message", clients.SimMessage),
    (librdkafka, "AdminClient", admin.SimAdmin),
    (offset_client, "OffsetClient", offsets.SimOffsets),
    (fetcher, "Fetcher", fetching.SimFetcher),
    (open_transactions, "look_up", admin.look_up),
    (broker_features, "ask_brokers", admin.ask_brokers),
    (lacking, "missing_rights", admin.missing_rights),
    (brokers, "BrokerConnections", direct.SimCluster),
    (client_loop, "ClientLoop", direct.SimClientLoop),
    (rocks, "RocksMap", disk.SimRocks),
    (rocks, "wipe", disk.wipe),
    (rocks, "move", disk.move),
    (self_check, "DataDisk", disk.SimRoom),
    (object_store, "opened", day_objects.opened),
    (row_judge, "NEAR", FILLERS),
    (row_signing, "NEAR", FILLERS),
    (row_signing, "_FILLERS", row_signing._FILLERS[:FILLERS]),
]

# The simulator's clock stands still within a step, so else its time would never be up.
HURRIED: Final[list[tuple[Any, str, Any]]] = [
    (steps, "MOST_FIRING_MS", -1),
    (steps, "MOST_TAKING_MS", -1),
]


@contextmanager
def slotted(slots: int) -> Iterator[None]:
    """Within it a changelog keeps so few manifests that their slots are soon used again; 0: all."""
    shipped = keys.MANIFEST_SLOTS, recovery.SKIPPED
    if slots:
        _keep(slots, slots + 1)
    try:
        yield
    finally:
        _keep(*shipped)


def _keep(slots: int, skipped: int) -> None:
    module: Any = keys
    module.MANIFEST_SLOTS = slots
    module = recovery
    module.SKIPPED = skipped


@contextmanager
def replaced(more: Sequence[tuple[Any, str, Any]] = ()) -> Iterator[None]:
    """Within it the shell plays on the simulator's stage; `more` doors are those of commands."""
    disk.SimRocks.damaged = Damaged
    doors = [*DOORS, *day_objects.SHORT, *delivering.DOORS, *reading_back.DOORS, *more]
    try:
        with stand_in(doors):
            os.environ.update(VARIABLES)
            yield
    finally:
        for name in VARIABLES:
            os.environ.pop(name, None)


@contextmanager
def stand_in(doors: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Within it these names of modules are what stands in for them."""
    shipped = [(module, name, getattr(module, name)) for module, name, _ in doors]
    for module, name, stand_in_ in doors:
        setattr(module, name, stand_in_)
    try:
        yield
    finally:
        for module, name, value in shipped:
            setattr(module, name, value)
