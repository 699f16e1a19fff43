"""What a mirror reads of its source: whole transactions, and errors as what they are."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from belfry.mirror.reading import CarriedReader
from tests.unit.mirror.stand_ins import CHANGELOG_TOPIC, FakeLogs, FakeMessage, fake_side


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
