"""A cron expression, read: what its fields allow, and where it is wrong.

Five fields, or six with seconds first; names, lists, ranges, steps, ``L``, ``LW``, ``#n``, and
aliases such as ``@daily``.  cronsim reads the fields and knows the days (Debian's meaning: a day of
month and a day of week that are both given without ``*`` are alternatives).  What is added here is
the place of a mistake, for cronsim says only in which field it is.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

from cronsim import CronSim, CronSimError
from cronsim.cronsim import FIELD_NAMES, RANGES, Field

MAX_TEXT: Final = 200
DAY_S: Final = 86_400
# A day that does not come within this many days comes never: 29 February falls on each weekday
# at least once in 40 years.
HORIZON_DAYS: Final = 50 * 366
# What is remembered, of expressions and of the days of each: whoever previews many rules for many
# years must not fill a worker's memory.  An expression with its days and instants takes some 20 kB.
MOST_KEPT: Final = 4_096
MOST_DAYS: Final = 64
ALIASES: Final = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}
SHAPE: Final = (
    'five fields, minute hour day-of-month month day-of-week, such as "0 9 * * MON" or'
    ' "*/15 8-18 * * *", or six with seconds first, or an alias such as @daily'
)
_ALLOWED: Final = {
    Field.SECOND: "0-59",
    Field.MINUTE: "0-59",
    Field.HOUR: "0-23",
    Field.DAY: "1-31, L for the last day or LW for the last one from Monday to Friday",
    Field.MONTH: "1-12 or JAN-DEC",
    Field.DOW: "0-7 or SUN-SAT, 5L for the last Friday, MON#2 for the second Monday",
}
# No day, and what is said of those that were not looked for.
UNKNOWN: Final = -1
_WORD: Final = re.compile(r"\S+")
_UNIX_DAY_ORDINAL: Final = date(1970, 1, 1).toordinal()
_LAST_DAY: Final = date.max.toordinal() - _UNIX_DAY_ORDINAL - 366
_ANY: Final = datetime(2000, 1, 1, tzinfo=UTC)


class CronMistake(ValueError):
    """An expression that cannot be read; `position` is the character where, counted from 0."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.position = position


class Expression:
    """Wall-clock seconds that an expression allows, as if no clock were ever changed.

    A wall second counts from 1970-01-01T00:00 on the wall.  The seconds of a day that are allowed
    are ranked, so that counting them costs no more than finding one.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        sim = _parsed(text)
        self._sim = sim
        hours, minutes = sorted(sim.hours), sorted(sim.minutes)
        self._minutes = array("H", (hour * 60 + minute for hour in hours for minute in minutes))
        self._seconds = array("H", sorted(sim.seconds))
        self.per_day = len(self._minutes) * len(self._seconds)
        self.every_hour = len(hours) == 24
        self.either_day = not sim.day_and
        self.fixed = not set("*/").intersection(sim.parts[1] + sim.parts[2])
        self._every_day = sim.parts[3] == sim.parts[5] == "*" and len(sim.months) == 12
        self._next_days: dict[int, int | None] = {}

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
        days = last - first if self._every_day else sum(map(self.on_day, range(first, last)))
        return days * self.per_day + within - before

    def ends_of_day(self, day: int) -> tuple[int, int]:
        """First and last wall second of a day that is allowed."""
        return day * DAY_S + self._ranked(0), day * DAY_S + self._ranked(self.per_day - 1)

    def on_day(self, day: int) -> bool:
        """Whether a day, counted from 1970-01-01, is allowed."""
        if self._every_day:
            return True
        at = date.fromordinal(_UNIX_DAY_ORDINAL + day)
        return at.month in self._sim.months and self._sim.match_day(at)

    def _next_day(self, day: int) -> int | None:
        known = self._next_days.get(day, UNKNOWN)
        if known != UNKNOWN:
            return known
        if len(self._next_days) >= MOST_DAYS:
            self._next_days.clear()
        found = self._next_days[day] = self._search_day(day)
        return found

    def _search_day(self, day: int) -> int | None:
        last = min(day + HORIZON_DAYS, _LAST_DAY)
        while day <= last:
            at = date.fromordinal(_UNIX_DAY_ORDINAL + day)
            if at.month not in self._sim.months:
                year, month = divmod(at.year * 12 + at.month, 12)
                day = date(year, month + 1, 1).toordinal() - _UNIX_DAY_ORDINAL
            elif self._sim.match_day(at):
                return day
            else:
                day += 1
        return None

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


def normalized(text: str) -> str:
    """The same expression in one spelling: upper case, single blanks, aliases written out."""
    upper = " ".join(text.upper().split())
    return ALIASES.get(upper, upper)


def _parsed(text: str) -> CronSim:
    if len(text) > MAX_TEXT:
        raise CronMistake(f"it has {len(text)} characters; at most {MAX_TEXT} are read", MAX_TEXT)
    words = list(_WORD.finditer(text))
    if words and words[0].group().startswith("@"):
        return CronSim(_alias(text, words), _ANY)
    if len(words) not in (5, 6):
        where = words[6].start() if len(words) > 6 else len(text)
        raise CronMistake(f"it has {len(words)} fields; give {SHAPE}", where)
    try:
        return CronSim(text, _ANY)
    except CronSimError:
        for field, word in zip(Field if len(words) == 6 else list(Field)[1:], words, strict=True):
            _check(field, word)
        # Each field is fine, so it is the only thing that cronsim checks across fields.
        day = words[-3]
        raise CronMistake(f"no month that it names has a day {day.group()}", day.start()) from None


def _alias(text: str, words: list[re.Match[str]]) -> str:
    meaning = normalized(text)
    if meaning.startswith("@"):
        names = ", ".join(name.lower() for name in ALIASES)
        raise CronMistake(f"{text.strip()!r} is no alias: {names} are", words[0].start())
    return meaning


def _check(field: Field, word: re.Match[str]) -> None:
    """Find the item of a field that cannot be read, and say where it stands."""
    at = word.start()
    for item in word.group().split(","):
        try:
            field.parse(item.upper())
        except CronSimError:
            raise CronMistake(_fault(field, item), at) from None
        at += len(item) + 1


def _fault(field: Field, item: str) -> str:
    shown = f"{item!r} is no {FIELD_NAMES[field]}" if item else f"a {FIELD_NAMES[field]} is missing"
    hint = ""
    if item == "?":
        hint = "; write * for any"
    elif re.fullmatch(r"[0-9]+-[0-9]+", item) and _backwards(field, item):
        start, end = item.split("-")
        most, least = max(RANGES[field]), min(RANGES[field])
        hint = f"; a range goes upwards, so write {start}-{most},{least}-{end}"
    return f"{shown}: {_ALLOWED[field]}{hint}"


def _backwards(field: Field, item: str) -> bool:
    start, end = (int(each) for each in item.split("-"))
    return end < start and start in RANGES[field] and end in RANGES[field]
