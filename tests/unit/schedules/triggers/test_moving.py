"""Instants that move from days off, in vectors that a calendar of 2026 tells.

Paris goes forward on Sunday, 29 March, at 02:00.
"""

from __future__ import annotations

import pytest

from belfry.schedules.days_off import packed_days
from belfry.schedules.instants import format_instant, parse_instant
from belfry.schedules.rule import Rule
from belfry.schedules.triggers import Trigger, trigger_by

MONDAY = parse_instant("2026-03-23T00:00:00Z")
HOUR = 3_600_000
DAY = 24 * HOUR
YEAR = 366 * DAY


def moving(text: str, weekend: set[int], way: str, **more: int) -> Trigger:
    return trigger_by(
        Rule("CRON", text, "Europe/Paris", calendar="fr", on_holiday=f"{way}_BUSINESS_DAY",
             packed_days=packed_days([], weekend), **more)  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "weekend", "way", "found"),
    [
        # 02:30 of a Saturday: on the Sunday it does not exist, on the Monday it is an hour earlier.
        ("30 2 * * SAT", {5}, "NEXT", "2026-03-29T01:00:00.000Z"),
        ("30 2 * * SAT", {5, 6}, "NEXT", "2026-03-30T00:30:00.000Z"),
        ("30 2 * * MON", {0}, "PREVIOUS", "2026-03-29T01:00:00.000Z"),
        ("5 30 3 * * SUN", {6}, "PREVIOUS", "2026-03-28T02:30:05.000Z"),
        ("5 30 3 * * SUN", {6}, "NEXT", "2026-03-30T01:30:05.000Z"),
    ],
)
def test_a_moved_instant_keeps_its_time_on_the_wall(
    text: str, weekend: set[int], way: str, found: str
) -> None:
    trigger = moving(text, weekend, way)
    due_ms = trigger.first_ms(MONDAY + DAY)
    assert due_ms is not None
    assert format_instant(due_ms) == found


def test_milliseconds_move_along() -> None:
    """Also on a day on which the clock changes: 03:30:00.250 of the Saturday, on the Sunday."""
    start_ms = parse_instant("2026-03-21T03:30:00.250+01:00")
    rule = Rule("RRULE", "FREQ=WEEKLY", "Europe/Paris", start_at=start_ms, calendar="fr",
                on_holiday="NEXT_BUSINESS_DAY", packed_days=packed_days([], {5}))  # fmt: skip
    due_ms = trigger_by(rule).after_ms(MONDAY)
    assert due_ms is not None
    assert format_instant(due_ms) == "2026-03-29T01:30:00.250Z"


def test_what_came_before_is_the_one_that_it_follows() -> None:
    trigger = moving("30 2 1,28 * *", {5, 6}, "NEXT")
    due_ms = trigger.first_ms(MONDAY)
    for _ in range(30):
        assert due_ms is not None
        after_ms = trigger.after_ms(due_ms)
        assert after_ms is not None
        assert trigger.before_ms(after_ms, MONDAY) == due_ms
        due_ms = after_ms
    first_ms = trigger.first_ms(MONDAY)
    assert first_ms is not None
    assert trigger.before_ms(first_ms, MONDAY) == MONDAY
    assert trigger.before_ms(first_ms, first_ms - 1) == first_ms - 1


def test_a_start_that_is_further_away_than_is_searched_is_found() -> None:
    """What has a start is looked for from there on, and not for 50 years from now."""
    start_ms = MONDAY + 60 * YEAR
    due_ms = moving("0 9 * * *", {5, 6}, "NEXT", start_at=start_ms).first_ms(MONDAY)
    assert due_ms is not None
    assert start_ms <= due_ms < start_ms + 4 * DAY


@pytest.mark.parametrize("way", ["NEXT", "PREVIOUS"])
@pytest.mark.parametrize(
    ("kind", "when"),
    [
        ("CRON", "0 9 * * *"),
        ("CRON", "0 9 * * * | @every 1440m"),
        ("RRULE", "FREQ=DAILY"),
        ("EVERY", DAY),
    ],
)
def test_an_instant_at_the_start_is_the_first(kind: str, when: str | int, way: str) -> None:
    """`start_at` is inclusive, from whenever on the first one is looked for."""
    start_ms = MONDAY + 9 * HOUR
    trigger = trigger_by(
        Rule(kind, when, "UTC", start_at=start_ms, calendar="fr",
             on_holiday=f"{way}_BUSINESS_DAY", packed_days=packed_days([], {5}))
    )  # fmt: skip
    assert trigger.first_ms(start_ms - 30 * DAY) == start_ms
    assert trigger.first_ms(start_ms - 1) == start_ms
    assert trigger.first_ms(start_ms) == start_ms + DAY
