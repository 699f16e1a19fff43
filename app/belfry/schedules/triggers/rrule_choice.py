"""The parts of a rule of RFC 5545 that choose its days, and the days of a year that they choose.

A `Choice` holds the parts of a rule that its days depend on, without times, start and end.  Parts
that the rule leaves out are filled from DTSTART, and where INTERVAL begins to count is kept as
small as can be.  So rules with many starts have one choice, and share all that is made of it:

    FREQ=MONTHLY               from 2027-01-31 on     MONTHLY, 1, month_days 31
    FREQ=MONTHLY               from 2031-05-31 on     the same
    FREQ=MONTHLY;BYDAY=-1FR    from 2027-01-31 on     MONTHLY, 1, days (-1, Friday)

BY-parts that are lists of days narrow one another (RFC 5545, 3.3.10, the table).  `chosen` takes
them in this order, over one year:

    FREQ, INTERVAL, BYMONTH, BYMONTHDAY    the months and days of months of the periods
    BYYEARDAY                              days of the year
    BYWEEKNO                               weeks; a week is of the year that has most of its days
    BYDAY                                  weekdays, each or by number

Days of a year count from 0 here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Final, NamedTuple

from belfry.schedules.civil import Year, date_of, day_number, weekday_of, year_at
from belfry.schedules.triggers.rrule_values import Recurrence

_MONTHS: Final = ((0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365),
                  (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366))  # fmt: skip


class Choice(NamedTuple):
    """The parts of a rule that choose its days; `anchor` says where INTERVAL begins to count.

    Parts that the rule leaves out are filled from DTSTART where RFC 5545 says so: FREQ=MONTHLY from
    31 January on has `month_days` 31, and so no day in February.  Rules with equal choices share
    their `Days`, whatever their times, starts and ends.
    """

    freq: str
    interval: int
    anchor: int
    week_start: int
    days: tuple[tuple[int, int], ...]
    months: tuple[int, ...]
    weeks: tuple[int, ...]
    year_days: tuple[int, ...]
    month_days: tuple[int, ...]


def choice_of(rule: Recurrence, start_day: int) -> Choice:
    """The choice of days of a rule that begins with this day; its gaps are filled from it."""
    at = date_of(start_day)
    days, months, month_days = rule.days, rule.months, rule.month_days
    if not rule.by_parts:
        if rule.freq == "YEARLY":
            months, month_days = months or (at.month,), (at.day,)
        elif rule.freq == "MONTHLY":
            month_days = (at.day,)
        elif rule.freq == "WEEKLY":
            days = ((0, at.weekday()),)
    freq, interval = ("DAILY", 1) if rule.within_a_day else (rule.freq, rule.interval)
    anchor = _anchor(freq, interval, rule.week_start, at)
    lists = (days, months, rule.weeks, rule.year_days, month_days)
    return Choice(freq, interval, anchor, rule.week_start, *lists)


def _anchor(freq: str, interval: int, week_start: int, at: date) -> int:
    """Where INTERVAL counts from, as small as can be, so that rules with other starts share it."""
    day = day_number(at)
    if freq == "YEARLY":
        return at.year % interval
    if freq == "MONTHLY":
        return (at.year * 12 + at.month - 1) % interval
    if freq == "WEEKLY":
        return (day - (at.weekday() - week_start) % 7) % (7 * interval)
    return day % interval


def phase(choice: Choice, year: Year) -> int:
    """Where INTERVAL stands when a year begins."""
    if choice.freq == "YEARLY":
        return (year.number - choice.anchor) % choice.interval and 1
    if choice.freq == "MONTHLY":
        return (year.number * 12 - choice.anchor) % choice.interval
    days = choice.interval * (7 if choice.freq == "WEEKLY" else 1)
    return (year.first - choice.anchor) % days


def chosen(choice: Choice, year: Year) -> set[int]:
    """The days of a year, counted from 0, that a rule chooses."""
    found = set(_period_days(choice, year))
    if choice.year_days:
        found.intersection_update(_from_either_end(choice.year_days, year.size))
    if choice.weeks and found:
        found.intersection_update(_week_days(choice, year))
    if choice.days and found:
        found.intersection_update(_weekdays(choice, year))
    return found


def _period_days(choice: Choice, year: Year) -> Iterable[int]:
    """The days of the periods, months and days of months that are asked for."""
    days: Iterable[int]
    at = phase(choice, year)
    if choice.freq == "YEARLY" and at:
        return ()
    if choice.freq == "DAILY":
        days = range(-at % choice.interval, year.size, choice.interval)
    elif choice.freq == "WEEKLY" and choice.interval > 1:
        days = (day for day in range(year.size) if (at + day) // 7 % choice.interval == 0)
    else:
        days = range(year.size)
    if not choice.months and not choice.month_days and choice.freq != "MONTHLY":
        return days
    in_months: set[int] = set()
    for month in choice.months or range(1, 13):
        if choice.freq == "MONTHLY" and (at + month - 1) % choice.interval:
            continue
        first, size = _month(year, month)
        places = choice.month_days
        offsets = _from_either_end(places, size) if places else range(size)
        in_months.update(first + offset for offset in offsets)
    return in_months.intersection(days)


def _month(year: Year, month: int) -> tuple[int, int]:
    """First day and size of a month."""
    edges = _MONTHS[year.leap]
    return edges[month - 1], edges[month] - edges[month - 1]


def _from_either_end(places: tuple[int, ...], size: int) -> Iterator[int]:
    """Places from 1 on, or from -1 backwards, as offsets from 0."""
    for place in places:
        offset = place - 1 if place > 0 else size + place
        if 0 <= offset < size:
            yield offset


def _weekdays(choice: Choice, year: Year) -> Iterator[int]:
    spans = [(0, year.size)]
    if choice.freq == "MONTHLY" or choice.months:
        spans = [_month(year, month) for month in choice.months or range(1, 13)]
    for nth, weekday in choice.days:
        for first, size in spans:
            start = first + (weekday - year.weekday - first) % 7
            days = range(start, first + size, 7)
            if not nth:
                yield from days
            elif -len(days) <= nth <= len(days):
                yield days[nth - 1 if nth > 0 else nth]


def _week_days(choice: Choice, year: Year) -> Iterator[int]:
    """The days of the numbered weeks: a week is of the year that has four of its days or more."""
    for day in range(year.size):
        start = day - (year.weekday + day - choice.week_start) % 7
        of_year = year.number + (start + 3 >= year.size) - (start + 3 < 0)
        first = first_week(year_at(of_year), choice.week_start)
        number = (year.first + start - first) // 7 + 1
        most = (first_week(year_at(of_year + 1), choice.week_start) - first) // 7
        if number in choice.weeks or number - most - 1 in choice.weeks:
            yield day


def first_week(year: Year, week_start: int) -> int:
    """The day on which the first week of a year begins: that of its fourth of January."""
    fourth = year.first + 3
    return fourth - (weekday_of(fourth) - week_start) % 7
