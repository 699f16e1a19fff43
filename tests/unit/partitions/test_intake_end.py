"""Up to where requests are taken in: the log's end, unless a stranger keeps everybody from it."""

from __future__ import annotations

from belfry.kafka.holders import OpenTransaction
from belfry.partitions.intake_end import FRESH_END_MS, MOST_ENDS, IntakeEnd


def transaction(start: int) -> OpenTransaction:
    return OpenTransaction("belfry.schedules", 0, start, 7, 0, 0, "somebody", "Ongoing", 0, 60_000)


class Log:
    """A log of requests, and who holds its readers back."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.stranger: OpenTransaction | None = None
        self.asked = 0

    def log_end(self) -> int:
        self.asked += 1
        return self.end

    def intake(self) -> IntakeEnd:
        return IntakeEnd(self.end, self.log_end, lambda: self.stranger)


def test_the_logs_end_has_to_be_reached() -> None:
    intake = Log(10).intake()
    assert not intake.reached(9)
    assert intake.reached(10)


def test_an_end_that_is_old_is_asked_anew_and_has_to_be_reached_too() -> None:
    log = Log(10)
    intake = log.intake()
    log.end = 12
    assert not intake.fresh(10, 1_000.0)
    assert not intake.reached(10)
    assert intake.reached(12)
    assert intake.fresh(12, 1_000.0 + FRESH_END_MS)
    assert log.asked == 1


def test_a_flood_does_not_hold_up_firing_for_ever() -> None:
    log, position = Log(10), 10
    intake = log.intake()
    for turn in range(1, MOST_ENDS):
        log.end = position = position + 10
        assert intake.fresh(position, turn * 1_000.0)
    assert intake.fresh(position - 1, 60_000.0)


def test_what_is_behind_a_stranger_is_not_waited_for() -> None:
    log = Log(10)
    intake = log.intake()
    log.stranger = transaction(4)
    assert not intake.reached(3), "what lies before the transaction can be read"
    assert intake.reached(4)
    assert intake.fresh(4, 60_000.0)
    assert log.asked == 0


def test_what_nobody_is_known_to_hold_back_is_waited_for() -> None:
    intake = Log(10).intake()
    assert not intake.reached(4)


def test_a_stranger_before_the_position_holds_nothing_back() -> None:
    """It was there at the last look, and has ended since: what follows it can be read."""
    log = Log(10)
    intake = log.intake()
    log.stranger = transaction(4)
    assert not intake.reached(5)
    assert intake.reached(10)
