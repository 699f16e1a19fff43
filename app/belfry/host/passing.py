"""The way by which the records of a reading thread pass through an agent of its worker.

    read ─► pass it through ─► … the agent passes it on … ─► use it

The thread that reads a topic waits until its batch has come through, and then uses it: so no record
is read ahead of an agent that is slow or gone.  It stops waiting when it is asked to stop; then its
batch is dropped, and its successor reads it again.  Each batch is of one partition.

A process that only delivers has no agents: there, a batch is used `at_once`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from confluent_kafka import Message

from belfry.host import machine

# Topic, partition, offset of the first record, and the event that asks the thread to stop; returns
# whether the batch has come through.
PassThrough = Callable[[str, int, int, machine.Event], bool]


def at_once(_topic: str, _partition: int, _offset: int, _stopping: machine.Event) -> bool:
    """The way without an agent: a batch always comes through."""
    return True


def all_pass(
    through: PassThrough, topic: str, messages: Sequence[Message], stopping: machine.Event
) -> bool:
    """Whether a topic's records have come through, as one batch for each partition of them."""
    begins: dict[int, int] = {}
    for each in messages:
        if each.error() is None:
            begins.setdefault(each.partition() or 0, each.offset() or 0)
    return all(through(topic, place, offset, stopping) for place, offset in begins.items())


class Streams(NamedTuple):
    """The agents of those streams that partitions share."""

    policies: PassThrough = at_once
    tenant_inputs: PassThrough = at_once
