"""The end of a changelog after the fence: nothing may be hidden before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.host import machine
from belfry.kafka import open_transactions
from belfry.kafka.holders import OpenTransaction, Untold
from belfry.kafka.outcome import Stopped
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
        self._now, self._stops_after = 0.0, stops_after
        monkeypatch.setattr(machine, "monotonic", lambda: self._now)

    def wait(self, seconds: float) -> None:
        self._now += seconds
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
