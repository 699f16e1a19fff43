"""Days, months and years of the civil calendar, where a day is a number counted from 1970-01-01.

    day            -1           0            20 423
    date           1969-12-31   1970-01-01   2025-12-01
    weekday_of     2, Wed       3, Thu       0, Mon

A day as a number can be added, compared and divided, which dates of the standard library cannot.
It has no zone: whose midnight begins it, the zone of a rule says (`triggers/days.py`).
Calendars, cron expressions and rules of RFC 5545 all count so, and their tests compare them with
`datetime`.

The calendar is that of ISO 8601: the Gregorian one, also for days before it was in use.
"""

from __future__ import annotations

from calendar import isleap
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

DAY_S: Final = 86_400
WEEK: Final = 7
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
# A day after which no date can be asked for any more; a year less than the last one that there is.
LAST_DAY: Final = date.max.toordinal() - _EPOCH_ORDINAL - 366
_SIZES: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Month(NamedTuple):
    """A month: year, number, its first day, and how many it has."""

    year: int
    number: int
    first: int
    size: int


class Year(NamedTuple):
    """A year as rules of days see it; `first` is its first day."""

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


def day_number(day: date) -> int:
    """The number of a date."""
    return day.toordinal() - _EPOCH_ORDINAL


def date_of(day: int) -> date:
    """The date of a day; ValueError beyond the years 1 to 9999."""
    return date.fromordinal(_EPOCH_ORDINAL + day)


def weekday_of(day: int) -> int:
    """The day of the week, from 0, Monday."""
    return (day + 3) % WEEK


def month_of(day: int) -> Month:
    """The month of a day."""
    at = date_of(day)
    return Month(at.year, at.month, day - at.day + 1, _size(at.year, at.month))


def month_after(month: Month) -> Month:
    """The month that follows."""
    year, number = (month.year + 1, 1) if month.number == 12 else (month.year, month.number + 1)
    return Month(year, number, month.first + month.size, _size(year, number))


def year_of(day: int) -> int:
    """The year that holds a day."""
    return date_of(day).year


@lru_cache(maxsize=1_024)
def year_at(number: int) -> Year:
    """The year of this number."""
    return Year(number, day_number(date(number, 1, 1)), isleap(number))


def _size(year: int, number: int) -> int:
    """How many days a month has."""
    return _SIZES[number] + (number == 2 and isleap(year))
