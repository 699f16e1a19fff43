"""Occurrences of a schedule as JSON: those to come, the last fires, and how all of them went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from belfry.schedules.instants import format_duration, format_instant
from belfry.store.last_fires import FireCounts, LastFire
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


class FireCountsAnswer(BaseModel):
    """How the occurrences of a schedule went since its rule is as it is, at every lifecycle level.

    Shares are null if there is nothing to divide by.
    """

    fired: int
    over_1s: int = Field(description="Fires that were more than a second late.")
    latest_ms: int = Field(description="How late the latest of these was.")
    missed: int = Field(
        description="Occurrences that did not fire: given up, or another fire stood for them."
    )
    success_rate: float | None = Field(description="Fires among all that came due.")
    share_within_1s: float | None = Field(description="Fires at most a second late.")
    words: str = Field(description="The same in English.")


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


def counts_json(counts: FireCounts) -> dict[str, Any]:
    """How the occurrences of a schedule went."""
    return {
        **counts._asdict(),
        "success_rate": counts.success_rate,
        "share_within_1s": counts.share_within_1s,
        "words": _words(counts),
    }


def _words(counts: FireCounts) -> str:
    """The same for people."""
    if not (counts.fired or counts.missed):
        return "none has fired yet"
    late = ", each within a second" if counts.fired else ""
    if counts.over_1s:
        latest = format_duration(counts.latest_ms)
        late = f", {counts.over_1s:,} of them more than a second late, at most {latest}"
    missed = ""
    if counts.missed:
        missed = f"; {counts.missed:,} were given up, or another fire stood for them"
    return f"{counts.fired:,} fired{late}{missed}"


def ended_json(event: Mapping[str, Any]) -> dict[str, Any]:
    """The end of a delivery, of the event that told it."""
    return {name: event[name] for name in DeliveryEndAnswer.model_fields}
