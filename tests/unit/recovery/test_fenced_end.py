"""The end of a changelog after the fence: nothing may be hidden before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from belfry.host import machine
from belfry.kafka import open_transactions
from belfry.kafka.holders import OpenTransaction, Untold
from belfry.kafka.outcome import Stopped
from belfry.recovery import fenced_end
from belfry.recovery.fenced_end import FencedEnd
from belfry.recovery.reading import ReplayProgress
from belfry.settings import Settings

HELD = OpenTransaction(
    "belfry.changelog", 3, 11, 4_711, 2, 0, "outbox-1", "Ongoing", 40_000, 900_000
)


class Changelog:
    """A changelog that a transaction holds back until it was asked for so often."""

    topic = "belfry.changelog"

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def log_end(self) -> int:
        self.rounds -= 1
        return 30

    def ends(self) -> tuple[int, int]:
        return 0, 30 if self.rounds < 0 else 11


class Waits:
    """A take-over whose clock goes on while it waits; what health says meanwhile is kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stops_after: int = 1_000) -> None:
        self.reading, self.partition = ReplayProgress(), 3
        self.said: list[str] = []
        self.now, self._stops_after = 1_000.0, stops_after
        self.waited: list[float] = []
        monkeypatch.setattr(machine, "monotonic", lambda: self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.waited.append(seconds)
        self.said.append(self.reading.sentence())
        if len(self.said) >= self._stops_after:
            raise Stopped


def ask(waits: Waits, changelog: Changelog) -> int:
    clock: Any = SimpleNamespace(wall_ms=lambda: 100_000.0)
    log: Any = changelog
    return FencedEnd(Settings(), clock, waits.partition, waits.reading, waits.wait)(log)


def test_an_end_that_all_can_read_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    assert ask(waits, Changelog(0)) == 30
    assert not waits.said


def test_what_is_hidden_is_waited_for_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_transactions, "look_up", lambda *_: [HELD])
    waits = Waits(monkeypatch)
    assert ask(waits, Changelog(20)) == 30
    for word in ("outbox-1", "producer 4711 (epoch 2)", "for 60 s", "from offset 11 on"):
        assert word in waits.said[-1]
    assert "abort --topic belfry.changelog --partition 3 --start-offset 11" in waits.said[-1]
    assert waits.reading.held_by == ""


def test_a_moment_is_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Waits(monkeypatch)
    assert ask(waits, Changelog(2)) == 30
    assert not any("open" in each for each in waits.said)


def test_brokers_that_do_not_tell_are_no_reason_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> list[OpenTransaction]:
        raise Untold("error 29")

    monkeypatch.setattr(open_transactions, "look_up", refuse)
    waits = Waits(monkeypatch)
    assert ask(waits, Changelog(20)) == 30
    assert "unknown: error 29" in waits.said[-1]
    assert "describe-producers" in waits.said[-1]


def test_a_worker_that_stops_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_transactions, "look_up", lambda *_: [HELD])
    waits = Waits(monkeypatch, stops_after=15)
    with pytest.raises(Stopped):
        ask(waits, Changelog(1_000))
    assert waits.reading.held_by == ""


def test_it_is_told_after_half_a_second_and_again_each_half_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As often as it is told it is looked up, too: who holds the end back may change."""
    waits, looked = Waits(monkeypatch), list[tuple[float, Any, Any]]()

    def look_up(properties: Any, places: Any) -> list[OpenTransaction]:
        looked.append((waits.now, properties, places))
        return [HELD]

    monkeypatch.setattr(open_transactions, "look_up", look_up)
    # A part of half a second to the bit.
    monkeypatch.setattr(fenced_end, "LOOK_S", 0.125)
    assert ask(waits, Changelog(66)) == 30
    assert waits.waited == [0.125] * 4 + [1.0] * 62
    assert [at for at, _, _ in looked] == [1_000.5, 1_030.5, 1_060.5]
    for _, properties, places in looked:
        assert properties == Settings().kafka_properties()
        assert places == [("belfry.changelog", 3)]


def test_the_log_says_who_what_to_do_and_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_transactions, "look_up", lambda *_: [HELD])
    waits = Waits(monkeypatch)
    with capture_logs() as told:
        ask(waits, Changelog(20))
    begun, over = told
    hides = "an open transaction hides the end of the changelog: nothing fires until it is over"
    held, to_do = begun.pop("held_by"), begun.pop("to_do")
    assert held
    assert to_do
    for word in (held, to_do, "open in belfry.changelog/3 ", "committed up to 30;"):
        assert word in waits.said[-1]
    assert begun == {
        "event": hides, "log_level": "critical", "partition": 3, "topic": "belfry.changelog",
        "last_stable_offset": 11, "log_end": 30,
    }  # fmt: skip
    assert over == {
        "event": "the changelog can be read to its end again",
        "log_level": "warning", "partition": 3, "end": 30,
    }  # fmt: skip


def test_what_was_over_in_a_moment_is_not_said_to_be_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with capture_logs() as told:
        ask(Waits(monkeypatch), Changelog(2))
    assert told == []
