"""What a side tells of itself from the end of its changelog."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection

from belfry.kafka import librdkafka
from belfry.mirror import sides
from belfry.mirror.beginnings import CannotMirror, Ends
from belfry.mirror.marks import KINDS, MARKS
from belfry.mirror.sides import Side, opened
from belfry.settings import SharedSettings
from belfry.store.identity import Identity, encode_identity
from belfry.store.layout import keys
from belfry.store.row_judge import Judge
from tests.unit.mirror.stand_ins import CHANGELOG_TOPIC, FakeLogs

A, B = Identity("cluster-a", "log-a", "in-a"), Identity("cluster-b", "log-b", "in-b", 3)


class KeptSide(Side):
    """A side whose changelog is in memory."""

    logs: FakeLogs

    def judge(self, _partition: int) -> Judge:
        return Judge()

    def backwards(self, kind: str, _partition: int) -> Iterator[Any]:
        return reversed(self.logs.logs[f"belfry.{kind}"])


class FakeAdmin:
    """A cluster of these topics, with one partition each; others do not exist, or are hidden."""

    def __init__(self, topics: set[str], hidden: int | None, denied: str) -> None:
        self._topics = topics
        self._hidden, self._denied = hidden, denied

    def list_topics(self, **_: object) -> Any:
        return SimpleNamespace(cluster_id="cluster-a", topics=dict.fromkeys(self._topics))

    def describe_topics(self, asked: TopicCollection, **_: object) -> dict[str, Future[Any]]:
        return {name: self._answer(name) for name in asked.topic_names}

    def _answer(self, name: str) -> Future[Any]:
        found: Future[Any] = Future()
        if name in self._topics:
            found.set_result(SimpleNamespace(partitions=[0], topic_id=f"id of {name}"))
        else:
            missing = KafkaError.UNKNOWN_TOPIC_OR_PART
            code = self._hidden if self._hidden and name == self._denied else missing
            found.set_exception(KafkaException(KafkaError(code)))
        return found


def side_of(
    monkeypatch: pytest.MonkeyPatch, *kinds: str, hidden: int | None = None, denied: str = ""
) -> Side:
    """What is opened of a cluster with topics of these kinds."""
    admin = FakeAdmin({f"belfry.{each}" for each in kinds}, hidden, f"belfry.{denied}")
    monkeypatch.setattr(librdkafka, "AdminClient", lambda _: admin)
    monkeypatch.setattr(sides, "tombstones_kept_ms", lambda *_: 77)
    monkeypatch.setattr(sides, "anchors_of", lambda _: None)
    monkeypatch.setattr(sides, "marks_of", lambda _: None)
    return opened("source", SharedSettings(bootstrap_servers="kafka-a:9092"))


def test_a_side_has_the_topics_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    side = side_of(monkeypatch, *KINDS)
    assert (side.kinds, side.homes, side.tombstones_ms) == (frozenset(KINDS), 1, 77)
    assert side.mark(0) is None
    assert MARKS in side_of(monkeypatch, *KINDS, MARKS).kinds
    with pytest.raises(CannotMirror, match=r"source: belfry\.schedules does not exist"):
        side_of(monkeypatch, "changelog")


@pytest.mark.parametrize("denied", [MARKS, "changelog", "lifecycle"])
def test_a_topic_that_may_not_be_seen_is_not_taken_for_one_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, denied: str
) -> None:
    others = {*KINDS} - {denied}
    refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(CannotMirror, match=rf"may not Describe topic belfry\.{denied}"):
        side_of(monkeypatch, *others, hidden=refused, denied=denied)
    away = KafkaError._TRANSPORT
    with pytest.raises(ConnectionError, match="source at kafka-a:9092"):
        side_of(monkeypatch, *others, hidden=away, denied=denied)


@pytest.mark.parametrize(
    ("identity", "later", "told"),
    [(B, False, "cluster-b"), (B, True, None), (A, False, None), (None, False, None)],
    ids=["fenced", "since then its own", "its own", "none"],
)
def test_a_side_knows_whether_its_last_transaction_gave_it_away(
    identity: Identity | None, later: bool, told: str | None
) -> None:
    nothing: Any = None
    side = KeptSide("a", nothing, A, 1, frozenset(), nothing, 0)
    side.logs = FakeLogs()
    side.logs.add(CHANGELOG_TOPIC, keys.IDENTITY_KEY, encode_identity(B))
    side.logs.seal(7)
    if identity is not None:
        side.logs.add(CHANGELOG_TOPIC, keys.IDENTITY_KEY, encode_identity(identity))
    side.logs.seal(8)
    if later:
        side.logs.seal(9)
    last = side.last_manifest(0)
    assert last is not None
    assert last.txn_seq == (9 if later else 8)
    assert side.given_to(0) == told


def test_a_side_knows_its_last_committed_record_from_the_end_of_its_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was rolled back moves the end, and is no content."""
    nothing: Any = None
    side = KeptSide("a", nothing, A, 1, frozenset(), nothing, 0)
    side.logs = FakeLogs()
    log = SimpleNamespace(ends=lambda: (0, 9))
    monkeypatch.setattr(KeptSide, "bounds", lambda *_: log)
    assert side.ends(0) == Ends(True, 9)
    side.logs.add(CHANGELOG_TOPIC, keys.IDENTITY_KEY, encode_identity(B))
    side.logs.add(CHANGELOG_TOPIC, keys.IDENTITY_KEY, encode_identity(B))
    assert side.ends(0) == Ends(False, 9, 2)
