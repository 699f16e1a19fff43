"""How a thread has what it reads pass through an agent of its worker.

    read ─► pass it through ─► … the agent passes it on … ─► use it

The thread that reads a topic waits until its batch has come through, and then uses it: so nothing
is read ahead of an agent that is slow or gone.  It waits no longer once it is asked to stop; what
it has read is then dropped, and read again by its successor.  Each batch is of one partition.

A process that only delivers has no agents: there, what was read is used `at_once`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from confluent_kafka import Message

from belfry.host import machine

# Topic, partition, offset of the first record, and what asks the thread to stop; whether the batch
# has come through.
PassThrough = Callable[[str, int, int, machine.Event], bool]


def at_once(_topic: str, _partition: int, _offset: int, _stopping: machine.Event) -> bool:
    """Where there is no agent: a batch has always come through."""
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
    """What the streams pass through that partitions share."""

    policies: PassThrough = at_once
    tenant_inputs: PassThrough = at_once
