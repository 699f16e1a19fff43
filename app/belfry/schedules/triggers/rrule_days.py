"""The days of a rule of RFC 5545, found without walking there from DTSTART.

Two sorts of rules have two sorts of days; a day counts from 1970-01-01.

    PeriodicDays   DAILY and WEEKLY with no other part than BYDAY: they repeat after a period, so
                   the n-th day is a division and a look into a short list
    YearlyDays     all others: a *page* for each sort of year holds the days of the year

    year       2040      2041      2042      …      2051
    page       leap,Su   Tu        We               Su            28 sorts of years at most, and
    days       1 15 40…  3 17 …    …                …             more where INTERVAL shifts them

A page depends on the first day's weekday, on the leap years here, before and after (numbers of
weeks), and on where INTERVAL stands at its beginning.  So pages are few, schedules with other
starts share them, and a rule that never matches is known after some of them.  Beside another rule
it is asked of each day of that one, so the year from which on none has a day is remembered, and so
is the stretch of days before the one that was found last.

FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR from Monday 2027-01-04 on, as `PeriodicDays` has it:

    period 14 days     Mo Tu We Th Fr Sa Su Mo Tu We Th Fr Sa Su │ Mo …
    offsets            0           4                             │ 14 …
    the 7th day        7 = 3 × 2 + 1, so it is 3 periods and offset 4 after the origin
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from calendar import isleap
from collections.abc import Iterator
from functools import lru_cache
from math import gcd, lcm
from typing import Final

from belfry.schedules.civil import Year, weekday_of, year_at, year_of
from belfry.schedules.triggers.rrule_choice import Choice, chosen, phase

LAST_YEAR: Final = 9_990
# How far a day is looked for, and how many pages one answer may need: some milliseconds.
MOST_YEARS: Final = 2_000
MOST_PAGES: Final = 60
# Years that begin alike have one page: a weekday, and which of it and the year before are leap, and
# for numbers of weeks the year after as well.
SORTS_OF_YEARS: Final = 7 * 3
SORTS_BY_WEEKS: Final = 7 * 4
# So many pages a rule keeps, and so many sets of times (`rrule_times.py`): most rules have fewer
# sorts of either, and then find each of them once. `rrule_cost.py` counts the cost of a rule by it.
MOST_KEPT: Final = 64
# Days that are found in the time that one takes where more pages are needed than are kept.
LOOKS_OF_PAGES: Final = 16


class Days(ABC):
    """The days of a rule, before and after its DTSTART.

    `looks` says how many days of other rules are found in the time that one of this takes; 0 for
    those whose days are remembered or computed.
    """

    looks: int = 0

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
        """A division; none where each day is one."""
        if self._period == 1:
            return day
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


class YearlyDays(Days):
    """Days that are found year by year."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._pages: dict[tuple[int, ...], array[int]] = {}
        # No year from this one on has a day.  It is known where one answer may need all pages: a
        # day that such a search does not find comes never again.
        self._ends = LAST_YEAR
        sorts = SORTS_BY_WEEKS if choice.weeks else SORTS_OF_YEARS
        phases = _phases(choice)
        self._few_pages = phases * sorts <= MOST_PAGES
        # The length of a search decides which times count as never, and how long that takes.  So
        # INTERVAL counts here as if no weekday said where it stands.
        weekdays = {"WEEKLY": 7, "DAILY": gcd(choice.interval, 7)}.get(choice.freq, 1)
        self.looks = 0 if phases * weekdays * sorts <= MOST_PAGES else LOOKS_OF_PAGES
        # From a day on the next one is known: no day lies between the two.
        self._gap = (0, -1)

    def next_day(self, day: int) -> int | None:
        """Most often a look into the page of its year; years without a day are searched once."""
        since, known = self._gap
        if since <= day <= known:
            return known
        ends = year_of(day)
        for year, days in self._from(ends):
            place = bisect_left(days, day - year.first)
            if place < len(days):
                found = int(year.first + days[place])
                self._gap = (day, found)
                return found
            # The first year may have days before this one.
            if days:
                ends = year.number + 1
        if self._few_pages:
            self._ends = min(self._ends, ends)
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
        """Years and their days, as many as may be looked at for one answer.

        Pages count as needed also where they are kept from before: an answer must not depend on
        earlier questions, for the next owner was not asked it.
        """
        step, needed = 1, set[tuple[int, ...]]()
        if self._choice.freq == "YEARLY":
            step = self._choice.interval
            number += (self._choice.anchor - number) % step
        for each in range(number, min(number + step * MOST_YEARS, self._ends), step):
            year = year_at(each)
            if self._holds_a_period(year):
                needed.add(self._key(year))
            if len(needed) > MOST_PAGES:
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
        # Its last days may be of the first week of the next year, which has 52 or 53 of them.
        after = isleap(year.number + 1) and bool(self._choice.weeks)
        sort = (year.weekday, year.leap, isleap(year.number - 1), after)
        return (*sort, phase(self._choice, year))


def _phases(choice: Choice) -> int:
    """In how many ways INTERVAL may stand when a year begins that is looked at, by its sort."""
    if choice.freq == "YEARLY":
        return 1
    # Of weeks, the weekday says the rest.
    known = {"MONTHLY": 12, "DAILY": 7}.get(choice.freq, 1)
    return choice.interval // gcd(choice.interval, known)


@lru_cache(maxsize=512)
def days_of(choice: Choice) -> Days:
    """The days of a choice, shared by all rules that choose so."""
    others = choice.months or choice.weeks or choice.year_days or choice.month_days
    if choice.freq in ("DAILY", "WEEKLY") and not others:
        return PeriodicDays(choice)
    return YearlyDays(choice)
