"""Which of the two writers makes the producers of partitions, by the worker's settings.

The loop of belfry's own writer is made once and shared by all producers; it has no thread before
the first of them enters it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from belfry.kafka import client_loop
from belfry.kafka.step_producer import ProducerSurroundings, StepProducer
from belfry.kafka.transactions import PartitionProducer
from belfry.settings import Settings
from belfry.transactions.producer import DirectProducer

MakeProducer = Callable[[dict[str, Any], int, ProducerSurroundings], StepProducer]


def producers(settings: Settings) -> MakeProducer:
    """The function that makes a partition's producer, by the writer that the settings choose."""
    if settings.transaction_writer == "direct":
        loop = client_loop.ClientLoop("transaction-writer")
        return partial(DirectProducer, loop=loop, in_turn=settings.transactional_ids)
    return PartitionProducer
