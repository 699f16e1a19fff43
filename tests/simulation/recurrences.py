"""Recurrences of RFC 5545 as a seed draws them, and their times on the wall, found by looking.

    FREQ=SECONDLY;INTERVAL=3          each third second from DTSTART on
    FREQ=DAILY;BYHOUR=2;BYMINUTE=30   a time matches where its hour, minute and second are named

Each part of a time is named, or is any, so whether a time belongs to a rule is seen at the time
itself.  Only a COUNT asks for those before it, which are walked through day by day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import cache
from itertools import islice
from typing import Final

WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
LONG: Final = ("DAILY", "WEEKLY")
DAY: Final = timedelta(days=1)
SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """One rule; an empty list of numbers allows all.

    `interval` is that of SECONDLY alone; all other frequencies name each of their smaller parts.
    """

    freq: str
    interval: int = 1
    weekdays: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    seconds: tuple[int, ...] = ()
    count: int | None = None

    @property
    def fixed(self) -> bool:
        """Whether it means times of a day, and not a cadence."""
        return self.freq in LONG

    @property
    def text(self) -> str:
        """As RFC 5545 writes it."""
        parts = [f"FREQ={self.freq}"]
        parts += [f"INTERVAL={self.interval}"] if self.interval > 1 else []
        days = ",".join(WEEKDAYS[each] for each in self.weekdays)
        parts += [f"BYDAY={days}"] if days else []
        for name, some in (("HOUR", self.hours), ("MINUTE", self.minutes)):
            parts += [f"BY{name}={_listed(some)}"] if some else []
        parts += [f"BYSECOND={_listed(self.seconds)}"] if self.seconds else []
        parts += [f"COUNT={self.count}"] if self.count else []
        return ";".join(parts)

    def holds(self, at: datetime, begin: datetime) -> bool:
        """Whether a time on the wall is one of the rule's, from its DTSTART on."""
        if self.count is not None:
            return at in _first(self, begin)
        return at >= begin and self._matches(at, begin)

    def _matches(self, at: datetime, begin: datetime) -> bool:
        if (at - begin) // SECOND % self.interval:
            return False
        parts = (
            (self.weekdays, at.weekday()),
            *((self.hours, at.hour), (self.minutes, at.minute), (self.seconds, at.second)),
        )
        return all(not some or part in some for some, part in parts)

    def walked(self, begin: datetime) -> Iterator[datetime]:
        """Its times one by one from DTSTART on."""
        day = datetime.combine(begin.date(), time.min)
        while True:
            for minute in self.minutes_of(day):
                if minute + MINUTE <= begin:
                    continue
                for second in self.seconds or range(60):
                    at = minute + second * SECOND
                    if at >= begin and self._matches(at, begin):
                        yield at
            day += DAY

    def minutes_of(self, day: datetime) -> Iterator[datetime]:
        """The minutes of a day in which it may have times."""
        if not self.weekdays or day.weekday() in self.weekdays:
            for hour in self.hours or range(24):
                for minute in self.minutes or range(60):
                    yield day + timedelta(hours=hour, minutes=minute)


@cache
def _first(rule: Recurrence, begin: datetime) -> frozenset[datetime]:
    """So many of its times from DTSTART on as it counts."""
    return frozenset(islice(rule.walked(begin), rule.count))


def _listed(some: Iterable[int]) -> str:
    return ",".join(map(str, some))
