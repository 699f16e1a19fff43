"""Ownership of a partition: the states of a take-over, as a table.

The order is what makes a take-over safe: the fence comes before the end of the changelog is asked
for, and firing comes after everything that the source held has been taken in.

    state      catching up ─► fencing ─► replaying ─► taking in ─► firing
    instant    09:00:00.000   .120       .140         .180         .230
    may write  nothing        nothing    nothing      outcomes     outcomes and events

Why does firing come last?  A cancel of an event that is due at 09:00:00.100 may lie in the source
since 08:59:59, when nobody owned the partition.  It came in time, so the event must not come out:
the cancel is taken in at .180, and at .230 there is nothing left to fire.  The price is lateness
of the events that were not cancelled, by the 50 ms in between.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Ownership(StrEnum):
    """Where a worker stands with a partition; people are shown the value."""

    IDLE = "idle"
    CATCHING_UP = "catching up with the changelog"
    FENCING = "fencing the former owner"
    REPLAYING = "replaying the changelog's end"
    TAKING_IN = "taking in waiting requests"
    FIRING = "firing"
    STOPPED = "stopped"


class Event(StrEnum):
    """The events of a take-over; `partitions/` tells of each as it happens."""

    ASSIGNED = "assigned"
    CAUGHT_UP = "caught up"
    FENCED = "former owner fenced"
    REPLAYED = "replayed up to the end"
    TAKEN_IN = "waiting requests taken in"
    UNKNOWN = "failed, or a commit's result unknown"
    REVOKED = "revoked"
    FENCED_OFF = "fenced off by the next owner"


TABLE: Final[dict[tuple[Ownership, Event], Ownership]] = {
    (Ownership.IDLE, Event.ASSIGNED): Ownership.CATCHING_UP,
    (Ownership.CATCHING_UP, Event.CAUGHT_UP): Ownership.FENCING,
    (Ownership.FENCING, Event.FENCED): Ownership.REPLAYING,
    (Ownership.REPLAYING, Event.REPLAYED): Ownership.TAKING_IN,
    (Ownership.TAKING_IN, Event.TAKEN_IN): Ownership.FIRING,
    **{
        (state, Event.UNKNOWN): Ownership.IDLE
        for state in Ownership
        if state not in (Ownership.IDLE, Ownership.STOPPED)
    },
    **{
        (state, event): Ownership.STOPPED
        for state in Ownership
        if state is not Ownership.STOPPED
        for event in (Event.REVOKED, Event.FENCED_OFF)
    },
}


def after(state: Ownership, event: Event) -> Ownership:
    """The state that an event leads to; AssertionError where it cannot happen."""
    following = TABLE.get((state, event))
    assert following is not None, f"{event} cannot happen while {state}"
    return following


def diagram() -> str:
    """The table as a Mermaid state diagram, for this room's README."""
    stops = f"{Event.REVOKED} or {Event.FENCED_OFF}"
    lines = [
        "stateDiagram-v2",
        "    [*] --> IDLE",
        *(
            f"    {state.name} --> {following.name}: {event}"
            for (state, event), following in TABLE.items()
            if following is not Ownership.STOPPED and event is not Event.UNKNOWN
        ),
        f"    FIRING --> IDLE: {Event.UNKNOWN} (from any state)",
        f"    FIRING --> STOPPED: {stops} (from any state)",
        "    STOPPED --> [*]",
    ]
    return "\n".join(lines)
