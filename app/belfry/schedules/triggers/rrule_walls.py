"""Times on the wall of a rule of RFC 5545, and of a set of such rules: days, each with its times.

    RuleWalls   one rule from its DTSTART to its COUNT or UNTIL
    SetWalls    several rules and RDATEs together, without what EXRULEs and EXDATEs name

Both answer what `clock.Clock` asks, so changed clocks do to them what they do to cron.  A rule with
FREQ=DAILY or longer is *fixed*, one by hours, minutes or seconds has a *cadence*, and a set is
fixed where all of its rules are.

Nothing is walked through from DTSTART.  The days that are passed over to find the next time are
bounded (`MOST_EMPTY_DAYS`, and the bounds of `rrule_days`): a time that is further away counts as
never.

A rule is cut at both ends.  Its first day holds only the times from DTSTART on, its last one only
those up to UNTIL or to the last of COUNT, and all days between hold what the rule says:

    DTSTART 1 Jan 12:00, FREQ=DAILY;BYHOUR=9,17;COUNT=4
    1 Jan          2 Jan          3 Jan
    (09) 17        09   17        09  (17)          (…) is cut off

Where all days are *even*, which means that they have the same times, the end of COUNT is found by a
division.  With BYSETPOS, or a rhythm within the day, days are counted one by one, at most
`MOST_COUNTED_DAYS` of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from belfry.schedules.triggers.rrule_days import (
    DAY_S,
    EPOCH_ORDINAL,
    LAST_YEAR,
    Choice,
    choice_of,
    days_of,
    year_at,
    year_of,
)
from belfry.schedules.triggers.rrule_text import Recurrence
from belfry.schedules.triggers.rrule_times import (
    NONE,
    Times,
    TimesWithinADay,
    daily_times,
    picked,
)

# Days of a rule that hold no time, one after another: some milliseconds.
MOST_EMPTY_DAYS: Final = 1_600
# Days that are counted one by one to find where COUNT ends.
MOST_COUNTED_DAYS: Final = 8_000
MOST_KEPT: Final = 64
END_DAY: Final = year_at(LAST_YEAR).first


class Walls(ABC):
    """Wall seconds, as if no clock were ever changed."""

    fixed: bool
    # A cadence of all 24 hours loses no day, and every other one is looked at day by day.
    every_hour: Final = False

    @abstractmethod
    def next_day(self, day: int) -> int | None:
        """The first day from this one on that may hold times, or None."""

    @abstractmethod
    def times_on(self, day: int) -> Times:
        """The times of a day; none where it is no day of the rule."""

    def next_wall(self, wall: int) -> int | None:
        """The first wall second from this one on, or None."""
        day, second = divmod(wall, DAY_S)
        for _ in range(MOST_EMPTY_DAYS):
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
        self._daily = daily_times(rule, start) if self.fixed else NONE
        self._within = None if self.fixed else TimesWithinADay(rule, start)
        self._placed = placed(choice, rule, self._daily) if rule.positions and self.fixed else None
        # Whether the times are the same on each of its days.
        self._even = self.fixed and not rule.positions
        self._last_day = END_DAY
        self._cut: dict[int, Times] = {}
        self._cut[self._start_day] = self.times_on(self._start_day).cut(start % DAY_S, DAY_S)
        self.ends_in_sight = True
        last = until if rule.most is None else self._end_of(rule.most)
        if last is not None:
            self._end_with(last)

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
        if self._even:
            return self._daily
        if self._within is not None:
            return self._within.on(day)
        assert self._placed is not None, "a rule with BYSETPOS has its places"
        return self._placed.on(day)

    def count_days(self, first: int, last: int) -> int:
        """Days times times, where each day has as many."""
        first = max(first, self._start_day)
        if not self._even:
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
        found = self._even_end(left) if self._even else self._end_by_days(left)
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
        for _ in range(MOST_COUNTED_DAYS):
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


class Placed:
    """Days and times that BYSETPOS takes out of each period."""

    def __init__(self, choice: Choice, positions: tuple[int, ...], daily: Times) -> None:
        self._choice, self._positions, self._daily = choice, positions, daily
        self._days = days_of(choice)
        self._known: dict[int, dict[int, Times]] = {}

    def on(self, day: int) -> Times:
        """The times of a day, by what its period holds."""
        first, end = self._period(day)
        known = self._known.get(first)
        if known is None:
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            known = self._known[first] = self._taken(first, end)
        return known.get(day, NONE)

    def _taken(self, first: int, end: int) -> dict[int, Times]:
        days = self._days.between(first, end)
        size = len(self._daily)
        found: dict[int, list[int]] = {}
        for place in picked(len(days) * size, self._positions):
            at, rank = divmod(place, size)
            found.setdefault(days[at], []).append(self._daily.seconds[rank])
        return {day: Times(tuple(seconds)) for day, seconds in found.items()}

    def _period(self, day: int) -> tuple[int, int]:
        """First day and end of the period that holds a day."""
        if self._choice.freq == "DAILY":
            return day, day + 1
        if self._choice.freq == "WEEKLY":
            first = day - (day + 3 - self._choice.week_start) % 7
            return first, first + 7
        year = year_at(year_of(day))
        if self._choice.freq == "YEARLY":
            return year.first, year.first + year.size
        return month_of(day)


@lru_cache(maxsize=256)
def _placed(choice: Choice, positions: tuple[int, ...], daily: Times) -> Placed:
    return Placed(choice, positions, daily)


def placed(choice: Choice, rule: Recurrence, daily: Times) -> Placed:
    """The places of a rule, shared by all rules that choose so."""
    return _placed(choice, rule.positions, daily)


def month_of(day: int) -> tuple[int, int]:
    """First day of the month of a day, and that of the next one."""
    at = date.fromordinal(day + EPOCH_ORDINAL)
    first = day - at.day + 1
    return first, first + monthrange(at.year, at.month)[1]


class Excepted(NamedTuple):
    """What a set adds and leaves out besides its rules.

    `dates` (RDATE) and `without` (EXDATE) are wall seconds; `without_days` (EXDATE with dates) are
    days from 1970-01-01 on, of which nothing is left.
    """

    dates: tuple[int, ...]
    without: frozenset[int]
    without_days: frozenset[int]


class SetWalls(Walls):
    """The times of several rules together, less those that are left out."""

    def __init__(self, rules: list[Walls], without: list[Walls], dates: Excepted) -> None:
        self.fixed = all(rule.fixed for rule in rules)
        self._rules, self._without, self._excepted = rules, without, dates
        self._dates = _by_day(dates.dates)
        self._date_days = sorted(self._dates)
        self._left_out = _by_day(dates.without)
        self._known: dict[tuple[tuple[Times, ...], tuple[Times, ...]], Times] = {}
        self._of_dates: dict[int, Times] = {}

    def next_day(self, day: int) -> int | None:
        """The first day of any of its rules."""
        found = [each for rule in self._rules if (each := rule.next_day(day)) is not None]
        place = bisect_left(self._date_days, day)
        found += self._date_days[place : place + 1]
        return min(found) if found else None

    def times_on(self, day: int) -> Times:
        """What its rules have on a day, less what is left out; remembered for such days."""
        if day in self._excepted.without_days:
            return NONE
        if day in self._dates or day in self._left_out:
            found = self._of_dates.get(day)
            if found is None:
                if len(self._of_dates) >= MOST_KEPT:
                    self._of_dates.clear()
                found = self._of_dates[day] = self._with_dates(day)
            return found
        return self._joined(day)

    def _joined(self, day: int) -> Times:
        given = tuple(times for rule in self._rules if len(times := rule.times_on(day)))
        if not given:
            return NONE
        less = tuple(times for rule in self._without if len(times := rule.times_on(day)))
        if len(given) == 1 and not less:
            return given[0]
        found = self._known.get((given, less))
        if found is None:
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            left = set().union(*(each.seconds for each in given))
            left.difference_update(*(each.seconds for each in less))
            found = self._known[given, less] = Times(array("I", sorted(left)))
        return found

    def _with_dates(self, day: int) -> Times:
        found = set(self._joined(day).seconds)
        less = {second for rule in self._without for second in rule.times_on(day).seconds}
        found.update(self._dates.get(day, set()) - less)
        return Times(array("I", sorted(found - self._left_out.get(day, set()))))


def _by_day(walls: Iterable[int]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for wall in walls:
        found.setdefault(wall // DAY_S, set()).add(wall % DAY_S)
    return found
