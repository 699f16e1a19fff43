"""Ids of topics are looked at before anchors are written, and no refused anchor is hurried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.kafka.anchors import Anchors
from belfry.recovery.identities import LONGEST_PAUSE_MS, LOOK_EVERY_MS, Identities, World
from belfry.store.identity import UNKNOWN_ID, Identity, identity_text
from tests.unit.kafka.offset_notes import OffsetNotes

TOPICS = ("belfry.changelog", "belfry.schedules")
HERE = Identity("cluster-a", "id-of-belfry.changelog-0", "id-of-belfry.schedules-0")


def settled(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


class Cluster(OffsetNotes):
    """What tells ids and keeps notes; it has some partitions only."""

    def __init__(self, partitions: int = 4) -> None:
        super().__init__("belfry.identity", partitions)
        self.made = 0
        self.asked: list[str] = []

    def describe_topics(self, collection: Any, **_: Any) -> dict[str, Future[Any]]:
        self.asked.append("ids")
        return {
            name: settled(
                SimpleNamespace(topic_id=f"id-of-{name}-{self.made}", partitions=range(4))
            )
            for name in collection.topic_names
        }

    def write(self, texts: Mapping[int, str]) -> dict[int, str]:
        self.asked.append("anchors")
        return super().write(texts)

    def identities(
        self,
        beside: Callable[[Iterable[int]], None] | None = None,
        connect: Callable[[], Any] | None = None,
    ) -> Identities:
        here: Any = self
        found = Identities(here, "cluster-a", TOPICS, Anchors(here), beside, connect)
        self.asked.clear()
        return found


def test_ids_are_looked_at_before_an_anchor_is_written() -> None:
    cluster = Cluster()
    identities = cluster.identities()
    identities.owned(0, identities.seen)
    identities.look(1_000.0)
    assert cluster.asked == ["ids", "anchors"]
    assert cluster.kept == {0: identity_text(HERE)}
    identities.look(2_000.0)
    assert cluster.asked == ["ids", "anchors"]
    identities.look(1_000.0 + LOOK_EVERY_MS)
    assert cluster.asked == ["ids", "anchors", "ids"]


def test_what_is_kept_beside_an_anchor_is_written_with_it() -> None:
    cluster = Cluster()
    beside: list[list[int]] = []
    identities = cluster.identities(lambda partitions: beside.append(list(partitions)))
    identities.look(1_000.0)
    assert beside == []
    identities.owned(0, identities.seen)
    identities.look(1_000.0)
    identities.look(2_000.0)
    assert beside == [[0]]


def test_no_anchor_says_of_topics_that_are_gone_that_they_are_there() -> None:
    cluster = Cluster()
    identities = cluster.identities()
    world = World(identities, 0, identities.seen)
    world.owned()
    cluster.made = 1
    identities.look(1_000.0)
    assert cluster.kept == {}
    assert world.changed


def test_an_anchor_that_is_refused_is_not_hurried() -> None:
    cluster = Cluster()
    identities = cluster.identities()
    identities.owned(0, identities.seen)
    cluster.away = True
    for second in range(1, 601):
        identities.look(second * 1_000.0)
    assert cluster.asked.count("anchors") < 20
    assert cluster.asked.count("ids") > 600_000 / LOOK_EVERY_MS / 2
    cluster.away = False
    for second in range(601, 603 + int(LONGEST_PAUSE_MS / 1_000)):
        identities.look(second * 1_000.0)
    assert cluster.kept == {0: identity_text(HERE)}


def test_a_partition_that_the_topic_lacks_keeps_no_other_anchor_from_being_written() -> None:
    cluster = Cluster(partitions=2)
    identities = cluster.identities()
    for partition in range(4):
        identities.owned(partition, identities.seen)
    for second in range(1, 61):
        identities.look(second * 1_000.0)
    assert sorted(cluster.kept) == [0, 1]
    assert cluster.asked.count("anchors") < 10
    assert identities.anchors.read(1) == HERE
    assert identities.anchors.read(3) is None


def test_an_anchor_that_nobody_may_read_is_not_taken_for_none() -> None:
    cluster = Cluster()
    identities = cluster.identities()
    cluster.away = True
    with pytest.raises(ConnectionError, match=r"belfry\.identity"):
        identities.anchors.read(0)


def test_brokers_without_ids_contradict_nothing() -> None:
    identities = Cluster().identities()
    unknown = HERE._replace(changelog=UNKNOWN_ID, schedules=UNKNOWN_ID)
    assert not World(identities, 0, unknown).changed
    identities.seen = unknown
    assert not World(identities, 0, HERE).changed
    assert World(identities, 0, HERE._replace(cluster="cluster-b")).changed


class Restarting(Cluster):
    """A cluster whose controller, as the client knows it, is away until metadata names another."""

    knows_controller = True

    def describe_topics(self, collection: Any, **given: Any) -> dict[str, Future[Any]]:
        if self.knows_controller:
            return super().describe_topics(collection)
        self.asked.append(f"nobody within {given['request_timeout']} s")
        error = KafkaException(KafkaError(KafkaError._TIMED_OUT, "waiting for controller"))
        return {name: settled(error) for name in collection.topic_names}

    def list_topics(self, _topic: str, timeout: float) -> None:
        self.asked.append("metadata")
        self.knows_controller = self.tells

    tells = True


def test_a_controller_that_is_away_is_looked_for_anew() -> None:
    cluster = Restarting()
    identities = cluster.identities()
    cluster.knows_controller = False
    assert identities.now() == HERE
    assert cluster.asked == ["nobody within 1.5 s", "metadata", "ids"]


def test_a_client_that_finds_no_controller_is_not_asked_again() -> None:
    """Two minutes after a broker had died, one still waited for its controller."""
    confused, other = Restarting(), Restarting()
    identities = confused.identities(connect=lambda: other)
    confused.knows_controller = confused.tells = False
    assert [identities.now(), identities.now()] == [HERE, HERE]
    assert confused.asked == ["nobody within 1.5 s"]
    assert other.asked == ["metadata", "ids", "ids"]


def test_all_who_ask_in_vain_get_the_same_other_client() -> None:
    """Each of many partitions is taken over just then."""
    confused, made = Restarting(), list[Restarting]()

    def connect() -> Restarting:
        made.append(Restarting())
        return made[-1]

    identities = confused.identities(connect=connect)
    together = Barrier(4)

    def away(_topics: Any, **_: Any) -> dict[str, Future[Any]]:
        together.wait(10)
        return {name: settled(KafkaException(KafkaError(KafkaError._TIMED_OUT))) for name in TOPICS}

    confused.describe_topics = away  # type: ignore[method-assign, assignment]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: identities._ask(), range(4))) == [HERE] * 4
    assert len(made) == 1


def test_topics_that_are_gone_are_no_cause_for_another_client() -> None:
    """Brokers have answered, and nothing is asked by which they would make such a topic anew."""
    cluster = Restarting()
    identities = cluster.identities(connect=Restarting)
    gone = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))

    def deleted(_topics: Any, **_: Any) -> dict[str, Future[Any]]:
        cluster.asked.append("ids")
        return {name: settled(gone) for name in TOPICS}

    cluster.describe_topics = deleted  # type: ignore[method-assign, assignment]
    with pytest.raises(ConnectionError, match=r"[Uu]nknown topic"):
        identities.now()
    assert cluster.asked == ["ids", "ids"]


def test_where_no_broker_names_one_the_ids_are_not_told() -> None:
    cluster = Restarting()
    identities = cluster.identities()
    cluster.knows_controller = cluster.tells = False
    with pytest.raises(ConnectionError, match="waiting for controller"):
        identities.now()
    assert identities.seen == HERE
