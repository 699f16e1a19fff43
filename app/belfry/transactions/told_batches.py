"""Reported outcomes as records of batches: all those of a step, in one loop.

Most of them say that a plain request with an id was accepted (`wire/accepted.py`), and such a
record is joined from its own parts:

    length number │ key │ value │ 1 header: belfry-generation │ its digits

Any other outcome is encoded field by field. All keep the order in which they were reported, and
outcomes of one schedule share a key and so a partition, where they are in order too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from belfry.kafka.step_records import key_of, told_record
from belfry.schedules.identity import generation_of
from belfry.transactions.batches import StepBatches
from belfry.transactions.joined_batch import LENGTH_BYTES, JoinedBatch
from belfry.transactions.record_bytes import (
    LOOKED_UP,
    NO_ATTRIBUTES,
    SMALL,
    numbered_anew,
    record_body,
    sized,
    varint,
)
from belfry.wire.accepted import Told, accepted_values
from belfry.wire.lifecycle import GENERATION

# One header, and its name.
_GENERATION: Final = varint(1) + sized(GENERATION.encode())


def add_told(
    step: StepBatches,
    told: Sequence[Told],
    head: bytes,
    topic: str,
    partitions: int,
    partition_of: Callable[[bytes, int], int],
) -> None:
    """Put outcomes behind the records that the partitions of their topic already get.

    `head` is the frame of their values; `partition_of` gives the partition of a key.
    """
    small, join = SMALL, b"".join
    batches: dict[int, JoinedBatch] = {}
    event: Any
    for event, value in zip(told, accepted_values(head, told), strict=True):
        key = key_of(event) if value is None else event[0]
        partition = partition_of(key, partitions)
        batch = batches.get(partition)
        if batch is None:
            batch = batches[partition] = step.joined((topic, partition))
        number = batch.count
        if value is not None and number + len(key) + len(value) < LOOKED_UP:
            generation = b"%d" % generation_of(event[3])
            body = join(
                (NO_ATTRIBUTES, small[number], small[len(key)], key, small[len(value)], value,
                 _GENERATION, small[len(generation)], generation)
            )  # fmt: skip
        else:
            body = record_body(number, *told_record(head, event))
        size = len(body)
        if size + LENGTH_BYTES > batch.room and number:
            batch = batches[partition] = step.joined_anew((topic, partition))
            batch.put_first(numbered_anew(body))
            continue
        batch.parts += (small[size] if size < LOOKED_UP else varint(size), body)
        batch.room -= size + LENGTH_BYTES
        batch.count = number + 1
