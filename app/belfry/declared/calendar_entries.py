"""A calendar as a file declares it: the days off of a tenant, which its schedules heed.

    calendars:
      de: {days: [2026-12-25, 2026-12-26], weekend: [SAT, SUN], source: by hand}

The file says the whole calendar: its days take the place of those that the calendar has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from belfry.declared.yaml_lines import Complaints, Entry, unknown
from belfry.schedules.calendars import NAME, NAME_SHAPE, read_calendar
from belfry.schedules.days_off import days_off
from belfry.schedules.rejections import Rejection

KNOWN: Final = ("days", "weekend", "source")


@dataclass(frozen=True, slots=True)
class DeclaredCalendar:
    """A calendar, with its days as JSON shows them: dates and days of the week in order."""

    tenant: str
    name: str
    days: list[str]
    weekend: list[str]
    source: str

    @property
    def body(self) -> dict[str, Any]:
        """What is asked for, by the names that requests have."""
        return {"days": self.days, "weekend": self.weekend, "source": self.source}

    def shown_in(self, stands: Mapping[str, Any]) -> dict[str, Any]:
        """The same of a calendar as HTTP shows it."""
        return {name: stands[name] for name in KNOWN}


def declared_calendar(
    at: Entry, names: tuple[str, str], complaints: Complaints
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
        else:
            given[each.name] = _plain(each.value())
    if len(complaints.lines) > before:
        return None
    if not given.get("days") and not given.get("weekend"):
        complaints.add(at, path, "has no days off: give days, weekend, or both")
        return None
    try:
        found = read_calendar(json.dumps(given))
    except TypeError as error:
        found = Rejection("bad_calendar", str(error))
    if isinstance(found, Rejection):
        complaints.add(at, path, found.reason.removeprefix("days_off "))
        return None
    days = days_off(found.packed)
    return DeclaredCalendar(tenant, name, days.dates, days.weekend, found.source)


def _plain(value: Any) -> Any:
    """A value as JSON has it: YAML reads what looks like a date as one."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return value.isoformat() if is_day else value
