"""`belfry redrive`: it counts first, asks, and tells what was sent."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Self

import pytest

from belfry.cli.entry import main
from belfry.cli.session import Session
from belfry.client.redrive import RedriveCount

RANGE = ("--from", "2026-12-01T00:00:00Z", "--until", "2026-12-02T00:00:00Z")


class Sender:
    """Stands for the client; remembers what it was asked to send."""

    def __init__(self, places: int = 3) -> None:
        codes = Counter(bad_cron=1, bad_zone=places - 1) if places else Counter[str]()
        stuck = Counter(cut=2)
        self.found = RedriveCount(codes, 4, stuck, [(0, n) for n in range(places)])
        self.asked: list[Any] = []
        self.looked: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def redrive_preview(self, *_: Any, **__: Any) -> RedriveCount:
        return self.found

    def refire_preview(self, *given: Any) -> RedriveCount:
        self.looked = given
        return self.found

    def refire(self, *given: Any, **how: Any) -> RedriveCount:
        self.asked.append((given, how))
        return self.found

    def redrive(self, *given: Any, **how: Any) -> RedriveCount:
        self.asked.append((given, how))
        return self.found


@pytest.fixture
def sender(monkeypatch: pytest.MonkeyPatch) -> Sender:
    sender = Sender()
    monkeypatch.setattr(Session, "client", lambda _: sender)
    return sender


def test_a_dry_run_counts_by_code(sender: Sender, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redrive", "rejected", "demo", *RANGE, "--dry"]) == 0
    told = "3 requests would be sent (bad_cron: 1, bad_zone: 2), 4 were redriven before,"
    assert capsys.readouterr().out == f"{told} 2 cannot be (cut: 2)\n"
    assert main(["redrive", "rejected", "demo", *RANGE, "--dry", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "requests": 3,
        "codes": {"bad_cron": 1, "bad_zone": 2},
        "redriven": 4,
        "stuck": {"cut": 2},
    }
    assert not sender.asked


def test_it_sends_what_it_was_asked_for(sender: Sender, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--code", "bad_cron", "--per-second", "7", "--reason", "fixed", "--yes")
    assert main(["redrive", "rejected", "demo", *RANGE, *more]) == 0
    assert "3 requests were sent" in capsys.readouterr().out
    day = (1_796_083_200_000, 1_796_169_600_000)
    how = {"code": "bad_cron", "per_second": 7, "reason": "fixed"}
    assert sender.asked == [(("demo", *day), how)]


def test_nothing_is_sent_where_nobody_can_be_asked(sender: Sender) -> None:
    assert main(["redrive", "rejected", "demo", *RANGE]) == 2
    assert not sender.asked


def test_where_there_is_nothing_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none = Sender(0)
    monkeypatch.setattr(Session, "client", lambda _: none)
    assert main(["redrive", "rejected", "demo", *RANGE]) == 0
    assert "0 requests would be sent" in capsys.readouterr().err
    assert not none.asked


def test_events_are_counted_and_sent(sender: Sender, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redrive", "fires", "demo", *RANGE, "--prefix", "a/", "--dry-run"]) == 0
    told = "3 events of 2 schedules would be sent, 4 were redriven before"
    assert capsys.readouterr().out == f"{told}\n"
    day = (1_796_083_200_000, 1_796_169_600_000)
    assert sender.looked == ("belfry.fired.demo", (*day, None, "a/", "redrive"))
    more = ("--id", "a", "--topic", "out", "--name", "monday", "--yes")
    assert main(["redrive", "fires", "demo", *RANGE, *more]) == 0
    asked = (*day, "a", "", "monday")
    assert sender.asked == [(("out", asked), {"per_second": 100})]


def test_no_event_is_sent_where_nobody_can_be_asked(sender: Sender) -> None:
    assert main(["redrive", "fires", "demo", *RANGE]) == 2
    assert not sender.asked
