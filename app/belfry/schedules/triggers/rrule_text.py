"""The text of a recurrence of RFC 5545, read: what it may say, and where it is wrong.

A text is one rule, or several lines, apart by line breaks or blanks:

    FREQ=WEEKLY;BYDAY=MO,FR                        one rule; DTSTART is the field `start_at`

    DTSTART;TZID=Europe/Paris:20400102T090000      the same with its own start and zone
    RRULE:FREQ=WEEKLY;BYDAY=MO,FR                  several rules are a union
    RDATE:20400107T090000                          one time more
    EXDATE;VALUE=DATE:20400109                     one time less; a date takes its whole day
    EXRULE:FREQ=MONTHLY;BYMONTHDAY=13              a rule of times that are left out

Nothing is passed over: a part or a line that is not known is refused by name.  Times are *wall
seconds*, counted from 1970-01-01T00:00 on the wall, except for those in UTC (with ``Z``).

Blanks separate lines as line breaks do, so that a text fits a header or an argument of a shell.
Lines that iCalendar has folded (a break and a blank) are joined first.  The result is remembered by
the text, so checking a rule and compiling it read it once.
"""

from __future__ import annotations

import re
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, NamedTuple

SHAPE: Final = (
    'FREQ and perhaps INTERVAL, BY-parts and one of COUNT and UNTIL, such as "FREQ=MONTHLY;'
    'BYDAY=-1FR"'
)
DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
# From the longest to the shortest; those from HOURLY on have a cadence within a day.
FREQUENCIES: Final = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
WITHIN_A_DAY: Final = frozenset(FREQUENCIES[4:])
LINES: Final = ("DTSTART", "RRULE", "RDATE", "EXDATE", "EXRULE")
MAX_TEXT: Final = 4_000
MAX_RULES: Final = 8
MAX_INTERVAL: Final = 36_525
FIRST_YEAR: Final = 1900
MAX_COUNT: Final = (1 << 31) - 1
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_SIGNED: Final = re.compile(r"[+-]?[0-9]{1,4}")
_DAY: Final = re.compile(r"([+-]?[0-9]{1,2})?([A-Z]{2})")
_FOLD: Final = re.compile(r"\r?\n[ \t]")
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # the wall's
# What each list of numbers may hold, and whether it counts from the end as well.
_RANGES: Final = {
    "BYMONTH": (1, 12, False),
    "BYWEEKNO": (1, 53, True),
    "BYYEARDAY": (1, 366, True),
    "BYMONTHDAY": (1, 31, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSECOND": (0, 59, False),
    "BYSETPOS": (1, 366, True),
}
_PARTS: Final = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_RANGES)
# RFC 5545, 3.3.10: where a part has no meaning, and so is not allowed.
_FORBIDDEN: Final = {
    "BYWEEKNO": frozenset(FREQUENCIES[1:]),
    "BYYEARDAY": frozenset(("MONTHLY", "WEEKLY", "DAILY")),
    "BYMONTHDAY": frozenset(("WEEKLY",)),
}


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


@lru_cache(maxsize=4_096)
def read_rule(text: str) -> RuleText:
    """What a text says; raises `RRuleMistake`."""
    size = len(text.encode(errors="replace"))
    if size > MAX_TEXT:
        raise RRuleMistake(f"it has {size} bytes; at most {MAX_TEXT} are read")
    found: dict[str, list[Recurrence]] = {"RRULE": [], "EXRULE": []}
    dates: dict[str, list[Moment]] = {"DTSTART": [], "RDATE": [], "EXDATE": []}
    zones: set[str] = set()
    for line in _FOLD.sub("", text).split():
        name, zone, value = _line(line)
        if name in found:
            found[name].append(_recurrence(value.upper()))
        else:
            dates[name] += (_moment(name, each, zone) for each in value.upper().split(","))
            zones.add(zone[0])
    return _checked(found, dates, zones)


def _checked(
    found: dict[str, list[Recurrence]], dates: dict[str, list[Moment]], zones: set[str]
) -> RuleText:
    if len(dates["DTSTART"]) > 1:
        raise RRuleMistake("DTSTART is given twice")
    if not found["RRULE"] and not dates["RDATE"]:
        raise RRuleMistake(f"it has no rule: give {SHAPE}")
    count = len(found["RRULE"]) + len(found["EXRULE"])
    if count > MAX_RULES:
        raise RRuleMistake(f"it has {count} rules; at most {MAX_RULES} are read")
    named = sorted(zones - {""})
    if len(named) > 1:
        raise RRuleMistake(
            f"it names the zones {named[0][:40]} and {named[1][:40]}: all its times have to be of"
            " one zone, or in UTC"
        )
    start = dates["DTSTART"][0] if dates["DTSTART"] else None
    return RuleText(
        start,
        named[0] if named else None,
        tuple(found["RRULE"]),
        tuple(found["EXRULE"]),
        tuple(dates["RDATE"]),
        tuple(dates["EXDATE"]),
    )


def _line(line: str) -> tuple[str, tuple[str, bool], str]:
    """The name of a line, its zone and whether it holds dates, and its value."""
    if ":" not in line:
        line = f"RRULE:{line}"
    head, _, value = line.partition(":")
    name, *parameters = head.split(";")
    name = name.upper()
    if name not in LINES:
        raise RRuleMistake(f"{name[:40]!r} is not known: {', '.join(LINES)}{_near(name, LINES)}")
    zone, is_date = "", False
    for parameter in parameters:
        key, _, said = parameter.partition("=")
        if key.upper() == "TZID" and said:
            zone = said.strip('"')
        elif key.upper() == "VALUE" and said.upper() in ("DATE", "DATE-TIME"):
            is_date = said.upper() == "DATE"
        else:
            raise RRuleMistake(
                f"{parameter[:40]!r} of {name} is not known: TZID=zone, VALUE=DATE or"
                " VALUE=DATE-TIME"
            )
    return name, (zone, is_date), value


def _moment(name: str, text: str, said: tuple[str, bool] = ("", False)) -> Moment:
    zone, is_date = said
    in_utc = text.endswith("Z")
    form, shown = ("%Y%m%d", "20401231") if is_date else ("%Y%m%dT%H%M%S", "20401231T235959")
    try:
        if in_utc and (is_date or zone):
            raise ValueError(text)
        parsed = datetime.strptime(text.removesuffix("Z"), form)  # noqa: DTZ007  # the wall's
        if len(text.removesuffix("Z")) != len(shown) or parsed.year < FIRST_YEAR:
            raise ValueError(text)
    except ValueError:
        what = "date" if is_date else "time"
        more = "" if is_date or zone else ", or with Z for UTC"
        raise RRuleMistake(
            f"{name}={text[:40]} is no {what}: give it as {shown}{more}, from {FIRST_YEAR} on"
        ) from None
    since = parsed - _EPOCH
    return Moment(since.days * 86_400 + since.seconds, in_utc, is_date)


def _recurrence(text: str) -> Recurrence:
    given = _split(text)
    freq = given.pop("FREQ", "")
    if freq not in FREQUENCIES:
        near = _near(freq, FREQUENCIES)
        raise RRuleMistake(f"FREQ={freq[:40]} is not known: {', '.join(FREQUENCIES)}{near}")
    numbers = {name: _numbers(name, given.pop(name, ""), *_RANGES[name]) for name in _RANGES}
    found = Recurrence(
        freq,
        _number("INTERVAL", given.pop("INTERVAL", "1"), MAX_INTERVAL),
        _number("COUNT", given.pop("COUNT"), MAX_COUNT) if "COUNT" in given else None,
        _until(given.pop("UNTIL")) if "UNTIL" in given else None,
        _weekday(given.pop("WKST", "MO")),
        _days(given.pop("BYDAY", "")),
        *numbers.values(),
    )
    if given:
        name = next(iter(given))
        raise RRuleMistake(f"{name} is not known: {', '.join(_PARTS)}{_near(name, _PARTS)}")
    _check(found, numbers)
    return found


def _check(found: Recurrence, numbers: dict[str, tuple[int, ...]]) -> None:
    """What parts may not stand together."""
    if found.most is not None and found.until is not None:
        raise RRuleMistake("COUNT and UNTIL are both given: keep one")
    for name, forbidden in _FORBIDDEN.items():
        if numbers[name] and found.freq in forbidden:
            raise RRuleMistake(f"{name} has no meaning with FREQ={found.freq}: leave it out")
    if any(nth for nth, _ in found.days):
        if found.freq not in ("YEARLY", "MONTHLY"):
            raise RRuleMistake(
                f"BYDAY with numbers has no meaning with FREQ={found.freq}: YEARLY or MONTHLY"
            )
        if found.weeks:
            raise RRuleMistake("BYDAY with numbers has no meaning with BYWEEKNO: keep one")
    others = found.days or any(numbers[name] for name in numbers if name != "BYSETPOS")
    if found.positions and not others:
        raise RRuleMistake("BYSETPOS chooses from what another BY-part gives: add one")


def _split(text: str) -> dict[str, str]:
    """The parts by name."""
    found: dict[str, str] = {}
    for part in text.removesuffix(";").split(";"):
        name, equals, value = part.partition("=")
        if not equals or not value:
            raise RRuleMistake(f"{part[:40]!r} is no part of the form NAME=VALUE: give {SHAPE}")
        if name in found:
            raise RRuleMistake(f"{name[:40]} is given twice")
        found[name[:40]] = value
    return found


def _number(name: str, text: str, most: int) -> int:
    if _NUMBER.fullmatch(text) is None or not 1 <= int(text) <= most:
        raise RRuleMistake(f"{name}={text[:40]} is not allowed: 1 to {most}")
    return int(text)


def _numbers(name: str, text: str, least: int, most: int, from_end: bool) -> tuple[int, ...]:
    found: set[int] = set()
    for each in text.split(",") if text else ():
        number = int(each) if _SIGNED.fullmatch(each) else most + 1
        if not least <= (abs(number) if from_end else number) <= most:
            backwards = f" or -{most} to -{least}" if from_end else ""
            raise RRuleMistake(f"{name}={each[:40]} is not allowed: {least} to {most}{backwards}")
        found.add(number)
    return tuple(sorted(found))


def _days(text: str) -> tuple[tuple[int, int], ...]:
    found: set[tuple[int, int]] = set()
    for each in text.split(",") if text else ():
        match = _DAY.fullmatch(each)
        nth = int(match[1] or 0) if match else 0
        if match is None or (match[1] and not 1 <= abs(nth) <= 53):
            raise RRuleMistake(
                f"day {each[:40]!r} is none of {', '.join(DAYS)}, with or without a number such as"
                " 1MO or -1FR"
            )
        found.add((nth, _weekday(match[2])))
    return tuple(sorted(found))


def _weekday(text: str) -> int:
    if text not in DAYS:
        raise RRuleMistake(f"day {text[:40]!r} is none of {', '.join(DAYS)}")
    return DAYS.index(text)


def _until(text: str) -> Moment:
    return _moment("UNTIL", text, ("", "T" not in text and len(text) == 8))


def _near(name: str, names: tuple[str, ...]) -> str:
    near = get_close_matches(name[:40], names, n=1)
    return f"; did you mean {near[0]}?" if near else ""
