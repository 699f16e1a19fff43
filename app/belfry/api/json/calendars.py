"""Calendars as JSON: the body that sets one, and the answers that show them.

A tenant may live in several partitions, and each keeps the days for its own schedules. So an answer
is put together from parts, one of each partition, and while a change is on its way the parts may
differ: the newest days are shown.

    PUT days: ["2026-12-25"], and then days: ["2026-12-24", "2026-12-25"]
    part of partition 2    changed at 12:00:05, both days, 40 moved, following
    part of partition 5    changed at 12:00:00, one day, 12 moved, not following
    shown                  both days, changed_at 12:00:05, moved 52, following: true
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from belfry.api.json.shapes import moment
from belfry.api.json.values import RequestId, Strict
from belfry.schedules.calendars import MOST_DAYS, MOST_SOURCE
from belfry.schedules.days_off import days_off
from belfry.store.layout.calendars import CalendarRow

Weekday = Literal["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
# A day of the calendar without a zone, as RFC 3339 writes it; the schedule's zone says when it is.
Date = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class CalendarBody(Strict):
    """The days off of a calendar; they replace its present ones."""

    days: Annotated[list[Date], Field(max_length=MOST_DAYS)] = Field(
        default_factory=list, description="Dates, such as 2026-12-25."
    )
    weekend: list[Weekday] = Field(
        default_factory=list, description="Days that are off in each week."
    )
    source: Annotated[str, StringConstraints(max_length=MOST_SOURCE)] = Field(
        "", description="Where the days are from, for people."
    )
    reason: Annotated[str, StringConstraints(max_length=2000)] | None = None
    request_id: RequestId = None


class CalendarAnswer(BaseModel):
    """A calendar, and whether all schedules that have it have followed its last change."""

    tenant: str
    calendar: str
    days: list[str] = Field(description="Dates that are off, in their order.")
    weekend: list[str] = Field(description="Days that are off in each week.")
    source: str
    changed_at: str = Field(description="When the request arrived that gave these days.")
    following: bool = Field(description="Whether schedules are still being moved.")
    moved: int = Field(
        description="Schedules that it has moved so far, without those that came due first."
    )


class CalendarsAnswer(BaseModel):
    """The calendars of a tenant, by name."""

    calendars: list[CalendarAnswer]


def calendar_part(name: str, row: CalendarRow) -> dict[str, Any]:
    """One partition's facts on a calendar; `merged_calendar` takes these, also from other workers.

    Instants are epoch ms, and days are as the answer has them.
    """
    days = days_off(row.days)
    return {
        "calendar": name,
        "days": days.dates,
        "weekend": days.weekend,
        "source": row.source,
        "changed_ms": row.changed_ms,
        "following": row.under_way,
        "moved": row.moved,
    }


def merged_calendar(tenant: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A calendar of which each partition has told its part; the newest days are shown.

    `parts` are those of `calendar_part`, at least one.
    """
    newest = max(parts, key=lambda each: each["changed_ms"])
    said = {name: newest[name] for name in ("calendar", "days", "weekend", "source")}
    return {
        "tenant": tenant,
        **said,
        "changed_at": moment(newest["changed_ms"]),
        "following": any(each["following"] for each in parts),
        "moved": sum(each["moved"] for each in parts),
    }
