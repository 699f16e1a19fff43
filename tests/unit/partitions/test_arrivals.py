"""Requests are taken in by a clock that is trusted: the worker's, or their own append times."""

from __future__ import annotations

from typing import Any

from belfry.firing.clock_guard import ClockGuard
from belfry.partitions.arrivals import TIMELESS, Arrivals
from belfry.wire.batch import SourceBatch

T0 = 1_800_000_000_000
HOUR = 3_600_000


def batch(*stamps_ms: int, appended: bool = True) -> SourceBatch:
    records: list[Any] = [(n, at_ms, None, None, None) for n, at_ms in enumerate(stamps_ms)]
    return SourceBatch(0, len(records), records, appended=appended)


def guard(ahead_ms: int) -> ClockGuard:
    """A guard that has measured a clock which is so far ahead of the broker's."""
    found = ClockGuard(500)
    found.observe(T0 + ahead_ms, 0)
    found.probed(T0 + ahead_ms, T0, T0 + ahead_ms + 1, 1)
    return found


def test_a_trusted_clock_takes_anything_in() -> None:
    arrivals = Arrivals(guard(0))
    for each in (batch(T0), batch(-1), batch(T0, appended=False), batch()):
        assert arrivals.may_enter(each)
        assert arrivals.instant_ms(each, T0 + 7) == T0 + 7


def test_where_the_clock_is_hours_off_the_newest_append_time_is_now() -> None:
    for ahead_ms in (2 * HOUR, -2 * HOUR):
        arrivals = Arrivals(guard(ahead_ms))
        each = batch(T0 + 3, T0 + 9, T0 + 4)
        assert arrivals.may_enter(each)
        assert arrivals.instant_ms(each, T0 + ahead_ms) == T0 + 9


def test_where_neither_clock_is_trusted_requests_wait_and_say_why() -> None:
    arrivals = Arrivals(guard(2 * HOUR))
    for each in (batch(-1), batch(T0, appended=False)):
        assert not arrivals.may_enter(each)
        assert arrivals.problem == TIMELESS
    assert arrivals.may_enter(batch(T0))
    assert arrivals.problem == ""
