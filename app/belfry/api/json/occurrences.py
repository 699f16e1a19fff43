"""Occurrences of a schedule as JSON: those to come, and the last that fired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from belfry.schedules.instants import format_instant
from belfry.store.last_fires import LastFire
from belfry.store.upcoming import Upcoming


class UpcomingAnswer(BaseModel):
    """An occurrence to come."""

    occurrence: int
    scheduled_at: str = Field(description="Its instant by the rule.")
    due_at: str = Field(description="When it fires: the same and its jitter.")


class DeliveryEndAnswer(BaseModel):
    """How a delivery of a fire ended, and at which attempt."""

    target: str = Field(description="Its address, credentials masked.")
    outcome: str = Field(description="DELIVERED or FAILED.")
    attempt: int = Field(description="Number of the attempt, from 1.")
    at: str
    code: str | None = Field(description="Why it failed.")


class LastFireAnswer(BaseModel):
    """A fire of the schedule; at most ten are kept, at every lifecycle level."""

    fire_id: str | None = Field(description="Null where the schedule is over.")
    scheduled_at: str | None = Field(description="Its instant by the rule; null with `fire_id`.")
    due_at: str
    fired_at: str
    late_ms: int
    missed: int = Field(description="How many late occurrences it stood for, besides its own.")
    deliveries: list[DeliveryEndAnswer] | None = Field(
        description="Ends of its deliveries that failed or took more than one attempt; at the"
        " lifecycle level ALL every end. Null where the history does not answer."
    )


def upcoming_json(each: Upcoming) -> dict[str, Any]:
    """An occurrence to come."""
    return {
        "occurrence": each.number,
        "scheduled_at": format_instant(each.scheduled_ms),
        "due_at": format_instant(each.due_ms),
    }


def fired_json(each: LastFire) -> dict[str, Any]:
    """A fire that was."""
    return {
        "fire_id": each.fire_id,
        "scheduled_at": None if each.scheduled_ms is None else format_instant(each.scheduled_ms),
        "due_at": format_instant(each.due_ms),
        "fired_at": format_instant(each.fired_ms),
        "late_ms": each.late_ms,
        "missed": each.missed,
        "deliveries": [],
    }


def ended_json(event: Mapping[str, Any]) -> dict[str, Any]:
    """The end of a delivery, of the event that told it."""
    return {name: event[name] for name in DeliveryEndAnswer.model_fields}
