"""What a mirror reads of its source: whole transactions, and errors as what they are."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from belfry.mirror import reading
from belfry.mirror.reading import CarriedReader
from tests.unit.mirror.stand_ins import CHANGELOG_TOPIC, ROW, FakeLogs, FakeMessage, fake_side


def made(monkeypatch: pytest.MonkeyPatch) -> tuple[FakeLogs, CarriedReader]:
    """A source, and its reader from the beginning on."""
    cluster = FakeLogs()
    cluster.readable(monkeypatch)
    return cluster, CarriedReader(fake_side("a", cluster), 0, None, whole=False)


@pytest.mark.parametrize("topic", [None, CHANGELOG_TOPIC])
def test_an_error_is_told_whether_it_names_a_topic_or_not(
    monkeypatch: pytest.MonkeyPatch, topic: str | None
) -> None:
    cluster, reader = made(monkeypatch)
    cluster.errors = [FakeMessage(topic, 0, code=KafkaError.GROUP_AUTHORIZATION_FAILED)]
    with pytest.raises(ConnectionError, match=topic or "kafka: "):
        reader.batch(0)


def test_a_stretch_without_manifests_is_cut_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    one = len(b"shop/a") + len(ROW)
    monkeypatch.setattr(reading, "HEAD_BYTES", one)
    monkeypatch.setattr(reading, "STRETCH_BYTES", 2 * one)
    cluster, reader = made(monkeypatch)

    def read_one() -> tuple[int, int, bool]:
        cluster.add(CHANGELOG_TOPIC, b"shop/a")
        found = reader.batch(0)
        return found.size, found.positions["changelog"], found.whole

    # The head of a log, as compaction leaves it.
    assert [read_one(), read_one(), read_one()] == [(0, 0, False), (2, 2, False), (0, 2, False)]
    cluster.seal()
    assert (reader.batch(0).size, reader.positions["changelog"]) == (2, 4)
    # Behind a transaction another one is waited for, up to its own size.
    assert [read_one(), read_one(), read_one()] == [(0, 4, True), (0, 4, True), (3, 7, False)]


def test_a_stretch_without_manifests_is_cut_by_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BUFFERED", 3)
    cluster, reader = made(monkeypatch)
    cluster.seal()
    assert reader.batch(0).whole
    sizes = []
    for _ in range(4):
        cluster.add(CHANGELOG_TOPIC, b"shop/a")
        sizes.append(reader.batch(0).size)
    assert (sizes, reader.batch(0).whole) == ([0, 0, 0, 4], False)


def test_rows_without_their_manifest_are_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, reader = made(monkeypatch)
    cluster.add(CHANGELOG_TOPIC, b"shop/a")
    cluster.seal()
    cluster.add(CHANGELOG_TOPIC, b"shop/b")
    found = reader.batch(0)
    assert [key for key, _ in found.rows][:1] == [b"shop/a"]
    assert (found.size, found.positions["changelog"], found.whole) == (2, 2, True)
    assert reader.positions == found.positions
    cluster.seal(2)
    assert (reader.batch(0).size, reader.positions["changelog"]) == (2, 4)
