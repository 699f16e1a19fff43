"""A recurrence of RFC 5545 as values: the content of a text, once it is read.

    FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;BYHOUR=9;UNTIL=20271231T090000Z

    Recurrence    freq WEEKLY   interval 2   days (0, 0) (0, 4)   hours 9   until the Moment
    Moment        second 1 830 243 600   in_utc   no date

A rule at rest is its text, and each worker reads it again.  So these values may change from release
to release, and nothing that is kept depends on them.

Lists are sorted and hold each number once, so two texts that mean the same are equal values, and
share what is compiled of them (`rrule_choice`).  Parts that were not given are empty; values filled
from DTSTART are no part of it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

# From the longest to the shortest; those from HOURLY on have a cadence within a day.
FREQUENCIES: Final = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
WITHIN_A_DAY: Final = frozenset(FREQUENCIES[4:])


class RRuleMistake(ValueError):
    """A text that cannot be read; the message quotes what is wrong, and says what is allowed."""


class Moment(NamedTuple):
    """A time as it was written: seconds on the wall, or of UTC; a date is its midnight.

    `second` counts from 1970-01-01T00:00, on the wall or, where `in_utc`, of UTC.
    """

    second: int
    in_utc: bool
    is_date: bool


class Recurrence(NamedTuple):
    """One rule, read; `most` is its COUNT.

    A day of the week counts from 0, Monday, and has its number before it; 0 stands for each.
    """

    freq: str
    interval: int
    most: int | None
    until: Moment | None
    week_start: int
    days: tuple[tuple[int, int], ...]
    months: tuple[int, ...]
    weeks: tuple[int, ...]
    year_days: tuple[int, ...]
    month_days: tuple[int, ...]
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    positions: tuple[int, ...]

    @property
    def within_a_day(self) -> bool:
        """Whether it recurs by hours, minutes or seconds."""
        return self.freq in WITHIN_A_DAY

    @property
    def by_parts(self) -> bool:
        """Whether it chooses days by more than its period."""
        return bool(self.days or self.weeks or self.year_days or self.month_days)


class RuleText(NamedTuple):
    """All that a text says; `start` and `zone` are None where the request says them."""

    start: Moment | None
    zone: str | None
    rules: tuple[Recurrence, ...]
    without: tuple[Recurrence, ...]
    dates: tuple[Moment, ...]
    without_dates: tuple[Moment, ...]

    @property
    def is_one_rule(self) -> bool:
        """Whether it is a rule by itself: nothing is added, and nothing left out."""
        return len(self.rules) == 1 and not (self.without or self.dates or self.without_dates)
