"""An oracle for cron: it walks UTC minute by minute and looks at the wall clock, nothing else.

It shares no code with belfry and reads expressions by itself.  `zoneinfo` answers what the wall
shows, from the same `tzdata` wheel.  The rule is docs/schedules.md's:

- hour and minute without ``*`` and without a step: a time that does not exist counts once, right
  after the gap, and a time that comes twice counts the first time;
- others count whenever the wall shows them; only where a gap swallows every time of a day, that
  day counts once, right after the gap, unless the expression names all 24 hours.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import resources
from typing import NamedTuple
from zoneinfo import ZoneInfo

import tzdata

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
EPOCH = date(1970, 1, 1)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7), (1970, 2199))
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = (
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
)  # fmt: skip
NAMES = {
    **{name: str(number) for number, name in enumerate(WEEKDAYS)},
    **{name: str(number) for number, name in enumerate(MONTHS, 1)},
}


class Walked(NamedTuple):
    """What the wall showed at one minute of UTC."""

    utc: datetime
    wall: datetime


class Step(NamedTuple):
    """A minute to judge: UTC, what the wall shows, showed a minute ago, and whether it is new.

    It is new if the wall showed no such time, and no later one, before.
    """

    utc: datetime
    wall: datetime
    before: datetime
    is_new: bool
    minute: int


class Meaning(NamedTuple):
    """An expression as the oracle reads it: minutes of a day, days, and how it meets a change."""

    minutes: frozenset[int]
    on_day: Callable[[date], bool]
    fixed: bool
    all_hours: bool


@cache
def read(text: str) -> Meaning:
    """An expression of five fields, or of seven whose second is 0, without H."""
    parts = text.upper().split()
    if len(parts) == 7:
        assert parts.pop(0) == "0", "the oracle walks by minutes"
    minute, hour, day, month, weekday = parts[:5]
    minutes = frozenset(h * 60 + m for h in numbers(hour, 1) for m in numbers(minute, 0))
    months, years = numbers(month, 3), numbers(parts[5] if len(parts) == 6 else "*", 5)

    @cache
    def on_day(at: date) -> bool:
        by_month = any(_is_day(item, at) for item in day.split(","))
        by_week = any(_is_weekday(item, at) for item in weekday.split(","))
        both = day.startswith("*") or weekday.startswith("*")
        found = (by_month and by_week) if both else (by_month or by_week)
        return found and at.month in months and at.year in years

    fixed = not any(sign in minute + hour for sign in "*/")
    return Meaning(minutes, on_day, fixed, len(numbers(hour, 1)) == 24)


def _is_day(item: str, at: date) -> bool:
    """Whether a day is what an item of the days of a month says."""
    if not set("LW") & set(item):
        return at.day in numbers(item, 2)
    last = monthrange(at.year, at.month)[1]
    body = item.rstrip("W")
    place = last - int(body[2:] or 0) if body.startswith("L") else int(body or last)
    if not 1 <= place <= last:
        return False
    if not item.endswith("W"):
        return at.day == place
    working = [n for n in range(1, last + 1) if at.replace(day=n).isoweekday() < 6]
    return at.day == min(working, key=lambda n: abs(n - place))


def _is_weekday(item: str, at: date) -> bool:
    """Whether a day is what an item of weekdays says."""
    name, _, nth = item.partition("#")
    wanted = {each % 7 for each in numbers(name.removesuffix("L") if name != "L" else name, 4)}
    if at.isoweekday() % 7 not in wanted:
        return False
    if nth:
        return (at - int(nth) * 7 * DAY).month != at.month == (at - (int(nth) - 1) * 7 * DAY).month
    return not name.endswith("L") or (at + 7 * DAY).month != at.month


def numbers(part: str, place: int) -> set[int]:
    """Numbers of a field: of minutes, hours, days, months, weekdays or years, by its place."""
    low, high = RANGES[place]
    found: set[int] = set()
    for item in part.split(","):
        body, _, step = item.partition("/")
        start, _, end = (NAMES.get(each, each) for each in body.partition("-"))
        first = low if body == "*" else int(start)
        last = high if body == "*" or (step and not end) else int(end or start)
        found.update(range(first, last + 1, int(step or 1)))
    return found


@cache
def wall_clock(name: str) -> ZoneInfo:
    """A zone of the wheel; the machine's own files may be of another year."""
    with resources.files(tzdata).joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def changes(name: str, first: datetime, last: datetime) -> list[datetime]:
    """Minutes of UTC at which a zone's offset changes."""
    zone, step = wall_clock(name), timedelta(hours=3)
    found = []
    at = first
    before = at.astimezone(zone).utcoffset()
    while at < last:
        after = (at + step).astimezone(zone).utcoffset()
        if after != before:
            minute = at
            while minute.astimezone(zone).utcoffset() == before:
                minute += MINUTE
            found.append(minute)
        at, before = at + step, after
    return found


def walk(name: str, first: datetime, last: datetime) -> list[Walked]:
    """Every minute from `first` to `last`, and what the wall shows then."""
    zone, found, at = wall_clock(name), [], first
    while at <= last:
        found.append(Walked(at, at.astimezone(zone).replace(tzinfo=None)))
        at += MINUTE
    return found


def instants(text: str, walked: list[Walked]) -> list[datetime]:
    """The instants of an expression among walked minutes; the first one is not judged."""
    return judged(text, steps(walked))


def steps(walked: list[Walked]) -> list[Step]:
    """Walked minutes but the first, each with what came before it."""
    found: list[Step] = []
    seen = before = walked[0].wall
    for utc, wall in walked[1:]:
        found.append(Step(utc, wall, before, wall > seen, wall.hour * 60 + wall.minute))
        seen, before = max(seen, wall), wall
    return found


def judged(text: str, each_step: list[Step]) -> list[datetime]:
    """The instants of an expression among steps."""
    meaning = read(text)
    return [step.utc for step in each_step if _counts(meaning, step)]


def _counts(meaning: Meaning, step: Step) -> bool:
    _, wall, before, is_new, minute = step
    if minute in meaning.minutes and (is_new or not meaning.fixed) and meaning.on_day(wall.date()):
        return True
    return wall - before > MINUTE and made_up(meaning, before, wall)


def made_up(meaning: Meaning, before: datetime, wall: datetime) -> bool:
    """Whether what lies between two times of the wall is made up for."""
    gone: dict[date, set[int]] = {}
    at = before + MINUTE
    while at < wall:
        gone.setdefault(at.date(), set()).add(at.hour * 60 + at.minute)
        at += MINUTE
    for day, minutes in gone.items():
        lost = minutes & meaning.minutes if meaning.on_day(day) else set()
        if lost and (meaning.fixed or (lost == meaning.minutes and not meaning.all_hours)):
            return True
    return False


def milliseconds(at: datetime) -> int:
    """Epoch milliseconds."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
