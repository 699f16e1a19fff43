"""The times on the wall that a cron expression allows, as if no clock were ever changed.

`cron_text` reads the expression.  Its days depend on how long a month is and on which weekday it
begins, so a month's days are one of 28 sets of bits, and days are found and counted by months:

    15W,L in August 2026, which begins on a Saturday       the 14th, for the 15th is a Saturday
    day    1            14               31                and the 31st
    bit    0............13...............30

There are seven weekdays to begin on and four lengths, so 28 sets at most are ever made.  A year
is twelve looks into a dictionary; the days of a set are counted by one instruction.

    next_wall       is the day in the set, and is a time left on it?  else the next day's first time
    count           (days between) × (times of a day), and what the two edges add or take
    last_wall       backwards from the end, day by day

The times of a day are the product of hours, minutes and seconds.  Hours and minutes are kept as one
sorted list of minutes, and seconds as another, so a rank is a sum of two searches.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from belfry.schedules.civil import DAY_S, LAST_DAY, WEEK, Month, month_after, month_of, weekday_of
from belfry.schedules.triggers.cron_text import CronFields, read_cron

# A day that does not come within so many years comes never: 29 February falls on each weekday at
# least once in 40 years.
HORIZON_YEARS: Final = 50
# How many expressions are remembered: previews of many rules must not fill a worker's memory.
# An expression with its days and instants takes some 20 kB.
MOST_KEPT: Final = 4_096
# In cron Sunday is 0.
_SATURDAY: Final = 6


class Expression:
    """Wall-clock seconds that an expression allows, as if no clock were ever changed.

    A wall second counts from 1970-01-01T00:00 on the wall.  The seconds of a day that are allowed
    are ranked, so that counting them costs no more than finding one.  It never changes but for what
    it remembers, so all partitions share it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        fields = self._fields = read_cron(text)
        hours, minutes = sorted(fields.hours), sorted(fields.minutes)
        self._minutes = array("H", (hour * 60 + minute for hour in hours for minute in minutes))
        self._seconds = array("H", sorted(fields.seconds))
        self.per_day = len(self._minutes) * len(self._seconds)
        self.every_hour = len(hours) == 24
        self.either_day = fields.either_day
        self.fixed = fields.fixed
        self._every_day = fields.every_day
        # The days of months of one size that begin on one weekday, a bit each.
        self._days_of: dict[tuple[int, int], int] = {}
        # The month that was looked at last, for the next day is mostly in it: its first day, the
        # one after its last, and its days.  One value, since partitions share an expression.
        self._looked_at = (0, 0, 0)

    def next_wall(self, wall: int) -> int | None:
        """The first allowed wall second from this one on, or None."""
        day, second = divmod(wall, DAY_S)
        if self.on_day(day):
            rank = self._rank(second)
            if rank < self.per_day:
                return day * DAY_S + self._ranked(rank)
        next_day = self._next_day(day + 1)
        return None if next_day is None else next_day * DAY_S + self._ranked(0)

    def last_wall(self, wall: int, from_wall: int) -> int | None:
        """The last allowed wall second up to this one, not before `from_wall`, or None."""
        day, second = divmod(wall, DAY_S)
        first_day = from_wall // DAY_S
        rank = self._rank(second + 1) - 1
        while day >= first_day:
            if rank >= 0 and self.on_day(day):
                found = day * DAY_S + self._ranked(rank)
                return found if found >= from_wall else None
            day, rank = day - 1, self.per_day - 1
        return None

    def count(self, start: int, end: int) -> int:
        """How many wall seconds from `start` to `end` (exclusive) are allowed."""
        if end <= start:
            return 0
        (first, from_second), (last, to_second) = divmod(start, DAY_S), divmod(end, DAY_S)
        before = self._rank(from_second) if self.on_day(first) else 0
        within = self._rank(to_second) if to_second and self.on_day(last) else 0
        return self._count_days(first, last) * self.per_day + within - before

    def ends_of_day(self, day: int) -> tuple[int, int]:
        """First and last wall second of a day that is allowed."""
        return day * DAY_S + self._ranked(0), day * DAY_S + self._ranked(self.per_day - 1)

    def on_day(self, day: int) -> bool:
        """Whether a day, counted from 1970-01-01, is allowed."""
        if self._every_day:
            return True
        first, _, days = self._around(day)
        return bool(days >> (day - first) & 1)

    def _around(self, day: int) -> tuple[int, int, int]:
        """First day and end of the month of a day, and which of its days are allowed."""
        found = self._looked_at
        if not found[0] <= day < found[1]:
            month = month_of(day)
            found = month.first, month.first + month.size, self._days(month)
            self._looked_at = found
        return found

    def _days(self, month: Month) -> int:
        """The allowed days of a month, bit 0 its first."""
        fields = self._fields
        if month.number not in fields.months or (fields.years and month.year not in fields.years):
            return 0
        begins = (weekday_of(month.first) + 1) % WEEK
        found = self._days_of.get((month.size, begins))
        if found is None:
            found = self._days_of[month.size, begins] = _days_of(fields, month.size, begins)
        return found

    def _next_day(self, day: int) -> int | None:
        if self._every_day:
            return day if day <= LAST_DAY else None
        if day > LAST_DAY:
            return None
        first, _, days = self._around(day)
        days >>= day - first
        found = day + (days & -days).bit_length() - 1 if days else self._in_later_month(day)
        return None if found is None or found > LAST_DAY else found

    def _in_later_month(self, day: int) -> int | None:
        """The first allowed day in a month after the one of this day."""
        month = month_of(day)
        last_year = max(self._fields.years, default=month.year + HORIZON_YEARS)
        while month.year <= last_year and month.first <= LAST_DAY:
            month = month_after(month)
            days = self._days(month)
            if days:
                return month.first + (days & -days).bit_length() - 1
        return None

    def _count_days(self, first: int, end: int) -> int:
        """How many days from `first` to `end` (exclusive) are allowed."""
        if self._every_day or end <= first:
            return end - first
        month = month_of(first)
        days = self._days(month) >> (first - month.first)
        total = days.bit_count()
        while month.first + month.size < end:
            month = month_after(month)
            days = self._days(month)
            total += days.bit_count()
        return total - (days >> (end - max(first, month.first))).bit_count()

    def _rank(self, second: int) -> int:
        """How many allowed seconds of a day lie before this one."""
        minute, rest = divmod(second, 60)
        place = bisect_left(self._minutes, minute)
        rank = place * len(self._seconds)
        if place < len(self._minutes) and self._minutes[place] == minute:
            rank += bisect_left(self._seconds, rest)
        return rank

    def _ranked(self, rank: int) -> int:
        minute, second = divmod(rank, len(self._seconds))
        return self._minutes[minute] * 60 + self._seconds[second]


@lru_cache(maxsize=MOST_KEPT)
def expression(text: str) -> Expression:
    """The expression that a text holds; raises `CronMistake`."""
    return Expression(text)


def _days_of(fields: CronFields, size: int, begins: int) -> int:
    """The allowed days of a month of `size` days that begins on a weekday (Sunday 0), as bits."""
    by_month = sum({1 << day - 1 for day in _by_number(fields, size, begins) if 1 <= day <= size})
    weekdays = fields.weekdays
    by_week = 0
    for day in range(1, size + 1):
        weekday = (begins + day - 1) % WEEK
        is_last = day + 7 > size and weekday in weekdays.last
        if is_last or weekday in weekdays.each or (weekday, (day + 6) // 7) in weekdays.nth:
            by_week |= 1 << day - 1
    return by_month | by_week if fields.either_day else by_month & by_week


def _by_number(fields: CronFields, size: int, begins: int) -> Iterator[int]:
    """Days by their numbers, and by their distance from the month's end."""
    days = fields.days
    yield from days.days
    yield from (size - each for each in days.from_end)
    near = days.nearest | {size - each for each in days.nearest_from_end}
    for day in near:
        if 1 <= day <= size:
            yield _nearest(day, size, (begins + day - 1) % WEEK)


def _nearest(day: int, size: int, weekday: int) -> int:
    """The day from Monday to Friday of the same month that is nearest to this one."""
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < size else day - 2
    return day
