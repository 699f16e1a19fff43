"""BYWEEKNO against the ISO calendar: each number, over all sorts of years.

    2010-12-27 … 2011-01-02      week 52 of 2010, and -1: 2010 has 52
    2020-12-28 … 2021-01-03      week 53 of 2020, and -1
    2024-12-30 … 2025-01-05      week 1 of 2025, and -52

A week is of the year in which its fourth day lies. With WKST=MO that is what `date.isocalendar`
says, and other weeks begin on another day.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Final

import pytest

from belfry.schedules.rule import Rule
from belfry.schedules.triggers import trigger_by

# A calendar comes round after 28 years while every fourth year is a leap year.
FIRST, END = date(1998, 1, 1), date(2027, 1, 1)
DAYS: Final = [FIRST + timedelta(each) for each in range((END - FIRST).days)]
WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
NUMBERS: Final = [*range(1, 54), *range(-53, 0)]


def week_of(day: date, week_start: int) -> tuple[int, int]:
    """The year and the number of a day's week, where weeks begin on `week_start`, 0 for Monday."""
    fourth = day - timedelta((day.weekday() - week_start) % 7 - 3)
    return fourth.year, (fourth.timetuple().tm_yday - 1) // 7 + 1


@cache
def last_week(year: int, week_start: int) -> int:
    """The number of a year's last week; one that begins in December may be of the next year."""
    around = (week_of(date(year, 12, each), week_start) for each in range(25, 32))
    return max(number for of_year, number in around if of_year == year)


def numbers_of(day: date, week_start: int) -> tuple[int, int]:
    """A day's week, counted from the beginning of its year and from the end."""
    year, number = week_of(day, week_start)
    return number, number - last_week(year, week_start) - 1


def found(number: int, week_start: int) -> list[date]:
    """The days of a rule that asks for each day of the weeks of this number."""
    rule = f"FREQ=YEARLY;WKST={WEEKDAYS[week_start]};BYWEEKNO={number};BYDAY={','.join(WEEKDAYS)}"
    trigger = trigger_by(Rule("RRULE", f"DTSTART:{FIRST:%Y%m%d}T000000\nRRULE:{rule}", "UTC"))
    days: list[date] = []
    due_ms = trigger.first_ms(0)
    while due_ms is not None:
        day = datetime.fromtimestamp(due_ms / 1000, UTC).date()
        if day >= END:
            break
        days.append(day)
        due_ms = trigger.after_ms(due_ms)
    return days


def test_weeks_from_monday_are_those_of_the_iso_calendar() -> None:
    assert [week_of(each, 0) for each in DAYS] == [each.isocalendar()[:2] for each in DAYS]


@pytest.mark.parametrize("week_start", range(7), ids=WEEKDAYS)
def test_each_number_has_the_days_of_its_weeks(week_start: int) -> None:
    wanted: dict[int, list[date]] = {number: [] for number in NUMBERS}
    for day in DAYS:
        for number in numbers_of(day, week_start):
            wanted[number].append(day)
    for number in NUMBERS:
        assert found(number, week_start) == wanted[number], number
