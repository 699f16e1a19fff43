"""What a mirror reads of its source: whole transactions, and errors as what they are."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from belfry.mirror import reading
from belfry.mirror.cuts import Gate, Together
from belfry.mirror.reading import CarriedReader
from belfry.wire.record import Origin, origin_headers, sent_by_headers
from tests.unit.mirror.stand_ins import (
    CHANGELOG_TOPIC,
    REQUESTS_TOPIC,
    ROW,
    FakeConsumer,
    FakeLogs,
    FakeMessage,
    fake_side,
)


def made(monkeypatch: pytest.MonkeyPatch) -> tuple[FakeLogs, CarriedReader]:
    """A source, and its reader from the beginning on."""
    cluster = FakeLogs()
    cluster.readable(monkeypatch)
    return cluster, CarriedReader(
        fake_side("a", cluster), 0, None, Gate(Together(1), 0), whole=False
    )


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


def test_requests_that_were_carried_are_read_again_for_who_sent_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = FakeLogs()
    cluster.readable(monkeypatch)
    origin = origin_headers(Origin(REQUESTS_TOPIC, 1, 4, 900, rerouted=True))
    for number in (6, 7, 8):
        sent: Any = origin + sent_by_headers(1, number)
        cluster.add(REQUESTS_TOPIC, headers=sent)
    together = Together(2)
    together.carried(1, 6, 0, 0)
    gate = Gate(together, 0)
    positions = {"schedules": 2, "changelog": 0, "lifecycle": 0, "rejected": 0}
    side = fake_side("a", cluster)
    reader = CarriedReader(side, 0, positions, gate, whole=True, rows_to=(1, 0))
    assert (reader.positions["schedules"], reader.noted) == (2, 1)
    cluster.seal(3, position=1)
    cluster.seal(4, position=2)
    found = reader.batch(0)
    assert [each.offset() for each in found.others["schedules"]] == [2]
    # Its transaction 4 took in what the other partition sent by its 7, which is not carried yet.
    assert (found.number, found.positions["changelog"], reader.noted) == (3, 1, 3)
    together.carried(1, 7, 0, 0)
    assert reader.batch(0).number == 4


def test_a_changelog_of_which_much_waits_is_read_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, reader = made(monkeypatch)
    monkeypatch.setattr(reading, "STRETCH_BYTES", len(ROW))
    paused: list[str] = []
    monkeypatch.setattr(FakeConsumer, "pause", lambda *_: paused.append("pause"), raising=False)
    monkeypatch.setattr(FakeConsumer, "resume", lambda *_: paused.append("resume"), raising=False)
    cluster.add(CHANGELOG_TOPIC, b"shop/a")
    cluster.seal(1, position=5)
    assert reader.batch(0).size == 0
    assert reader.batch(0).size == 0
    assert paused == ["pause"]
    # Nothing more will come there, as its end says.
    reader.pass_missing(0, 1)
    assert reader.batch(0).size == 2
    assert paused == ["pause", "resume"]


@pytest.mark.parametrize(("number", "waits"), [(0, False), (7, True), (8, False)])
def test_a_reader_that_goes_on_sees_that_manifests_are_gone(
    monkeypatch: pytest.MonkeyPatch, number: int, waits: bool
) -> None:
    cluster = FakeLogs()
    cluster.readable(monkeypatch)
    gate = Gate(Together(1), 0)
    side = fake_side("a", cluster)
    reader = CarriedReader(side, 0, None, gate, whole=True, rows_to=(0, number))
    cluster.add(CHANGELOG_TOPIC, b"shop/a")
    cluster.seal(9)
    cluster.seal(10)
    assert reader.batch(0).number == (None if waits else 10)
    assert gate.held == 2 * waits
