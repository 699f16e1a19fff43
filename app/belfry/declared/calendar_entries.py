"""A calendar as a file declares it: the days off of a tenant, which its schedules heed.

    calendars:
      own: {days: [2026-12-25, 2026-12-26], weekend: [SAT, SUN], source: by hand}
      de: {country: DE-BY, years: [2026, 2030], weekend: [SAT, SUN]}
      fr: {ics: holidays/fr.ics, years: [2026, 2030]}

The file has the whole calendar: its days replace the present ones.  Public holidays and an
iCalendar file are read by the caller's `Importing`, and `days` beside them are added.  The years
have to be said, so that the same file means the same next year.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from belfry.declared.yaml_lines import Complaints, Entry, unknown
from belfry.schedules.calendars import MOST_SOURCE, NAME, NAME_SHAPE, read_calendar
from belfry.schedules.days_off import days_off
from belfry.schedules.rejections import Rejection

Years = tuple[int, int]
# Dates from elsewhere, as ISO 8601 writes them, and where they are from: asked by the file that
# declares, `country` or `ics`, its value, and the first and the last year.  Raises ValueError.
Importing = Callable[[str, str, str, Years], tuple[list[str], str]]
SHOWN: Final = ("days", "weekend", "source")
IMPORTED: Final = ("country", "ics")
KNOWN: Final = (*SHOWN, *IMPORTED, "years")
FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2200


@dataclass(frozen=True, slots=True)
class DeclaredCalendar:
    """A calendar, with its days as JSON shows them: dates and days of the week in order.

    `imported` says that an import gave the source: it names the version of a library, which is no
    reason to set the same days again.
    """

    tenant: str
    name: str
    days: list[str]
    weekend: list[str]
    source: str
    imported: bool = False

    @property
    def body(self) -> dict[str, Any]:
        """The declared calendar, by the names of requests."""
        return {"days": self.days, "weekend": self.weekend, "source": self.source}

    def differing(self, stands: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
        """Fields that differ from a calendar as HTTP shows it: name, present value, new value.

        An empty mapping stands for no calendar.
        """
        found = [
            (name, stands.get(name), after)
            for name, after in self.body.items()
            if (stands.get(name) or None) != (after or None)
        ]
        same_days = {name for name, _, _ in found} <= {"source"}
        if not (stands and self.imported and same_days):
            yield from found


def declared_calendar(
    at: Entry, names: tuple[str, str], complaints: Complaints, importing: Importing
) -> DeclaredCalendar | None:
    """The calendar of an entry, or None where something is wrong with it."""
    tenant, name = names
    path, before = f"{tenant}.calendars.{name}", len(complaints.lines)
    if NAME.fullmatch(name) is None:
        complaints.add(at, path, f"is no name of a calendar: {NAME_SHAPE}")
    given: dict[str, Any] = {}
    for each in at.entries(complaints, path):
        if each.name not in KNOWN:
            complaints.add(each, f"{path}.{each.name}", unknown(each.name, KNOWN))
            continue
        try:
            given[each.name] = _plain(each.value())
        except ValueError as error:
            complaints.add(each, f"{path}.{each.name}", str(error))
    if len(complaints.lines) > before:
        return None
    imports = any(each in given for each in IMPORTED)
    named = bool(given.get("source"))
    try:
        if imports or "years" in given:
            given = _with_imported(given, at.file, importing)
        if not given.get("days") and not given.get("weekend"):
            raise ValueError(f"has no days off: give days, weekend, {' or '.join(IMPORTED)}")
        found = read_calendar(json.dumps(given))
    except (ValueError, TypeError) as error:
        found = Rejection("bad_calendar", str(error))
    if isinstance(found, Rejection):
        complaints.add(at, path, found.reason.removeprefix("days_off "))
        return None
    days = days_off(found.packed)
    by_library = imports and not named
    return DeclaredCalendar(tenant, name, days.dates, days.weekend, found.source, by_library)


def _with_imported(given: dict[str, Any], file: str, importing: Importing) -> dict[str, Any]:
    """The declared calendar, with the days of a country or a file among its days.

    Raises ValueError or TypeError if the days cannot be imported.
    """
    imports = [each for each in IMPORTED if each in given]
    if len(imports) != 1:
        has = " and ".join(imports) or "years"
        raise ValueError(f"has {has}: give one of country and ics, and years with it")
    (kind,) = imports
    which, years = given[kind], _years(given.get("years"))
    own = given.get("days") or []
    if not isinstance(which, str):
        raise TypeError(f"has the {kind} {which!r}, which is no text: put it in quotes")
    if not isinstance(own, list):
        raise TypeError(f"has the days {own!r}: give a list of dates such as 2026-12-25")
    days, source = importing(file, kind, which, years)
    kept = {name: given[name] for name in SHOWN if given.get(name)}
    return {"source": source[:MOST_SOURCE]} | kept | {"days": [*own, *days]}


def _years(given: Any) -> Years:
    """The first and the last year of a year, or of two; raises ValueError."""
    found = given if isinstance(given, list) else [given]
    numbers = [each for each in found if type(each) is int and FIRST_YEAR <= each <= LAST_YEAR]
    if len(numbers) != len(found) or len(found) not in (1, 2) or found[0] > found[-1]:
        raise ValueError(
            f"has the years {given!r}: give the first and the last one, such as [2026, 2030], of"
            f" {FIRST_YEAR} to {LAST_YEAR}"
        )
    return found[0], found[-1]


def _plain(value: Any) -> Any:
    """A value as JSON has it: YAML reads a text that looks like a date as one."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return value.isoformat() if is_day else value
