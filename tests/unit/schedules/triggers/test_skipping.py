"""Instants that are left out on days off: each answer is that of a walk over all instants.

    every 6 hours       Thu 18:00   Fri 00:00 … Mon 18:00   Tue 00:00
    days off                        Fri  Sat  Sun  Mon
    left                ●                                   ●

The walk knows dates alone, and asks the trigger without its calendar.
"""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from belfry.schedules.civil import day_number
from belfry.schedules.days_off import days_off, packed_days
from belfry.schedules.instants import parse_instant
from belfry.schedules.rule import Rule
from belfry.schedules.triggers import Trigger, skipping, trigger_by

HOUR = 3_600_000
DAY = 24 * HOUR
# Over the change of the clock in Paris, on Sunday, 29 March, at 02:00.
FROM = parse_instant("2026-03-02T00:00:00Z")
END = FROM + 60 * DAY
WEEKEND = packed_days([], {5, 6})
# Four days in a row, one alone, and the day of the change; without a weekend and with one.
NAMED = [day_number(date(2026, 3, day)) for day in (6, 7, 8, 9, 18, 29)]
CALENDARS = {
    "weekend": WEEKEND,
    "named": packed_days(NAMED),
    "both": packed_days(NAMED, {5, 6}),
    "none": packed_days([]),
    "long past": packed_days([day_number(date(2020, 1, 1))]),
}
RULES = {
    "every 6 hours": Rule("EVERY", 6 * HOUR, start_at=FROM),
    "every 25 hours": Rule("EVERY", 25 * HOUR, "Europe/Paris", start_at=FROM + 7),
    "cron": Rule("CRON", "30 2,23 * * *", "Europe/Paris"),
    "cron of three days": Rule("CRON", "0 9 * * TUE,FRI,SAT", "America/New_York"),
    "rrule": Rule("RRULE", "FREQ=DAILY;BYHOUR=0,12", "Europe/Paris", start_at=FROM),
    "with an end": Rule("CRON", "0 */5 * * *", end_at=FROM + 40 * DAY),
}


def skipping_of(rule: Rule, packed: bytes) -> Trigger:
    return trigger_by(
        Rule(
            *(rule.kind, rule.when, rule.timezone, rule.start_at, rule.end_at),
            calendar="de",
            packed_days=packed,
        )
    )


def walk(rule: Rule, packed: bytes, end_ms: int = END) -> list[int]:
    """All that are left from the beginning on, one after the other."""
    whole, off = trigger_by(rule), days_off(packed)
    zone = ZoneInfo(rule.timezone or "UTC")
    found, at_ms = [], whole.first_ms(FROM - 1)
    while at_ms is not None and at_ms < end_ms:
        day = datetime.fromtimestamp(at_ms // 1000, UTC).astimezone(zone).date()
        if not off.off(day_number(day)):
            found.append(at_ms)
        at_ms = whole.after_ms(at_ms)
    return found


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("rule", RULES)
def test_each_instant_follows_the_one_before(rule: str, calendar: str) -> None:
    trigger = skipping_of(RULES[rule], CALENDARS[calendar])
    left = walk(RULES[rule], CALENDARS[calendar])
    assert trigger.first_ms(FROM - 1) == left[0]
    for at_ms, next_ms in itertools.pairwise(left):
        assert trigger.after_ms(at_ms) == next_ms
        assert trigger.before_ms(next_ms, FROM - 1) == at_ms
    if RULES[rule].end_at is not None:
        assert trigger.after_ms(left[-1]) is None
        goes_on = trigger_by(RULES[rule]).after_ms(left[-1]) is not None
        assert bool(trigger.why_over(left[-1])) == goes_on


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("rule", RULES)
def test_the_next_one_after_any_instant_is_in_the_rhythm(rule: str, calendar: str) -> None:
    trigger = skipping_of(RULES[rule], CALENDARS[calendar])
    assert isinstance(trigger, skipping.Skipping)
    left = walk(RULES[rule], CALENDARS[calendar])
    for ms in range(FROM, END - 20 * DAY, 7 * HOUR + 123):
        follows = next((each for each in left if each > ms), None)
        for nominal_ms in (left[0], left[len(left) // 2]):
            assert trigger.next_ms(nominal_ms, ms) == follows
    for at_ms in left[:5]:
        follows = next((each for each in left if each > at_ms), None)
        assert trigger.next_ms(left[0], at_ms) == follows
        assert trigger.next_ms(left[0], at_ms - 1) == at_ms


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("rule", RULES)
def test_a_run_of_them_is_counted_and_its_last_is_told(rule: str, calendar: str) -> None:
    trigger = skipping_of(RULES[rule], CALENDARS[calendar])
    left = walk(RULES[rule], CALENDARS[calendar])
    for place in (0, 1, len(left) // 2, len(left) - 1):
        after_ms = left[place]
        for until_ms in (after_ms, after_ms + 1, *left[place : place + 9], END - 1):
            within = [each for each in left if after_ms < each <= until_ms]
            found = within[-1] if within else after_ms
            assert trigger.latest_ms(after_ms, until_ms) == (found, len(within))
            assert trigger.count(after_ms, until_ms, 10) == len(within)
            if until_ms > after_ms:
                fewer = [each for each in left if after_ms < each <= until_ms - 1]
                assert trigger.latest_ms(after_ms, until_ms - 1)[1] == len(fewer)


def test_its_rhythm_and_what_it_shows_are_those_of_the_rule() -> None:
    rule = RULES["every 25 hours"]
    trigger, whole = skipping_of(rule, WEEKEND), trigger_by(rule)
    for ms in range(FROM, FROM + 3 * DAY, HOUR + 1):
        assert trigger.anchor_ms(FROM + 7, ms) == whole.anchor_ms(FROM + 7, ms)
    assert trigger.zone_name == "Europe/Paris"
    assert trigger.looks_a_day == 1
    assert trigger.whole.cadence == whole.cadence
    assert trigger.cadence == (*whole.cadence, "de", "SKIP", "Europe/Paris")
    left_out = Rule(
        *("CRON", "* * * * *", "UTC"), except_cron="30 * * * *", calendar="de", packed_days=WEEKEND
    )
    shown = trigger_by(left_out)
    assert [shown.shows(30 * 60), shown.shows(31 * 60)] == [False, True]


MONDAYS = [day_number(date(2026, 3, 9)) + 7 * week for week in range(9)]


@pytest.mark.parametrize(("off", "found"), [(2, True), (3, True), (4, False)])
def test_so_many_runs_of_days_off_are_passed_over(
    monkeypatch: pytest.MonkeyPatch, off: int, found: bool
) -> None:
    monkeypatch.setattr(skipping, "MOST_PASSED", 3)
    trigger = skipping_of(Rule("CRON", "0 9 * * MON"), packed_days(MONDAYS[:off]))
    first_ms = FROM + 9 * HOUR
    follows = first_ms + (off + 1) * 7 * DAY
    assert trigger.after_ms(first_ms) == (follows if found else None)
    # Backwards as many, of which the last is no longer looked behind.
    assert trigger.before_ms(follows, FROM) == (first_ms if off < 3 else FROM)


@pytest.mark.parametrize(("off", "found"), [(1, True), (2, False)])
def test_so_long_a_time_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, off: int, found: bool
) -> None:
    monkeypatch.setattr(skipping, "LONGEST_MS", 14 * DAY)
    trigger = skipping_of(Rule("CRON", "0 9 * * MON"), packed_days(MONDAYS[:off]))
    first_ms = FROM + 9 * HOUR
    assert trigger.after_ms(first_ms) == (first_ms + (off + 1) * 7 * DAY if found else None)


def test_a_calendar_that_leaves_nothing_is_told() -> None:
    trigger = skipping_of(Rule("CRON", "0 9 * * SAT"), WEEKEND)
    assert trigger.first_ms(FROM) is None
    assert trigger.after_ms(FROM) is None
    assert trigger.latest_ms(FROM, END) == (FROM, 0)
    assert trigger.before_ms(END, FROM) == FROM
    assert trigger.why_over(FROM) == (
        "calendar 'de' leaves out all that follows, or more than is looked through: 4000 runs of"
        " days off in a row, or 50 years."
    )


def test_why_a_rule_itself_is_over_is_told_by_the_rule() -> None:
    rule = Rule("CRON", "0 9 * * *", except_cron="* 9 * * *", calendar="de", packed_days=WEEKEND)
    without = Rule("CRON", "0 9 * * *", except_cron="* 9 * * *")
    told = trigger_by(without).why_over(FROM)
    assert told
    assert trigger_by(rule).why_over(FROM) == told


def test_why_it_is_over_is_told_only_where_it_is() -> None:
    """A day before the end a fire is left; then the bounds of the rule say it themselves."""
    rule = Rule("CRON", "0 9 * * *", end_at=FROM + 2 * DAY)
    trigger = skipping_of(rule, WEEKEND)
    assert trigger.why_over(FROM) == ""
    assert trigger.after_ms(FROM + DAY + 9 * HOUR) is None
    assert trigger.why_over(FROM + DAY + 9 * HOUR) == ""
    assert trigger.first_ms(FROM + 2 * DAY) is None
