"""One rule of RFC 5545, read part by part, and the times that stand in it.

    FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9,17;COUNT=12
    └ parts: NAME=VALUE, in any order, each once

    FREQ=FORTNIGHTLY            FREQ=FORTNIGHTLY is not known: YEARLY, MONTHLY, …
    FREQ=WEEKLY;BYMONTHDAY=1    BYMONTHDAY has no meaning with FREQ=WEEKLY: leave it out
    FREQ=DAILY;COUNT=3;UNTIL=…  COUNT and UNTIL are both given: keep one

Nothing is passed over: a part that is not known, given twice or without meaning is refused, for a
rule that is read otherwise than it was meant fires at wrong instants for years.  Which parts go
together is the table of RFC 5545, 3.3.10.

Years before 1900 and intervals of more than a hundred years of days are refused as slips.
"""

from __future__ import annotations

import re
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from belfry.schedules.triggers.rrule_values import FREQUENCIES, Moment, Recurrence, RRuleMistake

SHAPE: Final = (
    'FREQ and perhaps INTERVAL, BY-parts and one of COUNT and UNTIL, such as "FREQ=MONTHLY;'
    'BYDAY=-1FR"'
)
DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
MAX_INTERVAL: Final = 36_525
FIRST_YEAR: Final = 1900
MAX_COUNT: Final = (1 << 31) - 1
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_SIGNED: Final = re.compile(r"[+-]?[0-9]{1,4}")
_DAY: Final = re.compile(r"([+-]?[0-9]{1,2})?([A-Z]{2})")
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # the wall's
# The bounds of each list of numbers, and whether it counts from the end as well.
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


def read_moment(name: str, text: str, said: tuple[str, bool] = ("", False)) -> Moment:
    """A time of the part or line `name`; `said` are its zone and whether it is a date.

    Raises `RRuleMistake`, also for a time in UTC that has a zone besides.
    """
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


def read_recurrence(text: str) -> Recurrence:
    """One rule, in upper case; raises `RRuleMistake`."""
    given = _split(text)
    freq = given.pop("FREQ", "")
    if freq not in FREQUENCIES:
        near = nearest(freq, FREQUENCIES)
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
        raise RRuleMistake(f"{name} is not known: {', '.join(_PARTS)}{nearest(name, _PARTS)}")
    _check(found, numbers)
    return found


def _check(found: Recurrence, numbers: dict[str, tuple[int, ...]]) -> None:
    """The fault of parts that may not stand together."""
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
    return read_moment("UNTIL", text, ("", "T" not in text and len(text) == 8))


def nearest(name: str, names: tuple[str, ...]) -> str:
    """The end of a sentence that says which of these names may have been meant; or nothing."""
    near = get_close_matches(name[:40], names, n=1)
    return f"; did you mean {near[0]}?" if near else ""
