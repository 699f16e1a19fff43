"""The days off of a calendar: at rest as bytes, and as the answers that a trigger asks for.

At rest a calendar is a byte with the weekend, then the days as distances, seven bits a byte: about
one byte for each day.  Christmas and the Monday after it, with weekends, in 2026:

    60           SAT and SUN, bits 5 and 6
    cc a2 01     20812, 2026-12-25: 0x4c + (0x22 << 7) + (0x01 << 14)
    03           3 days later, 2026-12-28

The distances are LEB128 numbers, as in DWARF and Protocol Buffers: low bits first, and bit 7 says
that another byte follows.  The same days give the same bytes, so an unchanged calendar is found by
comparing.  The bytes lie in the rule of each schedule that names the calendar
(`triggers/encoding`), so a fire needs no look at the calendar itself.

    Thu 24   Fri 25   Sat 26   Sun 27   Mon 28   Tue 29
             ██████   ██████   ██████   ██████
    business_from(25) is 29, business_to(28) is 24, off_from(29) is the next Saturday

Searches go day by day.  They end because `calendars` lets no more than 366 days off follow one
another.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from belfry.schedules.civil import WEEK, date_of, weekday_of

# In the order of the bits of the weekend's byte.
DAY_NAMES: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_MORE: Final = 0x80
_SEVEN: Final = 0x7F


class DaysOff:
    """Which days, counted from 1970-01-01, are off; from the bytes of a calendar at rest.

    A checked calendar has a business day within 366 days of any day, so the loops here end.
    """

    def __init__(self, packed: bytes) -> None:
        self._weekend = packed[0]
        self._days = _unpacked(packed[1:])
        self._set = frozenset(self._days)

    @property
    def dates(self) -> list[str]:
        """The dates that are named, as ISO 8601 writes them."""
        return [date_of(day).isoformat() for day in self._days]

    @property
    def weekend(self) -> list[str]:
        """The names of the days that are off in each week."""
        return [name for place, name in enumerate(DAY_NAMES) if self._weekend >> place & 1]

    def off(self, day: int) -> bool:
        """Whether a day is off."""
        return day in self._set or bool(self._weekend >> weekday_of(day) & 1)

    def business_from(self, day: int) -> int:
        """The first business day, from this one on."""
        while self.off(day):
            day += 1
        return day

    def business_to(self, day: int) -> int:
        """The last business day, up to this one."""
        while self.off(day):
            day -= 1
        return day

    def off_from(self, day: int) -> int | None:
        """The first day off, from this one on, or None."""
        place = bisect_left(self._days, day)
        found = self._days[place] if place < len(self._days) else None
        if not self._weekend:
            return found
        for weekday in range(day, day + WEEK):
            if weekday == found or self.off(weekday):
                return weekday
        raise AssertionError("a weekend comes each week")

    def longest(self) -> int:
        """The most days off in a row.

        A run that is longer than a weekend holds a named date, so it is enough to look around each
        of them, and around the days of one week for the weekend itself.
        """
        most = begin = 0
        for day in (*self._days, *range(WEEK)):
            if day < begin:
                continue
            begin = self.business_from(day)
            first = self.business_to(day)
            most = max(most, begin - first - 1)
        return most

    def counted(self, from_day: int, until_day: int) -> int:
        """How many dates are named from one day up to another."""
        return bisect_right(self._days, until_day) - bisect_left(self._days, from_day)


@lru_cache(maxsize=1024)
def days_off(packed: bytes) -> DaysOff:
    """The days of a calendar at rest; shared, so never change it."""
    return DaysOff(packed)


def packed_days(days: Iterable[int], weekend: Iterable[int] = ()) -> bytes:
    """A calendar at rest: of numbers of days, and of places of weekdays (0 is Monday)."""
    found = bytearray((sum(1 << place for place in set(weekend)),))
    before = 0
    for day in sorted(set(days)):
        left, before = day - before, day
        while left > _SEVEN:
            found.append(left & _SEVEN | _MORE)
            left >>= 7
        found.append(left)
    return bytes(found)


def _unpacked(packed: bytes) -> tuple[int, ...]:
    days: list[int] = []
    day = shift = 0
    for byte in packed:
        day += (byte & _SEVEN) << shift
        shift += 7
        if byte < _MORE:
            days.append(day)
            shift = 0
    return tuple(days)
