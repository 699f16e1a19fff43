"""Instants that move from days off, in UTC: each answer is that of a walk over all instants.

every 6 hours          Thu 18:00   Fri 00:00 … Mon 18:00   Tue 00:00
days off                           Fri  Sat  Sun  Mon
NEXT_BUSINESS_DAY      ●           those of four days ──►  each time of Tuesday, once
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from belfry.schedules.days_off import days_off
from belfry.schedules.rule import Rule
from belfry.schedules.triggers import Trigger, trigger_by
from belfry.schedules.triggers.moving import MovingTrigger, moves_too_often
from tests.unit.schedules.triggers.test_skipping import CALENDARS, DAY, END, FROM, HOUR

# Begun well before, so that what moves here from there is met.
START = FROM - 40 * DAY
RULES = {
    "every 6 hours": Rule("EVERY", 6 * HOUR, start_at=START),
    "every 25 hours": Rule("EVERY", 25 * HOUR, start_at=START + 7),
    # What moves back lies before what is there.
    "every 23 hours": Rule("EVERY", 23 * HOUR, start_at=START + 7),
    "cron": Rule("CRON", "30 2,23 * * *"),
    "cron of three days": Rule("CRON", "0 9 * * TUE,FRI,SAT"),
    "rrule": Rule("RRULE", "FREQ=DAILY;BYHOUR=0,12", start_at=START),
}


def moving_of(rule: Rule, packed: bytes, way: str) -> Trigger:
    return trigger_by(
        Rule(
            *(rule.kind, rule.when, "UTC", rule.start_at),
            calendar="de",
            on_holiday=f"{way}_BUSINESS_DAY",
            packed_days=packed,
        )
    )


def walk(rule: Rule, packed: bytes, way: str) -> list[int]:
    """All from `FROM` up to `END`, where they have moved to."""
    whole, off = trigger_by(rule), days_off(packed)
    found = set[int]()
    at_ms = whole.first_ms(START - 1)
    while at_ms is not None and at_ms < END + 20 * DAY:
        day = at_ms // DAY
        to_day = off.business_from(day) if way == "NEXT" else off.business_to(day)
        found.add(at_ms + (to_day - day) * DAY)
        at_ms = whole.after_ms(at_ms)
    return sorted(each for each in found if FROM <= each < END)


@pytest.mark.parametrize("way", ["NEXT", "PREVIOUS"])
@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("rule", RULES)
def test_each_answer_is_that_of_a_walk(rule: str, calendar: str, way: str) -> None:
    trigger = moving_of(RULES[rule], CALENDARS[calendar], way)
    left = walk(RULES[rule], CALENDARS[calendar], way)
    assert trigger.first_ms(FROM - 1) == left[0]
    for at_ms, next_ms in pairwise(left):
        assert trigger.after_ms(at_ms) == next_ms
        assert trigger.before_ms(next_ms, FROM - 1) == at_ms
    for place in (0, 1, len(left) // 2, len(left) - 1):
        after_ms = left[place]
        for until_ms in (after_ms, after_ms + 1, *left[place : place + 5], END - 1):
            within = [each for each in left if after_ms < each <= until_ms]
            found = within[-1] if within else after_ms
            assert trigger.latest_ms(after_ms, until_ms) == (found, len(within))
            assert trigger.count(after_ms, until_ms, 1_000) == len(within)
            some = trigger.count(after_ms, until_ms, 2)
            assert some == len(within) or 2 < some <= len(within)


@pytest.mark.parametrize("way", ["NEXT", "PREVIOUS"])
def test_nothing_lies_before_the_start(way: str) -> None:
    """Also of an instant that would move there; a start may be on a business day or not."""
    for later in range(9):
        start_ms = FROM + later * DAY
        rule = Rule("EVERY", DAY, start_at=start_ms)
        trigger = moving_of(rule, CALENDARS["both"], way)
        first_ms = trigger.first_ms(FROM - 5 * DAY)
        assert first_ms is not None
        assert first_ms >= start_ms
        off = days_off(CALENDARS["both"])
        assert not off.off(first_ms // DAY)
        assert first_ms == off.business_from(start_ms // DAY) * DAY


@pytest.mark.parametrize("weekday", ["SAT", "SUN"])
def test_an_end_bounds_where_an_instant_moves_to(weekday: str) -> None:
    """To Monday, the 9th: it counts at the end itself, and not a millisecond before it."""
    moved_ms, tuesday_ms = FROM + 7 * DAY + 9 * HOUR, FROM + DAY
    for end_at, expected in ((moved_ms, moved_ms), (moved_ms - 1, None)):
        rule = Rule("CRON", f"0 9 * * {weekday}", end_at=end_at, calendar="de",
                    on_holiday="NEXT_BUSINESS_DAY", packed_days=CALENDARS["weekend"])  # fmt: skip
        trigger = trigger_by(rule)
        assert trigger.first_ms(tuesday_ms) == expected
        found = (tuesday_ms, 0) if expected is None else (moved_ms, 1)
        assert trigger.latest_ms(tuesday_ms, END) == found


def test_what_moves_before_the_start_is_no_occurrence() -> None:
    """Sunday, the 8th, moves to Friday, and a start on that Friday lets it fire."""
    friday_ms = FROM + 4 * DAY + 9 * HOUR
    for start_at, expected in ((friday_ms, friday_ms), (friday_ms + 1, friday_ms + 7 * DAY)):
        trigger = moving_of(
            Rule("CRON", "0 9 * * SUN", start_at=start_at), CALENDARS["weekend"], "PREVIOUS"
        )
        assert trigger.first_ms(FROM) == expected


@pytest.mark.parametrize(
    ("rule", "too_often"),
    [
        (Rule("EVERY", 59_999), True),
        (Rule("EVERY", 60_000), False),
        (Rule("EVERY", 1, end_at=FROM + 1), False),
        (Rule("EVERY", 1, end_at=FROM + 2), True),
        # Twice within a minute, once a day.
        (Rule("CRON", "0,30 0 9 * * *"), True),
        (Rule("CRON", "0 9 * * *"), False),
        (Rule("CRON", "0 9 * * *", end_at=FROM), False),
    ],
)
def test_a_rule_that_moves_is_due_once_a_minute_at_most(rule: Rule, too_often: bool) -> None:
    assert moves_too_often(trigger_by(rule), FROM) is too_often


def test_a_rule_may_be_due_too_often_later_than_at_first() -> None:
    """A day lies behind 09:00:30, and half a minute behind the next one."""
    trigger = trigger_by(Rule("CRON", "0,30 0 9 * * *"))
    assert moves_too_often(trigger, FROM + 9 * HOUR)


def test_what_follows_an_instant_that_is_none_of_the_rule_is_that_of_any() -> None:
    trigger = moving_of(RULES["cron of three days"], CALENDARS["weekend"], "NEXT")
    assert isinstance(trigger, MovingTrigger)
    assert trigger.next_ms(FROM, FROM + 4 * DAY) == FROM + 4 * DAY + 9 * HOUR
