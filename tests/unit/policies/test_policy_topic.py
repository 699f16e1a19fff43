"""The topic of policies is read from where it begins, and what brings nothing is passed as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from belfry.host import machine
from belfry.kafka import fetcher, offset_client
from belfry.kafka.fetch_position import Fetched, OffsetGone, Where
from belfry.policies import policy_topic
from belfry.policies.policy_topic import PolicyBatch, PolicyTopic
from belfry.settings import Settings
from tests.simulation.record_batches import emptied, stored

NAME = "belfry.tenants"


class Cluster:
    """A topic whose partitions begin at 3 and end at 9; what is fetched of it is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.partitions = [0, 1]
        self.looks = 0
        self.away = False
        self.asked: list[list[Where]] = []
        # Partitions whose beginnings were asked for together, and those not told of then.
        self.looked_for: list[list[int]] = []
        self.untold: set[int] = set()
        self.asked_alone = 0
        self.answers: list[Fetched] = []
        self.followed: dict[Where, int] = {}
        monkeypatch.setattr(fetcher, "Fetcher", lambda _properties, wait_s: self)
        monkeypatch.setattr(offset_client, "OffsetClient", lambda _properties: self)
        monkeypatch.setattr(machine, "sleep", lambda _pause_s: None)
        self.topic = PolicyTopic(Settings())

    def list_topics(self, topic: str, _timeout: float) -> Any:
        self.looks += 1
        found: Any = type("Found", (), {"partitions": self.partitions})
        return type("Topics", (), {"topics": {topic: found} if self.looks > 2 else {}})

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        self.asked_alone += 1
        if self.away:
            raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
        return 3, 9

    def offsets_for_times(self, places: list[TopicPartition], _timeout: float) -> Any:
        if {each.offset for each in places} == {OFFSET_BEGINNING}:
            self.looked_for.append([each.partition for each in places])
            untold = self.untold if not self.away else {each.partition for each in places}
            begins = [OFFSET_INVALID if each.partition in untold else 3 for each in places]
            return [
                TopicPartition(each.topic, each.partition, begin)
                for each, begin in zip(places, begins, strict=True)
            ]
        assert {each.offset for each in places} == {OFFSET_END}
        self.asked.append([(each.topic, each.partition) for each in places])
        return [TopicPartition(each.topic, each.partition, 9) for each in places]

    def close(self) -> None:
        """Nothing is kept open."""

    def follow(self, positions: Mapping[Where, int]) -> None:
        self.followed = dict(positions)

    def take(self, _wait_s: float) -> Fetched | None:
        return self.answers.pop(0) if self.answers else None

    def fetched(self, partition: int, *offsets: int, behind: int, error: Any = None) -> None:
        data = b"".join(stored(each, 5, (b"acme", b"policy", None), -1) for each in offsets)
        if not offsets and error is None:
            data = emptied(3, behind)
        self.answers.append(Fetched((NAME, partition), 3, behind, data, (), error))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def test_it_begins_where_each_partition_does_once_the_topic_is_known(cluster: Cluster) -> None:
    cluster.topic.assign()
    assert cluster.looks == 3
    assert cluster.topic.read() is None
    assert cluster.followed == {(NAME, 0): 3, (NAME, 1): 3}


def test_all_beginnings_are_asked_for_together(cluster: Cluster) -> None:
    """One after the other they would be two requests for each of 64 partitions."""
    cluster.topic.assign()
    for _ in range(3):
        assert cluster.topic.read() is None
    assert (cluster.looked_for, cluster.asked_alone) == ([[0, 1]], 0)


def test_one_that_was_not_told_of_with_the_others_is_asked_for_alone(cluster: Cluster) -> None:
    cluster.topic.assign()
    cluster.untold = {1}
    assert cluster.topic.read() is None
    assert (cluster.looked_for, cluster.asked_alone) == ([[0, 1]], 1)
    assert cluster.followed == {(NAME, 0): 3, (NAME, 1): 3}


def test_a_topic_that_nobody_knows_is_told(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a worker would fire without a single policy."""
    monkeypatch.setattr(policy_topic, "CATCH_UP_S", -1.0)
    with pytest.raises(ConnectionError, match=NAME):
        cluster.topic.assign()


def test_what_was_carried_out_counts_as_read_and_nothing_else(cluster: Cluster) -> None:
    topic = cluster.topic
    topic.assign()
    cluster.fetched(0, 4, 6, behind=9)
    batch = topic.read()
    assert batch is not None
    assert [(offset, key, value) for offset, _, key, value, _ in batch.records] == [
        (4, b"acme", b"policy"),
        (6, b"acme", b"policy"),
    ]
    assert topic.positions == {0: 0, 1: 0}
    topic.passed(batch)
    assert topic.positions == {0: 7, 1: 0}
    # Markers and what was rolled back bring no records.
    cluster.fetched(1, behind=9)
    passed = topic.read()
    assert passed is not None
    assert passed.records == []
    topic.passed(passed)
    assert topic.positions == {0: 7, 1: 9}
    # A log that is read anew takes nothing back.
    topic.passed(PolicyBatch(0, [], 5))
    assert topic.positions == {0: 7, 1: 9}
    assert topic.read() is None


def test_a_log_that_has_changed_is_read_from_where_it_begins(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.topic
    topic.assign()
    cluster.fetched(1, 4, behind=5)
    cluster.fetched(0, behind=5, error=OffsetGone("it was cut off"))
    topic.positions = {0: 5, 1: 5}
    assert topic.read() is not None
    assert topic.read() is None
    # What is written where it was cut off is not read yet: who catches up waits for it.
    assert topic.positions == {0: 0, 1: 5}
    cluster.followed, cluster.away = {}, True
    # Those of the other partition are read while nobody tells where this one begins.
    for behind in (6, 7):
        cluster.fetched(1, behind - 1, behind=behind)
        batch = topic.read()
        assert batch is not None
        assert (batch.partition, batch.behind) == (1, behind)
    assert cluster.followed == {}
    cluster.away = False
    assert topic.read() is None
    assert cluster.followed == {}
    now_s = machine.monotonic()
    monkeypatch.setattr(machine, "monotonic", lambda: now_s + policy_topic.AGAIN_S)
    assert topic.read() is None
    assert cluster.followed == {(NAME, 0): 3, (NAME, 1): 7}


def test_where_no_partition_begins_is_told(cluster: Cluster) -> None:
    cluster.topic.assign()
    cluster.away = True
    with pytest.raises(ConnectionError, match=NAME):
        cluster.topic.read()


def test_a_topic_that_may_not_be_read_is_told(cluster: Cluster) -> None:
    cluster.topic.assign()
    cluster.fetched(0, behind=3, error=ConnectionError("not let in"))
    with pytest.raises(ConnectionError, match="not let in"):
        cluster.topic.read()


def test_all_that_could_be_read_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.topic
    topic.assign()
    topic.positions = {0: 9, 1: 9}
    topic.catch_up()
    topic.positions = {0: 9, 1: 8}
    monkeypatch.setattr(policy_topic, "CATCH_UP_S", -1.0)
    with pytest.raises(ConnectionError, match="not read to its end"):
        topic.catch_up()


def test_ends_of_all_partitions_are_asked_for_in_one_question(cluster: Cluster) -> None:
    """Each take-over asks: a question for each partition would cost as many as their square."""
    cluster.partitions = [*range(64)]
    cluster.topic.assign()
    cluster.topic.positions = dict.fromkeys(range(64), 9)
    cluster.topic.catch_up()
    assert cluster.asked == [[(NAME, each) for each in range(64)]]
