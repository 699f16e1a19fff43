"""The fault of an item of a cron expression, and what may have been meant.

    25             '25' is no hour: 0-23
    MONDAY-FRI     'MONDAY-FRI' is no day-of-week: 0-7 or SUN-SAT, …; did you mean MON-FRI?
    FRI-MON        …; a range goes upwards, so write FRI-SAT,SUN-MON
    ?              …; write * for any

A hint is told only if its proposal can be read: a guess that is refused as well would cost
its reader another round.  Nothing here decides whether an item is allowed; `cron_text` does, and
asks for words when it is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Final

from cronsim import CronSimError
from cronsim.cronsim import FIELD_NAMES, RANGES, SYMBOLIC_DAYS, SYMBOLIC_MONTHS
from cronsim.cronsim import Field as Unit

from belfry.schedules.triggers.cron_spelling import ALIASES, HASHED, YEARS

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
_LETTERS: Final = re.compile(r"[A-Z]{2,}")


def fault(unit: object, item: str) -> str:
    """What is wrong with an item, what is allowed, and what may have been meant."""
    if isinstance(unit, Unit):
        name, allowed = FIELD_NAMES[unit], _ALLOWED[unit]
    else:
        name, allowed = "year", f"{YEARS[0]}-{YEARS[-1]}"
    shown = f"{item!r} is no {name}" if item else f"a {name} is missing"
    return f"{shown}: {allowed}{_hint(unit, item.upper())}"


def alias_fault(given: str) -> str:
    """Why a text that begins with @ is no alias, and which one may have been meant."""
    names = [*(name.lower() for name in ALIASES), "@every"]
    near = get_close_matches(given.split(maxsplit=1)[0].lower(), names, n=1)
    guess = f"; did you mean {near[0]}?" if near else ""
    listed = ", ".join(names[:-1])
    return f"{given!r} is no alias: {listed} are, and @every with a duration{guess}"


def _hint(unit: object, item: str) -> str:
    if item == "?":
        return "; write * for any"
    if not isinstance(unit, Unit):
        return ""
    if item.startswith("H") and unit is not Unit.DOW:
        bounds = HASHED[unit]
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
