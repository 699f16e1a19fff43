"""The limited logger: first lines, then one sum per interval."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.telemetry.limited import MAX_REASONS, LimitedLogger


class Lines:
    """A logger that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def log(self, level: int, event: str, **values: Any) -> None:
        self.lines.append({"level": level, "event": event, **values})

    def sums(self) -> dict[str, int]:
        return {line["reason"]: line["lines"] for line in self.lines if "lines" in line}


class Clock:
    """Seconds that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limited(lines: Lines, clock: Clock) -> LimitedLogger:
    return LimitedLogger(lines, first=2, interval_seconds=10, clock=clock)


def test_a_flood_becomes_its_first_lines(limited: LimitedLogger, lines: Lines) -> None:
    # a a . . . . . .
    for _ in range(8):
        limited.warning("a", "Bad.", offset=1)
    assert [line["event"] for line in lines.lines] == ["Bad.", "Bad."]
    assert lines.lines[0]["offset"] == 1


def test_the_next_interval_begins_with_the_sum(
    limited: LimitedLogger, lines: Lines, clock: Clock
) -> None:
    # 0    a a . . .  | 10   S(3) a
    for _ in range(5):
        limited.warning("a", "Bad.")
    clock.now = 10.0
    limited.warning("a", "Bad.")
    assert [line.get("lines") for line in lines.lines] == [None, None, 3, None]


def test_reasons_have_their_own_allowance(limited: LimitedLogger, lines: Lines) -> None:
    for _ in range(5):
        limited.info("a", "Bad.")
    limited.error("b", "Worse.")
    assert lines.lines[-1]["event"] == "Worse."


def test_flush_sums_up_what_is_over(limited: LimitedLogger, lines: Lines, clock: Clock) -> None:
    for _ in range(5):
        limited.info("a", "Bad.")
    limited.flush()
    assert lines.sums() == {}
    clock.now = 11.0
    limited.flush()
    limited.flush()
    assert lines.sums() == {"a": 3}
    assert len(lines.lines) == 3


def test_reasons_are_bounded(limited: LimitedLogger, lines: Lines, clock: Clock) -> None:
    for number in range(MAX_REASONS + 5):
        limited.info(f"reason {number}", "Bad.")
    clock.now = 11.0
    limited.flush()
    assert lines.sums() == {"other": 3}
