"""The text of a cron expression, read: the values of its fields, and the place of a mistake.

    30  9  15W  *  *                     minute hour day-of-month month day-of-week
    0 30 9 15W * *                       with a second before them
    0 30 9 15W * * 2040-2049             with seconds and years
    @daily                               an alias
    H H(1-5) * * *                       H: a number that follows from tenant and schedule

cronsim reads numbers, names, lists, ranges, steps, ``L``, ``LW``, ``5L`` and ``MON#2``.  Added here
are ``15W``, ``L-3``, ``L-3W``, ``FRIL``, years and ``H``, and the place of a mistake, for cronsim
says only in which field it is.  A range of one number is that number, whatever its step.

A text is read item by item, and the first item that makes no sense is refused with its place and
with what may have been meant (`cron_hints`).  ``H`` becomes a number before anything else is read
(`cron_spelling`), so all that follows knows plain expressions alone.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cronsim import CronSim, CronSimError
from cronsim.cronsim import DAYS_IN_MONTH, SYMBOLIC_DAYS
from cronsim.cronsim import Field as Unit

from belfry.schedules.instant_bounds import YEARS_100_MS
from belfry.schedules.instants import parse_duration
from belfry.schedules.triggers.cron_hints import alias_fault, fault
from belfry.schedules.triggers.cron_spelling import (
    LAYOUTS,
    YEARS,
    normalized,
    number_for,
    within,
)

MAX_TEXT: Final = 200
SHAPE: Final = (
    'five fields, minute hour day-of-month month day-of-week, such as "0 9 * * MON" or'
    ' "*/15 8-18 * * *"; or six with seconds first; or seven with seconds first and years last; or'
    " an alias such as @daily or @every 90s"
)
_WORD: Final = re.compile(r"\S+")
_EVERY: Final = re.compile(r"\s*@every\b\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)
_YEAR_ITEM: Final = re.compile(r"(?:\*|([0-9]{4})(?:-([0-9]{4}))?)(?:/([0-9]+))?")
_STEPPED: Final = re.compile(r"(\w+)-(\w+)/0*[1-9][0-9]*")
_NEAREST: Final = re.compile(r"([0-9]{1,2})W")
_FROM_END: Final = re.compile(r"L-([0-9]{1,2})(W?)")
_LAST_NAMED: Final = re.compile(f"({'|'.join(SYMBOLIC_DAYS)})L")


class CronMistake(ValueError):
    """An expression that cannot be read; `position` is the character where, counted from 0."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.position = position


class MonthDays(NamedTuple):
    """The values of a field of days: days, and those counted from the month's last, which is 0.

    The others are the days from Monday to Friday that are nearest to such a day in its month.
    """

    days: frozenset[int]
    from_end: frozenset[int]
    nearest: frozenset[int]
    nearest_from_end: frozenset[int]


class Weekdays(NamedTuple):
    """The values of a field of weekdays, Sunday 0: each, the last, and the nth one of a month."""

    each: frozenset[int]
    last: frozenset[int]
    nth: frozenset[tuple[int, int]]


class CronFields(NamedTuple):
    """A plain expression; no years are all years."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: MonthDays
    months: frozenset[int]
    weekdays: Weekdays
    years: frozenset[int]
    # Debian's meaning: days of both sorts that begin without * are alternatives.
    either_day: bool
    # Whether neither hour nor minute has a * or a step.
    fixed: bool
    every_day: bool


def interval_of(text: str) -> int | None:
    """Milliseconds of ``@every 90s``; None for all else; raises `CronMistake`."""
    match = _EVERY.fullmatch(text)
    if match is None:
        return None
    given, at = match[1], match.start(1)
    example = "give a duration of 1 ms to 100 years with its unit, such as @every 90s or 1h30m"
    if not given or given.isdigit():
        raise CronMistake(f"@every has {given or 'nothing'} behind it; {example}", at)
    iso = given[:1] in "pP"
    try:
        found = parse_duration(given.upper() if iso else given.lower())
    except ValueError:
        raise CronMistake(f"{given[:40]!r} is no duration; {example}", at) from None
    if not 1 <= found <= YEARS_100_MS:
        raise CronMistake(f"{given[:40]!r} is out of bounds; {example}", at)
    return found


def read_cron(text: str) -> CronFields:
    """The values of an expression, an H by the seed 0; raises `CronMistake`."""
    if len(text) > MAX_TEXT:
        raise CronMistake(f"it has {len(text)} characters; at most {MAX_TEXT} are read", MAX_TEXT)
    words = list(_WORD.finditer(text))
    if words and words[0].group().startswith("@"):
        return read_cron(_alias(text, words))
    layout = LAYOUTS.get(len(words))
    if layout is None:
        where = words[7].start() if len(words) > 7 else len(text)
        plural = "" if len(words) == 1 else "s"
        raise CronMistake(f"it has {len(words)} field{plural}; give {SHAPE}", where)
    found: dict[object, list[object]] = {Unit.SECOND: [0]}
    for unit, word in zip(layout, words, strict=True):
        found[unit] = _items(unit, word)
    parts = {unit: word.group() for unit, word in zip(layout, words, strict=True)}
    fields = _fields(found, parts)
    _check_day(fields, words[layout.index(Unit.DAY)])
    return fields


def _fields(found: dict[object, list[object]], parts: dict[object, str]) -> CronFields:
    numbers = {
        unit: frozenset(each for each in items if isinstance(each, int))
        for unit, items in found.items()
    }
    years = numbers.get("year", frozenset())
    day, weekday = parts[Unit.DAY], parts[Unit.DOW]
    months = numbers[Unit.MONTH]
    every_year = not years or len(years) == len(YEARS)
    return CronFields(
        seconds=numbers[Unit.SECOND],
        minutes=numbers[Unit.MINUTE],
        hours=numbers[Unit.HOUR],
        days=_month_days(found[Unit.DAY]),
        months=months,
        weekdays=_weekdays(found[Unit.DOW]),
        years=frozenset() if every_year else years,
        either_day=not (day.startswith("*") or weekday.startswith("*")),
        fixed=not set("*/").intersection(parts[Unit.MINUTE] + parts[Unit.HOUR]),
        every_day=day == weekday == "*" and len(months) == 12 and every_year,
    )


def _month_days(items: list[object]) -> MonthDays:
    found: dict[object, set[int]] = {"": set(), "L": set(), "W": set(), "LW": set()}
    for item in items:
        sort, number = item if isinstance(item, tuple) else ("", item)
        found[sort].add(number)
    return MonthDays(*map(frozenset, found.values()))


def _weekdays(items: list[object]) -> Weekdays:
    pairs = [(each[0] % 7, each[1]) for each in items if isinstance(each, tuple)]
    return Weekdays(
        frozenset(each % 7 for each in items if isinstance(each, int)),
        frozenset(day for day, nth in pairs if nth == CronSim.LAST),
        frozenset((day, nth) for day, nth in pairs if nth != CronSim.LAST),
    )


def _alias(text: str, words: list[re.Match[str]]) -> str:
    meaning = normalized(text)
    if meaning.startswith("@"):
        raise CronMistake(alias_fault(text.strip()), words[0].start())
    return meaning


def _items(unit: object, word: re.Match[str]) -> list[object]:
    """The values of the items of a field; raises `CronMistake` at the one that cannot be read."""
    found: list[object] = []
    at = word.start()
    for item in word.group().split(","):
        try:
            found += _item(unit, item.upper())
        except (CronSimError, ValueError):
            raise CronMistake(fault(unit, item), at) from None
        at += len(item) + 1
    return found


def _item(unit: object, item: str) -> list[object]:
    """Numbers; of days and weekdays also pairs: a sort and a number, a weekday and its place."""
    if not isinstance(unit, Unit):
        return [*_years(item)]
    if item.startswith("H"):
        item = number_for(unit, item, 0)
    stepped = _STEPPED.fullmatch(item)
    if stepped and unit.int(stepped[1]) == unit.int(stepped[2]):
        return [unit.int(stepped[1])]  # cronsim would go on from it, as from ``2/1``.
    if unit is Unit.DAY:
        nearest, from_end = _NEAREST.fullmatch(item), _FROM_END.fullmatch(item)
        if nearest:
            return [("W", unit.int(nearest[1]))]
        if from_end:
            return [("L" + from_end[2], within(range(31), from_end[1]))]
        named = {CronSim.LAST: ("L", 0), CronSim.LAST_WEEKDAY: ("LW", 0)}
        days = unit.parse(item)
        return [named.get(each, each) if isinstance(each, int) else each for each in days]
    last = _LAST_NAMED.fullmatch(item) if unit is Unit.DOW else None
    return [(unit.int(last[1]), CronSim.LAST)] if last else [*unit.parse(item)]


def _years(item: str) -> range:
    match = _YEAR_ITEM.fullmatch(item)
    if match is None:
        raise ValueError(item)
    first = within(YEARS, match[1] or str(YEARS[0]))
    single = match[1] and not match[2] and not match[3]
    last = first if single else within(range(first, YEARS.stop), match[2] or str(YEARS[-1]))
    return range(first, last + 1, int(match[3] or "1"))


def _check_day(fields: CronFields, word: re.Match[str]) -> None:
    """Refuse a day that none of the months has, where a weekday cannot stand for it."""
    longest = max(DAYS_IN_MONTH[month] for month in fields.months)
    days = fields.days
    if fields.either_day or min(days.days | days.nearest, default=99) <= longest:
        return
    if min(days.from_end | days.nearest_from_end, default=99) < longest:
        return
    raise CronMistake(f"no month that it names has a day {word.group()}", word.start())
