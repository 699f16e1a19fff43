"""Times on the wall of a rule of RFC 5545: days, each with its times.

    Walls       what is asked of a rule or of a set, answered day by day
    RuleWalls   one rule from its DTSTART to its COUNT or UNTIL
    SetWalls    several rules and dates together (`rrule_sets`)

They answer the questions of `clock.Clock`, so changed clocks affect them as they affect cron.  A
rule with FREQ=DAILY or longer is *fixed*, one by hours, minutes or seconds has a *cadence*, and a
set is fixed where all of its rules are.

Nothing is walked through from DTSTART.  The days that are passed over to find the next time are
bounded (`MOST_EMPTY_DAYS`, fewer where each takes long to find, and the bounds of `rrule_days`): a
time that is further away counts as never.

A rule is cut at both ends.  Its first day holds only the times from DTSTART on, its last one only
those up to UNTIL or to the last of COUNT, and all days between hold all times of the rule:

    DTSTART 1 Jan 12:00, FREQ=DAILY;BYHOUR=9,17;COUNT=4
    1 Jan          2 Jan          3 Jan
    (09) 17        09   17        09  (17)          (…) is cut off

Where all days are *even*, which means that they have the same times, the end of COUNT is found by a
division.  With BYSETPOS, or a rhythm within the day, days are counted one by one, at most
`MOST_COUNTED_DAYS` of them, and fewer where each takes longer (`rrule_cost`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from typing import Final

from belfry.schedules.civil import DAY_S, year_at
from belfry.schedules.triggers.rrule_choice import choice_of
from belfry.schedules.triggers.rrule_cost import looked_at
from belfry.schedules.triggers.rrule_days import LAST_YEAR, days_of
from belfry.schedules.triggers.rrule_times import NONE, Times, TimesWithinADay, daily_times, placed
from belfry.schedules.triggers.rrule_values import Recurrence

# Days of a rule that hold no time, one after another: some milliseconds.
MOST_EMPTY_DAYS: Final = 1_600
# Days that are counted one by one to find where COUNT ends.
MOST_COUNTED_DAYS: Final = 8_000
# The number of looks within one day, in place of a day of these.
LOOKED_AT: Final = 8
END_DAY: Final = year_at(LAST_YEAR).first


class Walls(ABC):
    """Wall seconds, as if no clock were ever changed."""

    fixed: bool
    # A cadence of all 24 hours loses no day, and every other one is looked at day by day.
    every_hour: Final = False
    # Whether the times are the same on each of its days.
    even: bool
    # The cost to find a day (`rrule_days.Days`), of all rules together.
    looks: int

    @abstractmethod
    def next_day(self, day: int) -> int | None:
        """The first day from this one on that may hold times, or None."""

    @abstractmethod
    def times_on(self, day: int) -> Times:
        """The times of a day; none where it is no day of the rule."""

    def next_wall(self, wall: int) -> int | None:
        """The first wall second from this one on, or None."""
        day, second = divmod(wall, DAY_S)
        for _ in range(MOST_EMPTY_DAYS // max(1, self.looks)):
            found = self.next_day(day)
            if found is None or found >= END_DAY:
                return None
            seconds = self.times_on(found).seconds
            rank = bisect_left(seconds, second) if found == day else 0
            if rank < len(seconds):
                return int(found * DAY_S + seconds[rank])
            day, second = found + 1, 0
        return None

    def last_wall(self, wall: int, from_wall: int) -> int | None:
        """The last wall second up to this one, not before `from_wall`, or None."""
        day, second = divmod(wall, DAY_S)
        first_day = from_wall // DAY_S
        while day >= first_day:
            seconds = self.times_on(day).seconds
            rank = bisect_right(seconds, second)
            if rank:
                found = int(day * DAY_S + seconds[rank - 1])
                return found if found >= from_wall else None
            day, second = day - 1, DAY_S
        return None

    def count(self, start: int, end: int) -> int:
        """How many wall seconds there are from `start` to `end` (exclusive)."""
        if end <= start:
            return 0
        (first, from_second), (last, to_second) = divmod(start, DAY_S), divmod(end, DAY_S)
        before = bisect_left(self.times_on(first).seconds, from_second) if from_second else 0
        within = bisect_left(self.times_on(last).seconds, to_second) if to_second else 0
        return self.count_days(first, last) + within - before

    def count_days(self, first: int, last: int) -> int:
        """How many times the days from `first` to `last` (exclusive) hold."""
        total, day = 0, self.next_day(first)
        while day is not None and day < last:
            total += len(self.times_on(day))
            day = self.next_day(day + 1)
        return total

    def ends_of_day(self, day: int) -> tuple[int, int]:
        """First and last wall second of a day; an empty span where it holds none."""
        seconds = self.times_on(day).seconds
        if not seconds:
            return 0, 0
        return int(day * DAY_S + seconds[0]), int(day * DAY_S + seconds[-1])

    def on_day(self, day: int) -> bool:
        """Whether a day holds any."""
        return bool(len(self.times_on(day)))


class RuleWalls(Walls):
    """The times of one rule, from `start` on and up to `until`, both wall seconds and inclusive."""

    def __init__(self, rule: Recurrence, start: int, until: int | None) -> None:
        self.fixed = not rule.within_a_day
        self._start_day = start // DAY_S
        choice = choice_of(rule, self._start_day)
        self._days = days_of(choice)
        self.looks = self._days.looks
        self._daily = daily_times(rule, start) if self.fixed else NONE
        self._within = None if self.fixed else TimesWithinADay(rule, start)
        self._placed = placed(choice, rule, self._daily) if rule.positions and self.fixed else None
        self.even = self.fixed and not rule.positions
        self._last_day = END_DAY
        self._cut: dict[int, Times] = {}
        self._cut[self._start_day] = self.times_on(self._start_day).cut(start % DAY_S, DAY_S)
        self.ends_in_sight = True
        takes = max(1, self.looks) * (1 + looked_at(rule) // LOOKED_AT)
        self._counted_days = MOST_COUNTED_DAYS // takes
        last = until if rule.most is None else self._end_of(rule.most)
        if last is not None:
            self._end_with(last)

    def next_wall(self, wall: int) -> int | None:
        """Between the first day and the last one, which may be cut, even days need one look."""
        day, second = divmod(wall, DAY_S)
        if self.even and self._start_day < day:
            seconds = self._daily.seconds
            found = self._days.next_day(day if second <= seconds[-1] else day + 1)
            if found is not None and found < self._last_day:
                rank = bisect_left(seconds, second) if found == day else 0
                return int(found * DAY_S + seconds[rank])
        return super().next_wall(wall)

    def next_day(self, day: int) -> int | None:
        """By the days of the rule."""
        found = self._days.next_day(max(day, self._start_day))
        return found if found is not None and found <= self._last_day else None

    def times_on(self, day: int) -> Times:
        """The times of a day."""
        found = self._cut.get(day)
        if found is not None:
            return found
        if not self._start_day <= day <= self._last_day or self._days.next_day(day) != day:
            return NONE
        if self.even:
            return self._daily
        if self._within is not None:
            return self._within.on(day)
        assert self._placed is not None, "a rule with BYSETPOS has its places"
        return self._placed.on(day)

    def count_days(self, first: int, last: int) -> int:
        """Days times times, where each day has as many."""
        first = max(first, self._start_day)
        if not self.even:
            return super().count_days(first, last)
        inner_first, inner_last = max(first, self._start_day + 1), min(last, self._last_day)
        if inner_last <= inner_first:
            return super().count_days(first, last)
        days = self._days.count(inner_first, inner_last)
        edges = sum(
            len(self.times_on(day))
            for day in {self._start_day, self._last_day}
            if first <= day < last
        )
        return days * len(self._daily) + edges

    def _end_of(self, count: int) -> int | None:
        """The wall second of the last of so many times, or None where it is too far to find."""
        left = count - len(self._cut[self._start_day])
        if left <= 0:
            seconds = self._cut[self._start_day].seconds
            return int(self._start_day * DAY_S + seconds[count - 1])
        found = self._even_end(left) if self.even else self._end_by_days(left)
        self.ends_in_sight = found is not None
        return found

    def _even_end(self, left: int) -> int | None:
        days, rank = divmod(left - 1, len(self._daily))
        day = self._days.nth(days, self._start_day + 1)
        if day is None or day >= END_DAY:
            return None
        return int(day * DAY_S + self._daily.seconds[rank])

    def _end_by_days(self, left: int) -> int | None:
        day = self._start_day
        for _ in range(self._counted_days):
            found = self.next_day(day + 1)
            if found is None:
                return None
            day, seconds = found, self.times_on(found).seconds
            if left <= len(seconds):
                return int(day * DAY_S + seconds[left - 1])
            left -= len(seconds)
        return None

    def _end_with(self, last: int) -> None:
        day, second = divmod(last, DAY_S)
        if day < self._start_day:
            self._cut[self._start_day] = NONE
        else:
            self._cut[day] = self.times_on(day).cut(0, second + 1)
        self._last_day = day
