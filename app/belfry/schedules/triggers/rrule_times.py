"""The times of day of a rule of RFC 5545: seconds from midnight, increasing.

    FREQ=DAILY;BYHOUR=9,17         the same every day: hours × minutes × seconds
    FREQ=HOURLY;INTERVAL=7         by the day: 0 7 14 21 │ 4 11 18 │ 1 8 …
    FREQ=MONTHLY;…;BYSETPOS=-1     by the place in the period: `Placed` takes them out of its days

Sets of times are shared, and are compared by identity: the same rule gives the same object again.
So "is this day like that one?" is a comparison of two references (`Trigger.day_pattern`).

With INTERVAL the times of a day depend on how many hours, minutes or seconds after midnight the
first one comes (`ahead`), and on nothing else of the day: every 7 hours there are seven sorts of
days.  BYSETPOS picks within each hour, minute or second for these rules, and in a day, week, month
or year for all others: FREQ=MONTHLY;BYDAY=MO,TU;BYHOUR=9,17;BYSETPOS=-1 has one time a month, at
17:00 of its last Monday or Tuesday.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from belfry.schedules.civil import DAY_S, WEEK, month_of, weekday_of, year_at, year_of
from belfry.schedules.triggers.rrule_choice import Choice
from belfry.schedules.triggers.rrule_days import MOST_KEPT, days_of
from belfry.schedules.triggers.rrule_values import Recurrence

_UNITS: Final = {"HOURLY": 3_600, "MINUTELY": 60, "SECONDLY": 1}
_ALL_HOURS: Final = tuple(range(24))
_ALL: Final = tuple(range(60))


class Times:
    """Seconds of a day."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: Sequence[int]) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        """How many there are."""
        return len(self.seconds)

    def cut(self, start: int, end: int) -> Times:
        """Those from `start` to `end` (exclusive)."""
        first, last = bisect_left(self.seconds, start), bisect_left(self.seconds, end)
        return Times(self.seconds[first:last])


NONE: Final = Times(())


@lru_cache(maxsize=128)
def product(hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> Times:
    """All times of these hours, minutes and seconds."""
    if len(hours) == 24 and len(minutes) == len(seconds) == 60:
        return Times(range(DAY_S))
    inner = [minute * 60 + second for minute in minutes for second in seconds]
    return Times(array("I", (hour * 3_600 + each for hour in hours for each in inner)))


def picked(size: int, positions: tuple[int, ...]) -> list[int]:
    """Places from 0 that BYSETPOS takes out of so many: ``picked(5, (-1, 1))`` is ``[0, 4]``."""
    places = (at - 1 if at > 0 else size + at for at in positions)
    return sorted({place for place in places if 0 <= place < size})


def daily_times(rule: Recurrence, start: int) -> Times:
    """The times of each day of a rule of days, before BYSETPOS; gaps are filled from DTSTART's."""
    minute, second = divmod(start % DAY_S, 60)
    hours = rule.hours or (minute // 60,)
    return product(hours, rule.minutes or (minute % 60,), rule.seconds or (second,))


class TimesWithinADay:
    """The times of a rule by hours, minutes or seconds, day by day."""

    def __init__(self, rule: Recurrence, start: int) -> None:
        self._rule = rule
        self._unit = _UNITS[rule.freq]
        self._first = start // self._unit
        self._minute, self._second = start // 60 % 60, start % 60
        self._known: dict[int, Times] = {}

    def on(self, day: int) -> Times:
        """The times of a day; they depend on where INTERVAL stands at its midnight."""
        ahead = (self._first - day * (DAY_S // self._unit)) % self._rule.interval
        if ahead * self._unit >= DAY_S:
            return NONE
        found = self._known.get(ahead)
        if found is None:
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            found = self._known[ahead] = _within_a_day(
                self._rule.freq, self._rule.interval, ahead, self._allowed(), self._rule.positions
            )
        return found

    def _allowed(self) -> tuple[tuple[int, ...], ...]:
        """Hours, minutes and seconds that are allowed.

        A part that is not given is all of its numbers where it is as long as FREQ or longer, and
        else that of DTSTART.
        """
        rule = self._rule
        minutes = rule.minutes or ((self._minute,) if rule.freq == "HOURLY" else _ALL)
        seconds = rule.seconds or (_ALL if rule.freq == "SECONDLY" else (self._second,))
        return rule.hours or _ALL_HOURS, minutes, seconds


@lru_cache(maxsize=256)
def _within_a_day(
    freq: str, interval: int, ahead: int, allowed: tuple[tuple[int, ...], ...],
    positions: tuple[int, ...],
) -> Times:  # fmt: skip
    hours, minutes, seconds = allowed
    if interval == 1 and not positions:
        return product(hours, minutes, seconds)
    if freq == "SECONDLY":
        return _by_seconds(range(ahead, DAY_S, interval), allowed, positions)
    if freq == "MINUTELY":
        inner = _taken(list(seconds), positions)
        of = range(ahead, 1_440, interval)
        units = [each for each in of if each // 60 in hours and each % 60 in minutes]
        return Times(array("I", (unit * 60 + each for unit in units for each in inner)))
    inner = _taken([minute * 60 + each for minute in minutes for each in seconds], positions)
    units = [hour for hour in range(ahead, 24, interval) if hour in hours]
    return Times(array("I", (unit * 3_600 + each for unit in units for each in inner)))


def _taken(inner: list[int], positions: tuple[int, ...]) -> list[int]:
    return [inner[place] for place in picked(len(inner), positions)] if positions else inner


def _by_seconds(
    every: range, allowed: tuple[tuple[int, ...], ...], positions: tuple[int, ...]
) -> Times:
    """The times that BYHOUR, BYMINUTE and BYSECOND leave of every so many seconds."""
    hours, minutes, seconds = allowed
    if positions and not picked(1, positions):
        return NONE
    if len(hours) == 24 and len(minutes) == len(seconds) == 60:
        return Times(every)
    return Times(array("I", _left(every, hours, minutes, frozenset(seconds))))


def _left(
    every: range, hours: tuple[int, ...], minutes: tuple[int, ...], seconds: frozenset[int]
) -> Iterator[int]:
    if len(every) < len(hours) * len(minutes):
        wanted_hours, wanted = frozenset(hours), frozenset(minutes)
        for each in every:
            if each % 60 in seconds and each // 60 % 60 in wanted and each // 3_600 in wanted_hours:
                yield each
        return
    for hour in hours:
        for minute in minutes:
            start = hour * 3_600 + minute * 60
            first = start + (every.start - start) % every.step
            within = range(max(first, every.start), start + 60, every.step)
            yield from (
                within if len(seconds) == 60 else (each for each in within if each % 60 in seconds)
            )


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
            first = day - (weekday_of(day) - self._choice.week_start) % WEEK
            return first, first + WEEK
        year = year_at(year_of(day))
        if self._choice.freq == "YEARLY":
            return year.first, year.first + year.size
        month = month_of(day)
        return month.first, month.first + month.size


@lru_cache(maxsize=256)
def _placed(choice: Choice, positions: tuple[int, ...], daily: Times) -> Placed:
    return Placed(choice, positions, daily)


def placed(choice: Choice, rule: Recurrence, daily: Times) -> Placed:
    """The places of a rule, shared by all rules that choose so."""
    return _placed(choice, rule.positions, daily)
