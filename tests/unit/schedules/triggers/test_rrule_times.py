"""Times within a day, by a look at each second of it; and what it costs to join them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from belfry.schedules.civil import day_number
from belfry.schedules.instants import parse_instant
from belfry.schedules.triggers import trigger_by
from belfry.schedules.triggers.rrule_cost import (
    joined,
    looked_at,
    looks_a_day,
    sorts_of_sets,
    times_a_day,
    times_of_sets,
)
from belfry.schedules.triggers.rrule_parts import read_recurrence
from belfry.schedules.triggers.rrule_text import read_rule
from belfry.schedules.triggers.rrule_times import TimesWithinADay
from belfry.schedules.triggers.rrule_values import Recurrence
from belfry.schedules.triggers.rule import Rule

DAY_S = 86_400
START = 9 * 3_600 + 41 * 60 + 7
UNITS = {"HOURLY": 3_600, "MINUTELY": 60, "SECONDLY": 1}


def each_second(rule: Recurrence, day: int) -> list[int]:
    """The times of a day, by RFC 5545 read word by word, and by no sum of intervals."""
    unit = UNITS[rule.freq]
    hours = rule.hours or range(24)
    minutes = rule.minutes or (range(60) if rule.freq != "HOURLY" else (START // 60 % 60,))
    seconds = rule.seconds or (range(60) if rule.freq == "SECONDLY" else (START % 60,))
    found: dict[int, list[int]] = {}
    for second in range(DAY_S):
        since = (day * DAY_S + second) // unit - START // unit
        if since % rule.interval:
            continue
        if second // 3_600 in hours and second // 60 % 60 in minutes and second % 60 in seconds:
            found.setdefault(since, []).append(second)
    if not rule.positions:
        return [each for inner in found.values() for each in inner]
    return sorted(
        {
            inner[at - 1 if at > 0 else at]
            for inner in found.values()
            for at in rule.positions
            if abs(at) <= len(inner)
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=HOURLY;INTERVAL=7",
        "FREQ=HOURLY;BYMINUTE=0,30;BYSECOND=1,59;BYSETPOS=2,-1,9",
        "FREQ=HOURLY;INTERVAL=5;BYHOUR=1,6,13,20,23;BYMINUTE=5",
        "FREQ=MINUTELY;INTERVAL=50;BYHOUR=0,9,23",
        "FREQ=MINUTELY;INTERVAL=7;BYMINUTE=0,21,59;BYSECOND=1,2,3;BYSETPOS=-1",
        "FREQ=SECONDLY;INTERVAL=7",
        "FREQ=SECONDLY;BYHOUR=3;BYMINUTE=59;BYSECOND=0,59",
        "FREQ=SECONDLY;INTERVAL=11;BYHOUR=0,23;BYMINUTE=0,30,59",
        "FREQ=SECONDLY;INTERVAL=11;BYHOUR=0,23;BYMINUTE=0,30,59;BYSECOND=3,4,5,40",
        "FREQ=SECONDLY;INTERVAL=3601;BYHOUR=1,2,3,4,5,6,7,8,9,10,11,12;BYMINUTE=40,41,42,43",
        "FREQ=SECONDLY;INTERVAL=3601;BYHOUR=0,4,8;BYMINUTE=36,37,38,39,40,41,42,43,44;BYSECOND=0,2,30,58",
        "FREQ=SECONDLY;INTERVAL=7;BYHOUR=0,9;BYSETPOS=1",
        "FREQ=SECONDLY;INTERVAL=7;BYSECOND=7;BYSETPOS=2",
    ],
)
def test_times_within_a_day_are_those_that_a_look_at_each_second_finds(text: str) -> None:
    rule = read_recurrence(text)
    times = TimesWithinADay(rule, START)
    for day in (0, 1, 2, 40):
        assert [*times.on(day).seconds] == each_second(rule, day)


def walked(text: str, start: str, count: int) -> list[str]:
    """The dates of the first occurrences, with their hours."""
    found = trigger_by(Rule("RRULE", text, start_at=parse_instant(start)))
    due_ms, dates = found.first_ms(0), list[str]()
    while due_ms is not None and len(dates) < count:
        at = date(1970, 1, 1) + timedelta(days=due_ms // 86_400_000)
        dates.append(f"{at.isoformat()} {due_ms // 3_600_000 % 24:02}")
        due_ms = found.after_ms(due_ms)
    return dates


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # Of each week, which begins on a Sunday: its last of Monday, Saturday and Sunday.
        ("FREQ=WEEKLY;WKST=SU;BYDAY=MO,SA,SU;BYSETPOS=-1", ["2027-01-02 09", "2027-01-09 09"]),
        ("FREQ=WEEKLY;WKST=MO;BYDAY=MO,SA,SU;BYSETPOS=-1", ["2027-01-03 09", "2027-01-10 09"]),
        ("FREQ=YEARLY;BYDAY=MO;BYSETPOS=2,-1", ["2027-01-11 09", "2027-12-27 09",
                                                 "2028-01-10 09"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU;BYHOUR=9,17;BYSETPOS=-1", ["2027-01-26 17", "2027-02-23 17"]),
        ("FREQ=DAILY;BYHOUR=9,17;BYSETPOS=2", ["2027-01-01 17", "2027-01-02 17"]),
        # Every second week and every fifth month go on over the years.
        ("FREQ=WEEKLY;INTERVAL=3;BYMONTH=1,12;BYDAY=FR", ["2027-01-01 09", "2027-01-22 09",
                                                          "2027-12-03 09", "2027-12-24 09",
                                                          "2028-01-14 09"]),
        ("FREQ=MONTHLY;INTERVAL=5", ["2027-01-01 09", "2027-06-01 09", "2027-11-01 09",
                                     "2028-04-01 09"]),
        ("FREQ=YEARLY;INTERVAL=3;BYMONTHDAY=29;BYMONTH=2", ["2036-02-29 09", "2048-02-29 09"]),
        ("FREQ=MONTHLY;BYMONTHDAY=31,-31", ["2027-01-01 09", "2027-01-31 09", "2027-03-01 09"]),
        ("FREQ=YEARLY;BYYEARDAY=366,-366", ["2028-01-01 09", "2028-12-31 09", "2032-01-01 09"]),
        # A day with something left out keeps its other times, and one that is added is not lost.
        ("FREQ=DAILY;BYHOUR=9,17 EXDATE:20270102T090000Z", ["2027-01-01 09", "2027-01-01 17",
                                                            "2027-01-02 17"]),
        ("FREQ=WEEKLY RDATE:20270102T170000Z EXDATE:20270108T090000Z",
         ["2027-01-01 09", "2027-01-02 17", "2027-01-15 09"]),
        ("FREQ=WEEKLY RDATE:20270102T090000Z,20270103T090000Z EXRULE:FREQ=WEEKLY;BYDAY=SA",
         ["2027-01-01 09", "2027-01-03 09", "2027-01-08 09"]),
    ],
)  # fmt: skip
def test_vectors(text: str, found: list[str]) -> None:
    assert walked(text, "2027-01-01T09:00:00Z", len(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=MONTHLY;INTERVAL=5",
        "FREQ=MONTHLY;INTERVAL=8;BYDAY=-1FR",
        "FREQ=WEEKLY;INTERVAL=3;BYMONTH=1,5,12;BYDAY=MO,FR",
        "FREQ=YEARLY;INTERVAL=3;BYYEARDAY=1,60,366,-1",
        "FREQ=YEARLY;BYWEEKNO=1,53;BYDAY=MO,SU",
        "FREQ=DAILY;INTERVAL=17;BYMONTH=2,3",
        "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=1,-1",
        "FREQ=HOURLY;INTERVAL=1009",
        "FREQ=WEEKLY;COUNT=99;BYDAY=TU,WE",
        "FREQ=WEEKLY;UNTIL=20310101T090000;BYDAY=FR,SA",
        "FREQ=MONTHLY RDATE:20290302T000000 EXDATE:20290201T090000 EXRULE:FREQ=YEARLY",
    ],
)
def test_what_is_counted_is_what_a_walk_finds(text: str) -> None:
    start_ms, end_ms = parse_instant("2027-01-01T09:00:00Z"), parse_instant("2039-07-01T00:00:00Z")
    found = trigger_by(Rule("RRULE", text, start_at=start_ms))
    due_ms, instants = found.first_ms(0), list[int]()
    while due_ms is not None and due_ms <= end_ms:
        instants.append(due_ms)
        due_ms = found.after_ms(due_ms)
    for place in (0, 1, len(instants) // 2, len(instants) - 1):
        after_ms, left = instants[place], len(instants) - place - 1
        fresh = trigger_by(Rule("RRULE", text, start_at=start_ms))
        assert fresh.latest_ms(after_ms, end_ms) == (instants[-1], left)
        assert fresh.latest_ms(after_ms, after_ms + 999) == (after_ms, 0)
        until_ms = instants[place // 2]
        assert fresh.latest_ms(start_ms - 1, until_ms) == (until_ms, place // 2 + 1)


def test_a_day_is_counted_from_1970() -> None:
    assert day_number(date(2027, 1, 1)) == 20_819


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("FREQ=DAILY", 1),
        ("FREQ=DAILY;BYHOUR=9,17;BYMINUTE=0,1,2;BYSECOND=1,2", 12),
        ("FREQ=HOURLY;INTERVAL=7", 4),
        ("FREQ=HOURLY;INTERVAL=7;BYMINUTE=0,30;BYSECOND=1,2,3", 24),
        ("FREQ=MINUTELY;INTERVAL=7;BYSECOND=1,2", 412),
        ("FREQ=MINUTELY;BYHOUR=9", 60),
        ("FREQ=SECONDLY;INTERVAL=7", 12_343),
        ("FREQ=SECONDLY;INTERVAL=20;BYHOUR=9", 3_600),
        ("FREQ=SECONDLY;INTERVAL=36525", 3),
    ],
)
def test_how_many_times_a_day_has_at_most(text: str, times: int) -> None:
    assert times_a_day(read_recurrence(text)) == times


def test_the_cost_of_a_set_is_that_of_the_example() -> None:
    """2 sorts of days and 8 sorts, 2 times and 12 343."""
    text = read_rule("FREQ=DAILY;BYHOUR=9,17 EXRULE:FREQ=SECONDLY;INTERVAL=7")
    assert (sorts_of_sets(text), times_of_sets(text), joined(text)) == (16, 12_345, 197_520)
    assert looks_a_day(text) == 0
    dates = " RDATE:20270101T000000,20270102T000000 EXDATE:20270103T000000"
    with_dates = read_rule(f"FREQ=DAILY EXRULE:FREQ=DAILY{dates}")
    assert joined(with_dates) == (4 + 3) * 2


def test_what_nothing_is_taken_from_has_a_time_on_its_first_day() -> None:
    assert joined(read_rule("FREQ=SECONDLY;INTERVAL=7")) == 0
    assert joined(read_rule("FREQ=DAILY RRULE:FREQ=SECONDLY;INTERVAL=7")) == 12_344


def test_more_sorts_than_are_remembered_are_joined_anew_each_day() -> None:
    kept = read_rule("FREQ=SECONDLY;INTERVAL=7 EXRULE:FREQ=SECONDLY;INTERVAL=7")
    assert (sorts_of_sets(kept), joined(kept), looks_a_day(kept)) == (64, 64 * 24_686, 0)
    more = read_rule("FREQ=SECONDLY;INTERVAL=7 EXRULE:FREQ=MINUTELY;INTERVAL=11")
    assert sorts_of_sets(more) == 96
    assert joined(more) == 1_600 * (12_343 + 131)
    assert looks_a_day(more) == (12_343 + 131) // 100
    by_place = read_rule("FREQ=YEARLY;BYDAY=MO;BYSETPOS=1 EXRULE:FREQ=DAILY")
    assert sorts_of_sets(by_place) == 368 * 2


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("FREQ=DAILY;BYHOUR=9,17", 0),
        ("FREQ=SECONDLY;INTERVAL=257", 0),
        ("FREQ=SECONDLY;INTERVAL=257;BYHOUR=9", 60),
        ("FREQ=SECONDLY;INTERVAL=257;BYSECOND=9", 337),
        ("FREQ=SECONDLY;INTERVAL=7;BYHOUR=9", 0),
        ("FREQ=MINUTELY;INTERVAL=67;BYSECOND=1,2", 22),
    ],
)
def test_what_the_times_of_one_day_take(text: str, looks: int) -> None:
    assert looked_at(read_recurrence(text)) == looks
