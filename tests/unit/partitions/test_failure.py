"""What the end of a term says of the worker, what the log is told, and how long is waited."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.kafka.outcome import Aborted, Unknown
from belfry.kafka.signature_marks import BadMark
from belfry.partitions.failure import (
    PAUSE_AFTER_ERROR_S,
    PAUSE_CONTRADICTED_S,
    PAUSE_LEFT_S,
    Failures,
)
from belfry.recovery.takeover import LeftToOthers
from belfry.store.identity import Contradiction


class Log:
    """A logger that keeps its lines: level by name, or the number that a limited logger gives."""

    def __init__(self) -> None:
        self.lines: list[tuple[str | int, str]] = []

    def info(self, event: str, **_values: Any) -> None:
        self.lines.append(("info", event))

    def log(self, level: int, event: str, **_values: Any) -> None:
        self.lines.append((level, event))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def failures(log: Log) -> Failures:
    clock: Any = SimpleNamespace(monotonic_ms=lambda: 5_000.0)
    return Failures(log, clock)


def pauses(failures: Failures) -> list[float]:
    """The pause before the next try, in seconds, in a list; empty for none."""
    found: list[float] = []
    failures.pause(found.append)
    return found


def test_what_is_left_to_others_is_told_once_and_speaks_against_nobody(
    failures: Failures, log: Log
) -> None:
    failures.ended(RuntimeError("before"))
    log.lines.clear()
    for _ in range(3):
        failures.ended(LeftToOthers("1 schedules cannot be fired by this worker"))
        assert pauses(failures) == [PAUSE_LEFT_S]
        assert PAUSE_LEFT_S >= 1
        assert failures.since_ms is None
    assert log.lines == [("info", "the partition is left to others")]
    assert failures.problem == "1 schedules cannot be fired by this worker"
    failures.ended(RuntimeError("in between"))
    failures.ended(LeftToOthers("2 schedules cannot be fired by this worker"))
    assert [level for level, _ in log.lines] == ["info", 40, "info"]


def test_a_mark_that_is_none_is_no_silence_of_kafka(failures: Failures) -> None:
    failures.ended(ConnectionError("no answer within 5 s"))
    assert failures.problem == "Kafka does not answer: no answer within 5 s"
    failures.ended(BadMark("partition 3: 'x' is no mark of signatures"))
    assert failures.problem == "partition 3: 'x' is no mark of signatures"


@pytest.mark.parametrize(
    ("error", "paused", "since_ms", "level"),
    [
        (Unknown("a time-out"), [PAUSE_AFTER_ERROR_S], 5_000.0, 30),
        (Unknown("nothing to abort", blocked=True), [], 5_000.0, 30),
        (Contradiction("log_truncated", "a", "b"), [PAUSE_CONTRADICTED_S], None, 40),
        (RuntimeError("whatever"), [PAUSE_AFTER_ERROR_S], 5_000.0, 40),
    ],
    ids=["unknown", "blocked", "contradicted", "any other"],
)
def test_how_a_term_ended_says_what_follows(
    failures: Failures,
    log: Log,
    error: Exception,
    paused: list[float],
    since_ms: float | None,
    level: int,
) -> None:
    failures.ended(error)
    assert (pauses(failures), failures.since_ms) == (paused, since_ms)
    assert [each for each, _ in log.lines] == [level]
    failures.committed()
    assert failures.since_ms is None


def test_the_first_failure_counts_until_a_commit(failures: Failures) -> None:
    failures.rolled_back(Aborted("a topic refused it"))
    assert failures.since_ms == 5_000.0
    failures._clock = SimpleNamespace(monotonic_ms=lambda: 9_000.0)  # type: ignore[assignment]
    failures.ended(Unknown("a time-out"))
    assert failures.since_ms == 5_000.0
