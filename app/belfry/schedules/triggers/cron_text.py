"""The text of a cron expression, read: what its fields allow, and where it is wrong.

    30  9  15W  *  *                     minute hour day-of-month month day-of-week
    0 30 9 15W * *                       with a second before them
    0 30 9 15W * * 2040-2049             with seconds and years
    @daily                               an alias
    H H(1-5) * * *                       H: a number that follows from tenant and schedule

cronsim reads numbers, names, lists, ranges, steps, ``L``, ``LW``, ``5L`` and ``MON#2``.  Added here
are ``15W``, ``L-3``, ``L-3W``, ``FRIL``, years and ``H``, and the place of a mistake, for cronsim
says only in which field it is.  A range of one number is that number, whatever its step.

``H`` becomes a number before anything else is read (`normalized`), so all that follows knows plain
expressions alone.  The numbers are frozen: another one would move schedules that are at rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from hashlib import sha256
from typing import Final, NamedTuple

from cronsim import CronSim, CronSimError
from cronsim.cronsim import DAYS_IN_MONTH, FIELD_NAMES, RANGES, SYMBOLIC_DAYS, SYMBOLIC_MONTHS
from cronsim.cronsim import Field as Unit

from belfry.schedules.instants import parse_duration
from belfry.schedules.request import YEARS_100_MS

MAX_TEXT: Final = 200
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
    ' "*/15 8-18 * * *"; or six with seconds first; or seven with seconds first and years last; or'
    " an alias such as @daily or @every 90s"
)
YEARS: Final = range(1970, 2200)
_ALLOWED: Final = {
    Unit.SECOND: "0-59",
    Unit.MINUTE: "0-59",
    Unit.HOUR: "0-23",
    Unit.DAY: "1-31, L for the last day, L-3 for three days before it, 15W for the day from Monday"
    " to Friday that is nearest to the 15th, or LW for the last one from Monday to Friday",
    Unit.MONTH: "1-12 or JAN-DEC",
    Unit.DOW: "0-7 or SUN-SAT, 5L for the last Friday, MON#2 for the second Monday",
}
_NAMES: Final = {Unit.MONTH: SYMBOLIC_MONTHS, Unit.DOW: SYMBOLIC_DAYS}
# What H stands for where it gives no range: every month has a day up to 28, and Sunday is 0.
_HASHED: Final = {**{unit: RANGES[unit] for unit in Unit}, Unit.DAY: range(1, 29)}
_HASHED[Unit.DOW] = range(7)
_LAYOUTS: Final[dict[int, tuple[object, ...]]] = {
    5: tuple(Unit)[1:],
    6: tuple(Unit),
    7: (*Unit, "year"),
}
_WORD: Final = re.compile(r"\S+")
_HAS_H: Final = re.compile(r"(?:^|[\s,])H(?=$|[\s,(/])", re.IGNORECASE)
_H: Final = re.compile(r"H(?:\(([0-9]{1,2})-([0-9]{1,2})\))?(?:/([0-9]{1,2}))?")
_EVERY: Final = re.compile(r"\s*@every\b\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)
_YEAR_ITEM: Final = re.compile(r"(?:\*|([0-9]{4})(?:-([0-9]{4}))?)(?:/([0-9]+))?")
_STEPPED: Final = re.compile(r"(\w+)-(\w+)/0*[1-9][0-9]*")
_NEAREST: Final = re.compile(r"([0-9]{1,2})W")
_FROM_END: Final = re.compile(r"L-([0-9]{1,2})(W?)")
_LAST_NAMED: Final = re.compile(f"({'|'.join(SYMBOLIC_DAYS)})L")
_LETTERS: Final = re.compile(r"[A-Z]{2,}")


class CronMistake(ValueError):
    """An expression that cannot be read; `position` is the character where, counted from 0."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.position = position


class MonthDays(NamedTuple):
    """What a field of days allows: days, and those counted from the month's last, which is 0.

    The others are the days from Monday to Friday that are nearest to such a day in its month.
    """

    days: frozenset[int]
    from_end: frozenset[int]
    nearest: frozenset[int]
    nearest_from_end: frozenset[int]


class Weekdays(NamedTuple):
    """What a field of weekdays allows, Sunday 0: each, the last, and the nth one of a month."""

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


def seed_of(tenant: str, schedule_id: str) -> int:
    """What the numbers of H follow from."""
    name = f"{tenant}/{schedule_id}".encode(errors="replace")
    return int.from_bytes(sha256(name).digest()[:7], "big")


def is_hashed(text: str) -> bool:
    """Whether a text has an H that stands for a number."""
    return _HAS_H.search(text) is not None


def normalized(text: str, seed: int | None = None) -> str:
    """The same expression in one spelling: upper case, single blanks, aliases and H written out."""
    upper = " ".join(text.upper().split())
    if is_hashed(upper):
        return _written_out(upper, seed or 0)
    return ALIASES.get(upper, upper)


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
    """What an expression allows, an H by the seed 0; raises `CronMistake`."""
    if len(text) > MAX_TEXT:
        raise CronMistake(f"it has {len(text)} characters; at most {MAX_TEXT} are read", MAX_TEXT)
    words = list(_WORD.finditer(text))
    if words and words[0].group().startswith("@"):
        return read_cron(_alias(text, words))
    layout = _LAYOUTS.get(len(words))
    if layout is None:
        where = words[7].start() if len(words) > 7 else len(text)
        raise CronMistake(f"it has {len(words)} fields; give {SHAPE}", where)
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
        names = [*(name.lower() for name in ALIASES), "@every"]
        near = get_close_matches(meaning.split()[0].lower(), names, n=1)
        guess = f"; did you mean {near[0]}?" if near else ""
        listed = ", ".join(names[:-1])
        raise CronMistake(
            f"{text.strip()!r} is no alias: {listed} are, and @every with a duration{guess}",
            words[0].start(),
        )
    return meaning


def _items(unit: object, word: re.Match[str]) -> list[object]:
    """What the items of a field allow; raises `CronMistake` at the one that cannot be read."""
    found: list[object] = []
    at = word.start()
    for item in word.group().split(","):
        try:
            found += _item(unit, item.upper())
        except (CronSimError, ValueError):
            raise CronMistake(_fault(unit, item), at) from None
        at += len(item) + 1
    return found


def _item(unit: object, item: str) -> list[object]:
    """Numbers; of days and weekdays also pairs: a sort and a number, a weekday and its place."""
    if not isinstance(unit, Unit):
        return [*_years(item)]
    if item.startswith("H"):
        item = _number_for(unit, item, 0)
    stepped = _STEPPED.fullmatch(item)
    if stepped and unit.int(stepped[1]) == unit.int(stepped[2]):
        return [unit.int(stepped[1])]  # cronsim would go on from it, as from ``2/1``.
    if unit is Unit.DAY:
        nearest, from_end = _NEAREST.fullmatch(item), _FROM_END.fullmatch(item)
        if nearest:
            return [("W", unit.int(nearest[1]))]
        if from_end:
            return [("L" + from_end[2], _in(range(31), from_end[1]))]
        named = {CronSim.LAST: ("L", 0), CronSim.LAST_WEEKDAY: ("LW", 0)}
        days = unit.parse(item)
        return [named.get(each, each) if isinstance(each, int) else each for each in days]
    last = _LAST_NAMED.fullmatch(item) if unit is Unit.DOW else None
    return [(unit.int(last[1]), CronSim.LAST)] if last else [*unit.parse(item)]


def _in(allowed: range, number: str) -> int:
    if int(number) not in allowed:
        raise ValueError(number)
    return int(number)


def _years(item: str) -> range:
    match = _YEAR_ITEM.fullmatch(item)
    if match is None:
        raise ValueError(item)
    first = _in(YEARS, match[1] or str(YEARS[0]))
    single = match[1] and not match[2] and not match[3]
    last = first if single else _in(range(first, YEARS.stop), match[2] or str(YEARS[-1]))
    return range(first, last + 1, int(match[3] or "1"))


def _written_out(text: str, seed: int) -> str:
    """An expression with numbers in place of H; what cannot be read stays."""
    words = text.split(" ")
    layout = _LAYOUTS.get(len(words))
    if layout is None:
        return text
    return " ".join(
        ",".join(_number_or_item(unit, item, seed) for item in word.split(","))
        for unit, word in zip(layout, words, strict=True)
    )


def _number_or_item(unit: object, item: str, seed: int) -> str:
    if not isinstance(unit, Unit) or not item.startswith("H"):
        return item
    try:
        return _number_for(unit, item, seed)
    except ValueError:
        return item


def _number_for(unit: Unit, item: str, seed: int) -> str:
    """The item that an H stands for: a number of its range, or steps from such a number on."""
    match = _H.fullmatch(item)
    if match is None:
        raise ValueError(item)
    allowed = _HASHED[unit]
    first = _in(allowed, match[1] or str(allowed[0]))
    last = _in(range(first, allowed.stop), match[2] or str(allowed[-1]))
    step = _in(range(1, last - first + 2), match[3]) if match[3] else 0
    drawn = int.from_bytes(sha256(b"%d %d" % (seed, unit)).digest()[:8], "big")
    if not step:
        return str(first + drawn % (last - first + 1))
    begin = first + drawn % step
    return f"{begin}-{last}/{step}" if begin < last else str(begin)


def _check_day(fields: CronFields, word: re.Match[str]) -> None:
    """Refuse a day that none of the months has, where a weekday cannot stand for it."""
    longest = max(DAYS_IN_MONTH[month] for month in fields.months)
    days = fields.days
    if fields.either_day or min(days.days | days.nearest, default=99) <= longest:
        return
    if min(days.from_end | days.nearest_from_end, default=99) < longest:
        return
    raise CronMistake(f"no month that it names has a day {word.group()}", word.start())


def _fault(unit: object, item: str) -> str:
    """What is wrong with an item, what is allowed, and what may have been meant."""
    if isinstance(unit, Unit):
        name, allowed = FIELD_NAMES[unit], _ALLOWED[unit]
    else:
        name, allowed = "year", f"{YEARS[0]}-{YEARS[-1]}"
    shown = f"{item!r} is no {name}" if item else f"a {name} is missing"
    return f"{shown}: {allowed}{_hint(unit, item.upper())}"


def _hint(unit: object, item: str) -> str:
    if item == "?":
        return "; write * for any"
    if not isinstance(unit, Unit):
        return ""
    if item.startswith("H") and unit is not Unit.DOW:
        bounds = _HASHED[unit]
        return f"; H may have a range and a step, such as H({bounds[0]}-{bounds[-1]}) or H/2"
    if item == "L" and unit is Unit.DOW:
        return "; did you mean 6L, the last Saturday?"
    for guess in (_named(unit), _upwards(unit)):
        meant = guess(item)
        if meant:
            return meant
    return ""


def _named(unit: Unit) -> Callable[[str], str]:
    """Names that are nearly those of a field: ``MONDAY-FRIDAY`` for ``MON-FRI``."""

    def guess(item: str) -> str:
        names = _NAMES.get(unit, [])

        def nearest(match: re.Match[str]) -> str:
            given = match.group()
            begins = [name for name in names if given.startswith(name)]
            return (begins or get_close_matches(given, names, n=1, cutoff=0.5) or [given])[0]

        meant = _LETTERS.sub(nearest, item[:40]) if names else item
        return f"; did you mean {meant}?" if meant != item and _reads(unit, meant) else ""

    return guess


def _upwards(unit: Unit) -> Callable[[str], str]:
    """A range that goes backwards, as two that go upwards."""

    def guess(item: str) -> str:
        start, _, end = item.partition("-")
        names = _NAMES.get(unit)
        least, most = str(min(RANGES[unit])), str(max(RANGES[unit]))
        if names and not start.isdigit():
            least, most = names[0], names[-1]
        meant = f"{start}-{most},{least}-{end}"
        if not end or not all(_reads(unit, each) for each in meant.split(",")):
            return ""
        return f"; a range goes upwards, so write {meant}"

    return guess


def _reads(unit: Unit, item: str) -> bool:
    try:
        unit.parse(item)
    except (CronSimError, ValueError):
        return False
    return True
