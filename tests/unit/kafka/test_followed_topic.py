"""Partitions are followed from offsets on, and from the log's begin where those are gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from belfry.kafka.fetch_position import Fetched
from belfry.kafka.fetcher import Fetcher
from belfry.kafka.followed_topic import FollowedTopic, portions
from tests.unit.kafka.mock_cluster import MockCluster

SOON_S = 10.0


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster(1) as found:
        found.create("log", 2, 1)
        yield found


@pytest.fixture
def topic(cluster: MockCluster) -> Iterator[FollowedTopic]:
    found = FollowedTopic({"bootstrap.servers": cluster.servers}, "log")
    yield found
    found.close()


def write(cluster: MockCluster, partition: int, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": cluster.servers, "compression.type": "lz4"})
    for value in values:
        producer.produce("log", value, partition=partition)
    assert producer.flush(SOON_S) == 0


def taken(topic: FollowedTopic) -> Fetched:
    """The next answer that brought something."""
    while True:
        answer = topic.take(SOON_S)
        assert answer is not None
        if answer.data:
            return answer


def values(answer: Fetched, at_most: int = 100) -> list[list[Any]]:
    return [[record[3] for record in some] for some, _ in portions(answer, at_most)]


def test_it_is_read_from_where_it_is_told_to_its_end(
    cluster: MockCluster, topic: FollowedTopic
) -> None:
    write(cluster, 1, [b"a", b"b", b"c"])
    assert topic.partitions() == [0, 1]
    assert topic.ends([0, 1]) == {0: 0, 1: 3}
    topic.follow({1: 0})
    answer = taken(topic)
    assert (answer.where, answer.behind) == (("log", 1), 3)
    assert values(answer, 2) == [[b"a", b"b"], [b"c"]]
    assert [behind for _, behind in portions(answer, 2)] == [2, 3]
    over = topic.take(SOON_S)
    assert over is not None
    assert (over.offset, over.data) == (3, b"")
    topic.follow({1: 3, 0: 0})
    write(cluster, 0, [b"d"])
    assert values(taken(topic)) == [[b"d"]]


def test_an_offset_that_is_gone_is_followed_from_where_the_log_begins(
    cluster: MockCluster, topic: FollowedTopic
) -> None:
    write(cluster, 0, [b"a"])
    topic.follow({0: 70})
    assert topic.take(SOON_S) is None
    assert values(taken(topic)) == [[b"a"]]


def test_what_may_not_be_read_is_told(
    topic: FollowedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = Fetched(("log", 0), 0, 0, error=ConnectionError("denied"))
    monkeypatch.setattr(Fetcher, "take", lambda *_: denied)
    topic.follow({0: 0})
    with pytest.raises(ConnectionError, match="denied"):
        topic.take(SOON_S)


def test_a_topic_that_is_not_there_is_told(cluster: MockCluster) -> None:
    other = FollowedTopic({"bootstrap.servers": cluster.servers}, "other")
    with pytest.raises(ConnectionError, match="other is not there"):
        other.partitions()
    other.close()
