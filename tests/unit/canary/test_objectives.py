"""Shares and error budgets, from slots."""

from __future__ import annotations

import pytest

from belfry.canary.objectives import AVAILABILITY, Attainment, report
from belfry.canary.slots import HOUR_MS, HourRow

TEN_S = 10_000
HOUR = 500_000
T0 = HOUR * HOUR_MS
ALL = (1 << 360) - 1


def full(partition: int = 0, hour: int = HOUR, **bits: int) -> HourRow:
    """An hour in which all went well, but for these."""
    given = dict.fromkeys(("asked", "registered", "fired", "in_time"), ALL) | bits
    return HourRow(partition, hour, TEN_S, 1, **given)


def shares(rows: list[HourRow], from_ms: int, until_ms: int) -> list[tuple[int, int]]:
    """How many of how many met each goal."""
    found = report(rows, from_ms, until_ms)
    assert found is not None
    return [(each.good, each.of) for each in found.objectives()]


def test_an_hour_without_a_fault() -> None:
    assert shares([full()], T0, T0 + HOUR_MS) == [(360, 360)] * 3


def test_what_nobody_asked_for_was_not_available() -> None:
    #        asked ┤ 0 … 9 ├──── nobody ────┤ 40 … 359 ├
    row = full(asked=ALL ^ (1 << 40) - (1 << 10))
    row.registered = row.fired = row.in_time = row.asked
    assert shares([row], T0, T0 + HOUR_MS) == [(330, 360), (330, 330), (330, 330)]


def test_a_partition_that_never_had_an_owner_counts() -> None:
    row = full()
    row.partitions = 2
    assert shares([row], T0, T0 + HOUR_MS)[0] == (360, 720)


def test_hours_without_any_row_count_at_the_pace_of_the_one_before() -> None:
    rows = [full(), full(hour=HOUR + 3)]
    assert shares(rows, T0, T0 + 4 * HOUR_MS)[0] == (720, 1440)


def test_nothing_counts_before_the_first_event_that_was_asked_for() -> None:
    row = full(asked=ALL ^ 0b111)
    row.registered = row.fired = row.in_time = row.asked
    assert shares([row], T0 - 100 * HOUR_MS, T0 + HOUR_MS)[0] == (357, 357)


def test_a_window_cuts_hours() -> None:
    #   slots begin at 0 s, 10 s, 20 s, …: from 15 s until 40 s lie those of 20 s and 30 s
    assert shares([full()], T0 + 15_000, T0 + 40_000) == [(2, 2)] * 3


def test_late_and_lost_are_told_apart() -> None:
    rows = [full(fired=ALL ^ 0b1, in_time=ALL ^ 0b111)]
    assert shares(rows, T0, T0 + HOUR_MS) == [(360, 360), (359, 360), (357, 360)]


def test_what_came_in_time_was_accepted_whoever_heard_it() -> None:
    rows = [full(registered=ALL ^ 0b11, in_time=ALL ^ 0b1)]
    #  slot 0: nobody heard that it was accepted, and it came late; slot 1: it came in time
    assert shares(rows, T0, T0 + HOUR_MS) == [(359, 360), (360, 360), (359, 360)]


def test_a_change_of_the_interval_counts_by_the_shorter_one() -> None:
    other = HourRow(0, HOUR, 20_000, 1, asked=1, registered=1)
    assert shares([full(), other], T0, T0 + HOUR_MS)[0] == (360, 360)


def test_nothing_measured_is_no_report() -> None:
    assert report([], T0, T0 + HOUR_MS) is None
    assert report([full()], T0 - HOUR_MS, T0) is None


@pytest.mark.parametrize(
    ("good", "of", "left"), [(10_000, 10_000, 1.0), (9_995, 10_000, 0.0), (9_990, 10_000, -1.0)]
)
def test_an_error_budget(good: int, of: int, left: float) -> None:
    measured = Attainment(AVAILABILITY, good, of)
    assert measured.budget_left == pytest.approx(left)
    assert measured.met is (left >= 0) or left == pytest.approx(0)


def test_no_budget_where_nothing_was_judged() -> None:
    measured = Attainment(AVAILABILITY, 0, 0)
    assert (measured.share, measured.budget_left, measured.met) == (None, None, True)
