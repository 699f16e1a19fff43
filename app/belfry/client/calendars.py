"""Calendars as the client shows them: the days off of a tenant, which schedules heed.

belfry.set_calendar("shop", "de", days=["2026-12-25"], weekend=["SAT", "SUN"])
belfry.schedule("shop", "report", cron="0 9 * * *", calendar="de", on_holiday="NEXT_BUSINESS_DAY")
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Self

from belfry.client.options import Change
from belfry.schedules.instants import parse_instant


class CalendarOptions(Change, total=False):
    """The days of a calendar; they replace its present ones."""

    days: Sequence[str | date]
    """Dates that are off, such as ``2026-12-25``."""
    weekend: Sequence[str]
    """Days that are off in each week: ``MON`` to ``SUN``."""
    source: str
    """Where the days are from, for people."""


@dataclass(frozen=True, slots=True)
class TenantCalendar:
    """A calendar of a tenant: dates as ISO 8601 writes them, `changed_ms` in epoch milliseconds.

    `following` says that schedules are still being moved by its last change, and `moved` how many
    have been.
    """

    tenant: str
    name: str
    days: Sequence[str]
    weekend: Sequence[str]
    source: str
    changed_ms: int
    following: bool
    moved: int

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """A calendar in the API's JSON."""
        same = ("tenant", "days", "weekend", "source", "following", "moved")
        return cls(
            **{name: found[name] for name in same},
            name=found["calendar"],
            changed_ms=parse_instant(found["changed_at"]),
        )


def days_text(options: Mapping[str, Any]) -> str:
    """The days of `CalendarOptions` as a request holds them."""
    days = [each if isinstance(each, str) else each.isoformat() for each in options.get("days", ())]
    weekend = [each.upper() for each in options.get("weekend", ())]
    said = {"days": days, "weekend": weekend, "source": options.get("source", "")}
    return json.dumps(said, ensure_ascii=False)
