"""Schedules that were cancelled since an instant, as far as the lifecycle topic tells.

It tells of cancels whose request had an id (HTTP, the command line and the client give each one),
and of all cancels of tenants whose level is not ``FAILURES``; and for as long as it keeps them.

    ACCEPTED   CANCELLED                           cancelled
    ACCEPTED   CANCELLED   ACCEPTED                it waits again: not in the result
    ACCEPTED   CANCELLED   RESUMED                 the same, if the topic lacks the second ACCEPTED
"""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from belfry.client.decoding import Decoder
from belfry.client.kafka import Cluster, headers_of
from belfry.client.watermarks import offsets_since, watermarks
from belfry.schedules.outcomes import Outcome

BATCH: Final = 10_000
POLL_S: Final = 0.2
TIMEOUT_S: Final = 30.0

# Outcomes of pending schedules only: the topic may lack the ACCEPTED of another generation.
_WAITS: Final = frozenset({"ACCEPTED", "PAUSED", "RESUMED", "TRIGGERED"})
# By tenant and schedule id, when (epoch ms).
Cancelled = dict[tuple[str, str], int]


def cancelled_since(
    cluster: Cluster, topic: str, group: str, decoder: Decoder, since_ms: int
) -> Cancelled:
    """Schedules that were told of as cancelled since an instant, and not as waiting after that.

    `since_ms` is in epoch ms and is compared with the timestamps of records. All partitions are
    read to the ends that they have now, one after the other; the caller blocks for as long. Raises
    `Unavailable` where brokers do not answer.
    """
    consumer = cluster.consumer(group, from_beginning=True, tells_ends=True)
    found: Cancelled = {}
    try:
        for partition in cluster.partitions(consumer, topic):
            _read(consumer, TopicPartition(topic, partition, since_ms), decoder, found)
    except KafkaException as error:
        raise cluster.unavailable(error.args[0], topic) from None
    finally:
        consumer.close()
    return found


def note(found: Cancelled, record: dict[str, Any]) -> None:
    """Keep up with one more outcome of a schedule; those of one schedule come in their order."""
    name = record["tenant"], record["schedule_id"]
    if record["outcome"] == Outcome.CANCELLED:
        found[name] = record["at"]
    elif record["outcome"] in _WAITS:
        found.pop(name, None)


def _read(consumer: Consumer, since: TopicPartition, decoder: Decoder, found: Cancelled) -> None:
    """Read one partition from the first record of that time on to its present end."""
    (start,) = offsets_since(consumer, [since], TIMEOUT_S)
    if start.offset < 0:
        # The topic has no record since then.
        return
    _, end = watermarks(consumer, since, TIMEOUT_S)
    consumer.assign([start])
    reached = start.offset
    while reached < end:
        for message in consumer.consume(BATCH, POLL_S):
            reached = max(reached, _take(message, decoder, found))


def _take(message: Message, decoder: Decoder, found: Cancelled) -> int:
    """Note the outcome in a record; returns the offset to be read next."""
    error, offset = message.error(), message.offset() or 0
    if error is not None:
        if error.code() == KafkaError._PARTITION_EOF:
            return offset
        if error.fatal() or not error.retriable():
            raise KafkaException(error)
        return 0
    value = message.value()
    if value is not None:
        record = decoder.record(value, headers_of(message))
        if record is not None:
            note(found, record)
    return offset + 1
