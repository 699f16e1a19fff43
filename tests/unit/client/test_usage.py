"""Usage read from the metering topic: from its first hour to the end, a tenant's alone."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster
from belfry.client.usage import TooMuchUsage, UsageLimits, UsageSpan, read_usage
from belfry.wire.metering import Usage, encode_usage

HOUR = 3_600_000
TOPIC = "belfry.metering"


class Message:
    """A record, or an end of a partition."""

    def __init__(self, partition: int, value: bytes | None = None, key: bytes = b"") -> None:
        self._partition, self._value, self._key = partition, value, key

    def error(self) -> Any:
        return None if self._value is not None else KafkaError(KafkaError._PARTITION_EOF)

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes:
        return self._key

    def partition(self) -> int:
        return self._partition


class Topic(Cluster):
    """Two partitions of records, each written when its hour was over."""

    def __init__(self, *parts: list[Usage]) -> None:
        super().__init__("127.0.0.1:1", {})
        self.parts = parts
        self.read = 0
        self.silent = False
        self._assigned: list[TopicPartition] = []

    def consumer(self, *_: Any, **__: Any) -> Any:
        return self

    def close(self) -> None:
        """Nothing is open."""

    def ends(self, *_: Any) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, n, len(part)) for n, part in enumerate(self.parts)]

    def offsets_for_times(self, asked: list[TopicPartition], **_: Any) -> list[TopicPartition]:
        def first(place: TopicPartition) -> int:
            told = [each.until_ms for each in self.parts[place.partition]]
            return next((n for n, at in enumerate(told) if at >= place.offset), -1)

        return [TopicPartition(TOPIC, each.partition, first(each)) for each in asked]

    def assign(self, begin: list[TopicPartition]) -> None:
        self._assigned = begin

    def consume(self, *_: Any) -> list[Any]:
        if self.silent:
            return []
        found: list[Message] = []
        for each in self._assigned:
            records = self.parts[each.partition][each.offset :]
            self.read += len(records)
            found += [
                Message(each.partition, encode_usage(used), used.tenant.encode())
                for used in records
            ]
            found.append(Message(each.partition))
        return found


def used(hour: int, tenant: str = "a", **counts: int) -> Usage:
    given: dict[str, Any] = {"fired": 1, **counts}
    return Usage(tenant=tenant, from_ms=hour * HOUR, until_ms=(hour + 1) * HOUR, **given)


@pytest.fixture
def topic() -> Topic:
    return Topic(
        [used(1), used(2), used(2, "b"), used(3), used(2, accepted=5)],
        [used(2, fired=4), used(3, fired=4)],
    )


def test_records_of_all_partitions_add_up(topic: Topic) -> None:
    found = read_usage(topic, TOPIC, UsageSpan("a", 2 * HOUR, 4 * HOUR))
    assert found == [used(2, fired=6, accepted=5), used(3, fired=5)]


def test_a_span_has_whole_periods_alone(topic: Topic) -> None:
    found = read_usage(topic, TOPIC, UsageSpan("a", HOUR + 1, 4 * HOUR - 1))
    assert [each.from_ms // HOUR for each in found] == [2]


def test_all_tenants_may_be_asked_for(topic: Topic) -> None:
    found = read_usage(topic, TOPIC, UsageSpan(None, 2 * HOUR, 3 * HOUR))
    assert [each.tenant for each in found] == ["a", "b"]


def test_reading_begins_at_the_first_hour(topic: Topic) -> None:
    read_usage(topic, TOPIC, UsageSpan("a", 3 * HOUR, 9 * HOUR))
    # What was over by then lies before it, but for what was told late.
    assert topic.read == 6


def test_more_than_may_be_looked_at_is_refused_unread(topic: Topic) -> None:
    asked = UsageSpan("a", 0, 9 * HOUR)
    with pytest.raises(TooMuchUsage) as refused:
        read_usage(topic, TOPIC, asked, UsageLimits(6))
    assert (refused.value.records, topic.read) == (7, 0)
    assert len(read_usage(topic, TOPIC, asked, UsageLimits(7))) == 3


def test_a_topic_that_does_not_come_is_given_up(topic: Topic) -> None:
    topic.silent = True
    with pytest.raises(Unavailable):
        read_usage(topic, TOPIC, UsageSpan("a", 0, 9 * HOUR), UsageLimits(None, 0.05))


def test_nothing_as_new_as_that_is_nothing(topic: Topic) -> None:
    assert read_usage(topic, TOPIC, UsageSpan("a", 90 * HOUR, 99 * HOUR)) == []
