"""The usage of tenants, read from the metering topic: for `belfry tenant usage`, and for HTTP.

Records lie in the order in which hours were over, so a look begins where those of its first hour
may begin, by their timestamps, and goes on to the end of the topic: an hour that no worker could
tell of in time is told later.  Records of other tenants are passed over unread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from time import monotonic
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from belfry.client.errors import BelfryError
from belfry.client.faults import permanent
from belfry.client.kafka import NO_GROUP, Cluster
from belfry.client.watermarks import offsets_since
from belfry.wire.metering import Usage, decode_usage, summed

AT_ONCE: Final = 1_000
POLL_S: Final = 0.5
REQUEST_S: Final = 10.0


class TooMuchUsage(BelfryError):
    """More records lie in the span than may be looked at; `records` is how many."""

    def __init__(self, records: int, most: int) -> None:
        super().__init__(f"{records} records lie there, and {most} are looked at")
        self.records = records


class UsageSpan(NamedTuple):
    """Which periods are asked for: a tenant's, or all tenants'; from an instant until another.

    A period counts that begins at `since_ms` or later, and ends by `until_ms`.
    """

    tenant: str | None
    since_ms: int
    until_ms: int

    def has(self, usage: Usage) -> bool:
        """Whether a period is one of these."""
        mine = self.tenant in (None, usage.tenant)
        return mine and self.since_ms <= usage.from_ms and usage.until_ms <= self.until_ms


class UsageLimits(NamedTuple):
    """How much may be looked at: records of all tenants, and seconds; None for any number."""

    records: int | None = None
    seconds: float | None = None


ALL: Final = UsageLimits()


def read_usage(
    cluster: Cluster, topic: str, asked: UsageSpan, limits: UsageLimits = ALL
) -> list[Usage]:
    """Usage records, one for each tenant and period, in their order.

    Raises:
        MissingTopic: usage is not metered.
        TooMuchUsage: the topic has more records than may be looked at.
        Unavailable: Kafka does not answer, or not in time.
    """
    with closing(cluster.consumer(NO_GROUP, tells_ends=True)) as consumer:
        ends = cluster.ends(consumer, topic)
        wanted = [TopicPartition(topic, each.partition, max(0, asked.since_ms)) for each in ends]
        try:
            found = offsets_since(consumer, wanted, REQUEST_S)
        except KafkaException as error:
            raise cluster.unavailable(error.args[0], topic) from None
        end = {each.partition: each.offset for each in ends}
        # If no record is as new as that, the answer is the topic's end, or none.
        begin = [each for each in found if 0 <= each.offset < end[each.partition]]
        records = sum(end[each.partition] - each.offset for each in begin)
        if limits.records is not None and records > limits.records:
            raise TooMuchUsage(records, limits.records)
        consumer.assign(begin)
        left = {each.partition for each in begin}
        return summed(_told(cluster, consumer, left, (asked, limits)))


def _told(
    cluster: Cluster, consumer: Consumer, left: set[int], how: tuple[UsageSpan, UsageLimits]
) -> Iterator[Usage]:
    """The selected records of the partitions that are left, up to their ends."""
    asked, limits = how
    key = None if asked.tenant is None else asked.tenant.encode()
    began_s = monotonic()
    while left:
        if limits.seconds is not None and monotonic() - began_s > limits.seconds:
            timed_out = KafkaError(KafkaError._TIMED_OUT)
            raise cluster.unavailable(timed_out)
        for message in consumer.consume(AT_ONCE, POLL_S):
            error = message.error()
            if error is None:
                usage = decode_usage(message.value()) if key in (None, message.key()) else None
                if usage is not None and asked.has(usage):
                    yield usage
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition() or 0)
            elif permanent(error):
                raise cluster.unavailable(error, message.topic() or "")
