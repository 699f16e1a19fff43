"""Requests that were carried ahead of the transaction that sent them on, at a take-over.

A side that takes over without its source has each partition as of its own last transaction, and
inputs that go further (`cuts.py`). A partition sends records again that it had sent behind that
transaction, for here they have not been sent yet. So the copies in the inputs are left out:

    carried   partition 0 up to its transaction 6
              in the input of 1: a, sent by 0's transaction 6; b, by its 7; and c, of a producer
    here      partition 1 reads a and c; and b, when partition 0 has sent it again

Requests that were not judged are written once more without these, in the transaction that makes the
partition this side's own, and are read from there on. Partitions become active one after the other,
so the first ones may have sent something to the last ones by then: that was not carried, and stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from confluent_kafka import Message

from belfry.kafka.partition_log import PartitionLog
from belfry.kafka.record_headers import headers_of
from belfry.mirror.carried import carried_from
from belfry.mirror.marks import REQUESTS
from belfry.mirror.sides import Side
from belfry.recovery.changelog_writer import ChangelogWriter
from belfry.wire.origins import believed_origin
from belfry.wire.record import Headers, SentBy, sent_by_of
from belfry.wire.worker_keys import Keys, Purpose

READ: Final = 5_000


def sender_of(
    message: Message, headers: Headers | None, place: tuple[str, int], origin_keys: Keys
) -> SentBy | None:
    """The transaction that sent a request on, where one of the workers says so; else None."""
    by = sent_by_of(headers)
    if by is None:
        return None
    at_ms = message.timestamp()[1]
    record = message.offset() or 0, at_ms, message.key(), message.value(), headers
    return by if believed_origin(origin_keys, record, *place).rerouted else None


def left_out(
    writer: ChangelogWriter, target: Side, partition: int, span: tuple[int, int],
    numbers: Mapping[int, int],
) -> int:  # fmt: skip
    """Within a transaction, write what is to be read of these offsets once more, without what was
    carried ahead of its sender; the offset from which on requests are read then.

    It writes no record if there is none to leave out. `numbers` are the transactions up to which
    each partition was carried.
    """
    position, end = span
    if not any(early for _, _, early in _requests(target, partition, span, numbers)):
        return position
    topic = target.settings.topic(REQUESTS)
    for message, headers, early in _requests(target, partition, span, numbers):
        if not early:
            more: dict[str, Any] = {"headers": headers or [], "timestamp": message.timestamp()[1]}
            writer.beside(topic, message.key(), message.value(), **more)
    return end


def _requests(
    target: Side, partition: int, span: tuple[int, int], numbers: Mapping[int, int]
) -> Iterator[tuple[Message, Headers | None, bool]]:
    """Requests, their headers, and whether each is there ahead of the transaction that sent it."""
    place = target.settings.topic(REQUESTS), partition
    origin_keys = target.settings.worker_keys(Purpose.ORIGIN)
    with closing(PartitionLog(target.settings.kafka_properties(), *place)) as log:
        log.seek(span[0])
        for messages in log.read_until(span[1], READ):
            for message, headers in zip(messages, headers_of(messages), strict=True):
                if (message.offset() or 0) >= span[1]:
                    # An active partition sent it since: it is read where it lies.
                    return
                carried = carried_from(headers) is not None
                by = sender_of(message, headers, place, origin_keys) if carried else None
                early = by is not None and by.number > numbers.get(by.partition, 0)
                yield message, headers, early
