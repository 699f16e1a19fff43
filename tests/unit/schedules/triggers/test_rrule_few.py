"""Rules of RFC 5545 at their bounds: days that do not come, ends and starts that come twice."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from belfry.schedules.civil import year_at
from belfry.schedules.instants import format_instant, parse_instant
from belfry.schedules.rule import Rule
from belfry.schedules.triggers import Trigger, trigger_by
from belfry.schedules.triggers.rrule_choice import choice_of
from belfry.schedules.triggers.rrule_days import LOOKS_OF_PAGES, days_of
from belfry.schedules.triggers.rrule_parts import read_recurrence
from belfry.schedules.triggers.rrule_text import read_rule
from belfry.schedules.triggers.rrule_values import RRuleMistake
from belfry.schedules.triggers.rrule_words import ordinal

EPOCH = date(1970, 1, 1).toordinal()
# A Monday.
MONDAY = "2027-01-04T09:00:00Z"


def rrule(text: str, start: str = MONDAY, zone: str = "UTC", **fields: Any) -> Trigger:
    return trigger_by(Rule("RRULE", text, timezone=zone, start_at=parse_instant(start), **fields))


def shown(trigger: Trigger, most: int = 9) -> list[str]:
    """The first instants, without the milliseconds that they do not have."""
    found, at_ms = list[str](), trigger.first_ms(0)
    while at_ms is not None and len(found) < most:
        found.append(format_instant(at_ms).replace(":00.000Z", "Z"))
        at_ms = trigger.after_ms(at_ms)
    return found


@pytest.mark.parametrize(("interval", "weekday"), [(2, "TU"), (3, "TU"), (5, "SA"), (6, "WE")])
def test_of_every_so_many_days_those_of_a_weekday_are_taken(interval: int, weekday: str) -> None:
    """A walk over the days: from a Monday on, each interval of them, less the other weekdays."""
    place = ("MO", "TU", "WE", "TH", "FR", "SA", "SU").index(weekday)
    first = year_at(2027).first + 3
    expected = [day for day in range(first, first + 200, interval) if (day - first) % 7 == place]
    days = days_of(
        choice_of(read_recurrence(f"FREQ=DAILY;INTERVAL={interval};BYDAY={weekday}"), first)
    )
    assert days.between(first, first + 200) == expected
    assert [days.nth(number, first) for number in range(len(expected))] == expected


@pytest.mark.parametrize("end", ["", ";COUNT=3", ";UNTIL=20400101T000000Z"])
def test_a_weekday_that_a_rhythm_of_weeks_never_meets_is_no_occurrence(end: str) -> None:
    trigger = rrule(f"FREQ=DAILY;INTERVAL=7;BYDAY=TU{end}")
    assert trigger.first_ms(0) is None
    begun_ms = parse_instant(MONDAY)
    assert trigger.latest_ms(begun_ms, begun_ms + 400 * 86_400_000) == (begun_ms, 0)


def test_an_end_in_utc_lets_only_the_first_of_two_equal_times_fire() -> None:
    """02:00 and 02:30 come twice in Paris that night, from 00:00 and from 01:00 in UTC on."""
    start = "2026-10-24T23:00:00Z"
    rule = "FREQ=MINUTELY;INTERVAL=30;UNTIL="
    assert shown(rrule(rule + "20261025T003000Z", start, "Europe/Paris")) == [
        "2026-10-24T23:00Z",
        "2026-10-24T23:30Z",
        "2026-10-25T00:00Z",
        "2026-10-25T00:30Z",
    ]
    twice = shown(rrule(rule + "20261025T013000Z", start, "Europe/Paris"))
    assert twice[4:] == ["2026-10-25T01:00Z", "2026-10-25T01:30Z"]


def test_a_start_that_is_shown_for_the_second_time_is_one_more_occurrence() -> None:
    """02:30 of that night in Paris comes at 00:30 and at 01:30 in UTC; the latter is DTSTART."""
    start_ms = parse_instant("2026-10-25T01:30:00Z")
    trigger = rrule("FREQ=DAILY", "2026-10-25T01:30:00Z", "Europe/Paris")
    assert shown(trigger, 3) == ["2026-10-25T01:30Z", "2026-10-26T01:30Z", "2026-10-27T01:30Z"]
    day_ms = 86_400_000
    assert trigger.latest_ms(start_ms - 1, start_ms) == (start_ms, 1)
    assert trigger.latest_ms(start_ms - 1, start_ms + 2 * day_ms) == (start_ms + 2 * day_ms, 3)
    assert trigger.latest_ms(start_ms, start_ms + 2 * day_ms) == (start_ms + 2 * day_ms, 2)
    assert trigger.latest_ms(start_ms - day_ms, start_ms - 1) == (start_ms - day_ms, 0)


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("FREQ=WEEKLY;BYMONTH=1", LOOKS_OF_PAGES),
        ("FREQ=WEEKLY;INTERVAL=2;BYMONTH=1", LOOKS_OF_PAGES),
        ("FREQ=DAILY;INTERVAL=2;BYMONTH=1", 0),
        ("FREQ=DAILY;INTERVAL=3;BYMONTH=1", LOOKS_OF_PAGES),
        ("FREQ=DAILY;INTERVAL=14;BYMONTH=1", LOOKS_OF_PAGES),
        ("FREQ=MONTHLY;INTERVAL=24;BYMONTHDAY=1", 0),
        ("FREQ=MONTHLY;INTERVAL=36;BYMONTHDAY=1", LOOKS_OF_PAGES),
        ("FREQ=YEARLY;INTERVAL=99;BYWEEKNO=1", 0),
    ],
)
def test_a_rule_with_more_pages_than_are_kept_counts_for_more(text: str, looks: int) -> None:
    assert days_of(choice_of(read_recurrence(text), year_at(2027).first)).looks == looks


@pytest.mark.parametrize(
    ("nth", "said"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"),
     (21, "21st"), (101, "101st"), (111, "111th"), (112, "112th"), (113, "113th"), (122, "122nd"),
     (312, "312th"), (-1, "last"), (-2, "2nd to last"), (-11, "11th to last")],
)  # fmt: skip
def test_numbers_in_words(nth: int, said: str) -> None:
    assert ordinal(nth) == said


@pytest.mark.parametrize(("rules", "without", "told"), [(4, 4, False), (5, 4, True), (1, 8, True)])
def test_rules_and_what_they_leave_out_count_together(rules: int, without: int, told: bool) -> None:
    lines = ["RRULE:FREQ=DAILY"] * rules + ["EXRULE:FREQ=WEEKLY"] * without
    if told:
        with pytest.raises(RRuleMistake, match=r"^it has 9 rules; at most 8 are read$"):
            read_rule("\n".join(lines))
    else:
        assert len(read_rule("\n".join(lines)).rules) == rules


@pytest.mark.parametrize("weeks", [(1,), (53,), (-1,), (52, 1), (10, -53)])
def test_numbered_weeks_are_those_of_the_iso_calendar(weeks: tuple[int, ...]) -> None:
    """Of 28 years, which begin and end in every way that there is."""
    text = f"FREQ=YEARLY;BYWEEKNO={','.join(map(str, weeks))};BYDAY=MO,TU,WE,TH,FR,SA,SU"
    first, end = date(2015, 1, 1).toordinal(), date(2043, 1, 1).toordinal()
    expected = []
    for day in range(first, end):
        year, week, _ = date.fromordinal(day).isocalendar()
        last = date(year, 12, 28).isocalendar().week
        if week in weeks or week - last - 1 in weeks:
            expected.append(day - EPOCH)
    days = days_of(choice_of(read_recurrence(text), first - EPOCH))
    assert days.between(first - EPOCH, end - EPOCH) == expected


@pytest.mark.parametrize("start", ["SU", "WE"])
def test_a_week_that_begins_on_another_day_is_of_the_year_that_has_most_of_it(start: str) -> None:
    """Its first one holds the fourth of January."""
    text = f"FREQ=YEARLY;BYWEEKNO=1;WKST={start};BYDAY=MO,TU,WE,TH,FR,SA,SU"
    days = days_of(choice_of(read_recurrence(text), date(2015, 1, 1).toordinal() - EPOCH))
    begins = {"SU": 6, "WE": 2}[start]
    for year in range(2016, 2042):
        fourth = date(year, 1, 4).toordinal() - EPOCH
        first = fourth - (date(year, 1, 4).weekday() - begins) % 7
        assert days.between(first - 20, first + 20) == [*range(first, first + 7)]


@pytest.mark.parametrize("interval", [1, 2, 3, 5])
def test_of_every_so_many_weeks_the_days_of_some_months_are_taken(interval: int) -> None:
    text = f"FREQ=WEEKLY;INTERVAL={interval};BYDAY=MO,SA;BYMONTH=1,6,12"
    first = date(2027, 1, 6).toordinal()
    monday = first - 2
    expected = [
        day - EPOCH
        for day in range(first, first + 1_200)
        if (day - monday) // 7 % interval == 0
        and date.fromordinal(day).weekday() in (0, 5)
        and date.fromordinal(day).month in (1, 6, 12)
    ]
    days = days_of(choice_of(read_recurrence(text), first - EPOCH))
    assert days.between(first - EPOCH, first + 1_200 - EPOCH) == expected
    assert days.count(first - EPOCH, first + 1_200 - EPOCH) == len(expected)


@pytest.mark.parametrize(
    ("nth", "expected"),
    [("1FR", (2027, 1, 1)), ("-1FR", (2027, 12, 31)), ("53FR", (2027, 12, 31)),
     ("2MO", (2027, 1, 11)), ("-53FR", (2027, 1, 1))],
)  # fmt: skip
def test_numbered_weekdays_of_a_year_that_begins_and_ends_with_one(
    nth: str, expected: tuple[int, int, int]
) -> None:
    first = date(2027, 1, 1).toordinal() - EPOCH
    days = days_of(choice_of(read_recurrence(f"FREQ=YEARLY;BYDAY={nth}"), first))
    assert days.next_day(first) == date(*expected).toordinal() - EPOCH


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("FREQ=SECONDLY;INTERVAL=3600;BYHOUR=9,17", ["04T09:00Z", "04T17:00Z", "05T09:00Z"]),
        ("FREQ=DAILY;BYHOUR=9,17;BYSETPOS=-1", ["04T17:00Z", "05T17:00Z", "06T17:00Z"]),
        ("FREQ=SECONDLY;INTERVAL=1800;BYSETPOS=1;BYHOUR=9", ["04T09:00Z", "04T09:30Z",
                                                            "05T09:00Z"]),
    ],
)  # fmt: skip
def test_few_times_of_a_day(text: str, times: list[str]) -> None:
    assert [each.removeprefix("2027-01-") for each in shown(rrule(text), 3)] == times
