"""The times of several rules of RFC 5545 together, less those that are left out.

A set is made of the lines of a text: RRULEs and RDATEs add, EXRULEs and EXDATEs take away.

                            Thu 1     Fri 2     Sat 3     Sun 4     Mon 5
    RRULE   each day at 09  09        09        09        09        09
    RDATE   the 2nd at 12             12
    EXRULE  SA,SU at 09                         09        09
    EXDATE  the 1st         all
    what is left            none      09 12     none      none      09

The times of several rules on a day are a union, so a time that two of them name comes once.  Most
days have the same times as another day before, and sets of times are compared by identity
(`rrule_times`).  So a union is made once for each combination of them and remembered; only days
with dates of their own are looked at by themselves.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from belfry.schedules.civil import DAY_S
from belfry.schedules.triggers.rrule_days import MOST_KEPT
from belfry.schedules.triggers.rrule_times import NONE, Times
from belfry.schedules.triggers.rrule_walls import Walls


class Excepted(NamedTuple):
    """The dates that a set adds and leaves out besides its rules.

    `dates` (RDATE) and `without` (EXDATE) are wall seconds; `without_days` (EXDATE with dates) are
    days from 1970-01-01 on, of which nothing is left.
    """

    dates: tuple[int, ...]
    without: frozenset[int]
    without_days: frozenset[int]


class SetWalls(Walls):
    """The times of several rules together, less those that are left out."""

    def __init__(self, rules: list[Walls], without: list[Walls], dates: Excepted) -> None:
        self.fixed, self.even = all(rule.fixed for rule in rules), False
        self._rules, self._without, self._excepted = rules, without, dates
        self.looks = sum(each.looks for each in (*rules, *without))
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
        """The times of its rules on a day, less those left out; remembered for such days."""
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
