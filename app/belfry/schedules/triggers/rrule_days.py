"""The days of a rule of RFC 5545, found without walking there from DTSTART.

Two sorts of rules have two sorts of days; a day counts from 1970-01-01.

    PeriodicDays   DAILY and WEEKLY with no other part than BYDAY: they repeat after a period, so
                   the n-th day is a division and a look into a short list
    YearlyDays     all others: a *page* for each sort of year holds the days of the year

    year       2040      2041      2042      …      2051
    page       leap,Su   Tu        We               Su            28 sorts of years at most, and
    days       1 15 40…  3 17 …    …                …             more where INTERVAL shifts them

A page depends on the first day's weekday, on the leap years here and before (numbers of weeks), and
on where INTERVAL stands at its beginning.  So pages are few, schedules with other starts share
them, and a rule that never matches is known after some of them.

FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR from Monday 2027-01-04 on, as `PeriodicDays` has it:

    period 14 days     Mo Tu We Th Fr Sa Su Mo Tu We Th Fr Sa Su │ Mo …
    offsets            0           4                             │ 14 …
    the 7th day        7 = 3 × 2 + 1, so it is 3 periods and offset 4 after the origin

BY-parts that are lists of days narrow one another (RFC 5545, 3.3.10, the table): first the months
and days of months of the periods, then days of the year, then weeks, then weekdays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from calendar import isleap
from collections.abc import Iterable, Iterator
from datetime import date
from functools import lru_cache
from math import lcm
from typing import Final, NamedTuple

from belfry.schedules.triggers.rrule_text import Recurrence

DAY_S: Final = 86_400
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
LAST_YEAR: Final = 9_990
# How far a day is looked for, and how many pages are made for one answer: some milliseconds.
MOST_YEARS: Final = 2_000
MOST_PAGES: Final = 60
MOST_KEPT: Final = 64
_MONTHS: Final = ((0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365),
                  (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366))  # fmt: skip


class Choice(NamedTuple):
    """What of a rule chooses its days; `anchor` says where INTERVAL begins to count.

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


class Days(ABC):
    """The days of a rule, before and after its DTSTART."""

    @abstractmethod
    def next_day(self, day: int) -> int | None:
        """The first day from this one on, or None where it is too far to find."""

    @abstractmethod
    def count(self, start: int, end: int) -> int:
        """How many there are from `start` to `end` (exclusive)."""

    @abstractmethod
    def nth(self, number: int, start: int) -> int | None:
        """The day of this number, from 0, of those from `start` on; None where it is too far."""

    def between(self, start: int, end: int) -> list[int]:
        """Those from `start` to `end` (exclusive)."""
        found, day = [], self.next_day(start)
        while day is not None and day < end:
            found.append(day)
            day = self.next_day(day + 1)
        return found


class PeriodicDays(Days):
    """Days that repeat after a period."""

    def __init__(self, choice: Choice) -> None:
        weekdays = {weekday for _, weekday in choice.days}
        if choice.freq == "WEEKLY":
            self._origin, self._period = choice.anchor, 7 * choice.interval
            self._offsets = sorted((each - choice.week_start) % 7 for each in weekdays)
            return
        self._origin = choice.anchor
        self._period = lcm(choice.interval, 7) if weekdays else choice.interval
        self._offsets = [
            offset
            for offset in range(0, self._period, choice.interval)
            if not weekdays or weekday_of(self._origin + offset) in weekdays
        ]

    def next_day(self, day: int) -> int | None:
        """A division."""
        return self._day(self._rank(day)) if self._offsets else None

    def count(self, start: int, end: int) -> int:
        """A difference of two numbers."""
        return max(0, self._rank(end) - self._rank(start))

    def nth(self, number: int, start: int) -> int | None:
        """A sum, and a division."""
        return self._day(self._rank(start) + number) if self._offsets else None

    def _rank(self, day: int) -> int:
        periods, offset = divmod(day - self._origin, self._period)
        return periods * len(self._offsets) + bisect_left(self._offsets, offset)

    def _day(self, rank: int) -> int:
        periods, place = divmod(rank, len(self._offsets))
        return self._origin + periods * self._period + self._offsets[place]


class Year(NamedTuple):
    """A year as rules of days see it; `first` is its first day, counted from 1970-01-01."""

    number: int
    first: int
    leap: bool

    @property
    def size(self) -> int:
        """How many days it has."""
        return 365 + self.leap

    @property
    def weekday(self) -> int:
        """The day of the week on which it begins."""
        return weekday_of(self.first)


class YearlyDays(Days):
    """Days that are found year by year."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._pages: dict[tuple[int, ...], array[int]] = {}

    def next_day(self, day: int) -> int | None:
        """Most often a look into the page of its year."""
        for year, days in self._from(year_of(day)):
            place = bisect_left(days, day - year.first)
            if place < len(days):
                return int(year.first + days[place])
        return None

    def count(self, start: int, end: int) -> int:
        """Looks into the pages of the years between."""
        total = 0
        for number in range(year_of(start), year_of(end) + 1):
            year = year_at(number)
            days = self.page(year)
            total += bisect_left(days, end - year.first) - bisect_left(days, start - year.first)
        return max(0, total)

    def nth(self, number: int, start: int) -> int | None:
        """Counts years by their pages."""
        number += self.count(year_at(year_of(start)).first, start)
        for year, days in self._from(year_of(start)):
            if number < len(days):
                return int(year.first + days[number])
            number -= len(days)
        return None

    def _from(self, number: int) -> Iterator[tuple[Year, array[int]]]:
        """Years and their days, as many as may be looked at for one answer."""
        step, made = 1, 0
        if self._choice.freq == "YEARLY":
            step = self._choice.interval
            number += (self._choice.anchor - number) % step
        for each in range(number, min(number + step * MOST_YEARS, LAST_YEAR), step):
            year = year_at(each)
            made += self._holds_a_period(year) and self._key(year) not in self._pages
            if made > MOST_PAGES:
                return
            yield year, self.page(year)

    def _holds_a_period(self, year: Year) -> bool:
        """Whether its page costs anything: one without a month of the rule is empty at once."""
        if self._choice.freq != "MONTHLY":
            return True
        return -phase(self._choice, year) % self._choice.interval < 12

    def page(self, year: Year) -> array[int]:
        """The days of a year, counted from 0."""
        key = self._key(year)
        found = self._pages.get(key)
        if found is None:
            if len(self._pages) >= MOST_KEPT:
                self._pages.clear()
            found = self._pages[key] = array("h", sorted(chosen(self._choice, year)))
        return found

    def _key(self, year: Year) -> tuple[int, ...]:
        """All that a page depends on."""
        sort = (year.weekday, year.leap, isleap(year.number - 1))
        return (*sort, phase(self._choice, year))


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


def weekday_of(day: int) -> int:
    """The day of the week, from 0, Monday."""
    return (day + 3) % 7


def year_of(day: int) -> int:
    """The year that holds a day."""
    return date.fromordinal(EPOCH_ORDINAL + day).year


@lru_cache(maxsize=1_024)
def year_at(number: int) -> Year:
    """The year of this number."""
    return Year(number, date(number, 1, 1).toordinal() - EPOCH_ORDINAL, isleap(number))


def choice_of(rule: Recurrence, start_day: int) -> Choice:
    """What chooses the days of a rule that begins with this day; its gaps are filled from it."""
    at = date.fromordinal(EPOCH_ORDINAL + start_day)
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
    day = at.toordinal() - EPOCH_ORDINAL
    if freq == "YEARLY":
        return at.year % interval
    if freq == "MONTHLY":
        return (at.year * 12 + at.month - 1) % interval
    if freq == "WEEKLY":
        return (day - (at.weekday() - week_start) % 7) % (7 * interval)
    return day % interval


@lru_cache(maxsize=512)
def days_of(choice: Choice) -> Days:
    """The days of a choice, shared by all rules that choose so."""
    others = choice.months or choice.weeks or choice.year_days or choice.month_days
    if choice.freq in ("DAILY", "WEEKLY") and not others:
        return PeriodicDays(choice)
    return YearlyDays(choice)
