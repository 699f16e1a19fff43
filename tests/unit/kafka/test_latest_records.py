"""Looks at the end of a topic: over consumers that stay connected, and of what is new alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from belfry.kafka import latest_records, librdkafka
from belfry.kafka.latest_records import LatestRecords
from belfry.kafka.tail_readers import MOST_IDLE, TailReaders


class Cluster:
    """A topic of so many partitions: first offsets and ends, what was read, who is connected."""

    def __init__(self) -> None:
        self.bounds = {0: (0, 5), 1: (0, 0)}
        self.read: list[tuple[int, int]] = []
        self.made = self.closed = 0
        self.refuses = 0


class Consumer:
    """A consumer of it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._at: dict[int, int] = {}
        cluster.made += 1

    def list_topics(self, topic: str, _timeout: float) -> Any:
        found = SimpleNamespace(error=None, partitions=dict.fromkeys(self._cluster.bounds))
        return SimpleNamespace(topics={topic: found})

    def get_watermark_offsets(self, place: TopicPartition, *_: Any, **__: Any) -> Any:
        if self._cluster.refuses:
            self._cluster.refuses -= 1
            return None
        return self._cluster.bounds[place.partition]

    def assign(self, places: list[TopicPartition]) -> None:
        self._at = {each.partition: each.offset for each in places}

    def unassign(self) -> None:
        self._at = {}

    def consume(self, *_: Any) -> list[Any]:
        found: list[Any] = []
        for partition, at in self._at.items():
            end = self._cluster.bounds[partition][1]
            self._cluster.read += [(partition, each) for each in range(at, end)]
            found += [record(partition, each) for each in range(at, end)]
            self._at[partition] = end
        return found

    def close(self) -> None:
        self._cluster.closed += 1


def record(partition: int, offset: int, error: KafkaError | None = None) -> Any:
    return SimpleNamespace(partition=lambda: partition, offset=lambda: offset, error=lambda: error)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    monkeypatch.setattr(librdkafka, "Consumer", lambda _properties: Consumer(cluster))
    return cluster


def offset_of() -> Any:
    def short(message: Message) -> int:
        return message.offset() or 0

    return short


def latest(most: int = 10) -> LatestRecords[int]:
    return LatestRecords(TailReaders({}), "t", most, offset_of)


def values(found: LatestRecords[int]) -> list[tuple[int, int]]:
    return [(each.partition, each.value) for each in found.look().records]


def test_a_look_reads_what_is_new_and_nothing_else(cluster: Cluster) -> None:
    found = latest()
    assert values(found) == [(0, each) for each in range(5)]
    cluster.read.clear()
    assert values(found) == [(0, each) for each in range(5)]
    assert cluster.read == []
    cluster.bounds = {0: (0, 7), 1: (0, 2)}
    assert values(found) == [*((0, each) for each in range(7)), (1, 0), (1, 1)]
    assert cluster.read == [(0, 5), (0, 6), (1, 0), (1, 1)]
    assert cluster.made == 1


def test_what_leaves_the_stretch_is_forgotten_and_the_cut_is_told(cluster: Cluster) -> None:
    found = latest(most=3)
    look = found.look()
    assert ([each.value for each in look.records], look.cut) == ([2, 3, 4], frozenset({0}))
    assert look.examined == 3
    cluster.bounds[0] = (0, 6)
    assert values(found) == [(0, 3), (0, 4), (0, 5)]
    # More has come than the stretch holds, and what lay between was never read.
    cluster.bounds[0] = (40, 50)
    assert values(found) == [(0, 47), (0, 48), (0, 49)]


def test_a_topic_that_begins_anew_is_read_anew(cluster: Cluster) -> None:
    found = latest()
    assert len(values(found)) == 5
    cluster.bounds[0] = (0, 2)
    assert values(found) == [(0, 0), (0, 1)]


def test_what_is_remembered_of_many_partitions_is_bounded(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latest_records, "MOST_IN_ALL", 8)
    cluster.bounds = dict.fromkeys(range(4), (0, 10))
    assert len(values(latest())) == 8


def test_a_look_that_fails_is_made_once_more_with_another_consumer(cluster: Cluster) -> None:
    found = latest()
    assert len(values(found)) == 5
    cluster.refuses = 1
    assert len(values(found)) == 5
    assert (cluster.made, cluster.closed) == (2, 1)
    cluster.refuses = 2
    with pytest.raises(ConnectionError):
        found.look()
    assert len(values(found)) == 5
    assert (cluster.made, cluster.closed) == (4, 3)


def test_looks_beside_one_another_have_consumers_of_their_own(cluster: Cluster) -> None:
    readers = TailReaders({})

    def within(depth: int) -> int:
        return readers.look("t", lambda _: within(depth - 1) if depth else 0)

    within(MOST_IDLE + 1)
    assert (cluster.made, cluster.closed) == (MOST_IDLE + 2, 2)
    within(MOST_IDLE - 1)
    assert (cluster.made, cluster.closed) == (MOST_IDLE + 2, 2)


def test_one_record_is_found_at_its_place(cluster: Cluster) -> None:
    readers = TailReaders({})
    found = readers.record_at("t", (0, 4))
    assert found is not None
    assert found.offset() == 4
    assert readers.record_at("t", (0, 5)) is None
    assert cluster.made == 1
