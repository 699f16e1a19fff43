"""Why a schedule is as it is, in words: the first sentences of ``belfry why``.

The answer comes from the schedule as it stands, and from its last event that is not a refusal:

    stands, and waits         what it waits for, and where the request lies that says so
    is over, and was told of  the event that ended it, and who asked for that
    is over, and was not      how it ended, if that is remembered; else that nobody knows
    was never there           why its request was refused

All functions are pure: the schedule and its events come as the HTTP API gives them.
"""

from __future__ import annotations

from typing import Any, Final

from belfry.cli.failures import CommandError, Exit
from belfry.cli.past import asked_at, lateness
from belfry.cli.shown import from_now, plain
from belfry.schedules.instants import format_instant, parse_instant
from belfry.tenants.waits import ACKNOWLEDGEMENT

# Events of the schedule itself; others are refusals of requests on it.
_ENDS: Final = frozenset({"CANCELLED", "FIRED", "MISSED", "COMPLETED"})
TELLING: Final = _ENDS | {"ACCEPTED", "UPDATED", "PAUSED", "RESUMED"}
Event = dict[str, Any]


def answer(name: str, found: Event | None, last: Event | None, now_ms: int) -> str:
    """Why a schedule is as it is, in a sentence or two.

    `found` is the schedule as it stands, None if it is gone; `last` is its last event, or a refusal
    if there is no other.  Raises `CommandError` if nothing is known.
    """
    if found is not None and found["state"] in ("PENDING", "PAUSED"):
        return plain(f"{name} {_waits(found, last, now_ms)}{_request(found)}{_fires(found)}")
    if last is not None and last["outcome"] in _ENDS and not _is_older(last, found):
        return plain(f"{name} {_over(last, now_ms)}")
    if found is not None:
        ended = from_now(parse_instant(found["ended_at"]), now_ms)
        late = lateness(found["due_at"], found["ended_at"])
        return plain(f"{name} ended as {found['state']} {ended}, {late} after it was due.")
    if last is None:
        raise CommandError(
            f"Nothing is known of {name}: it was never asked for here, or ended longer ago than its"
            f" tenant's history goes. Look for its id with: belfry schedule list"
            f" {name.partition('/')[0]}",
            Exit.NOT_FOUND,
        )
    if last["outcome"] not in TELLING:
        said = ": ".join(each for each in (last["code"], last["reason"]) if each)
        why = said.removesuffix(".")
        return plain(f"{name} was never accepted: {last['outcome']}, {why}.{_asked(last)}")
    return plain(
        f"{name} was accepted, due {last['due_at']}, and is over. How it ended is not kept: fires"
        " are written where the tenant's lifecycle is ALL, and ends are remembered for a day."
    )


def _is_older(last: Event, found: Event | None) -> bool:
    """Whether an event lies before the end that is remembered, as one of an earlier life does."""
    return found is not None and parse_instant(last["at"]) < parse_instant(found["ended_at"])


def _waits(found: Event, last: Event | None, now_ms: int) -> str:
    """The reason why a schedule still waits; the first one that fits counts."""
    due_ms = parse_instant(found["due_at"])
    when = f"{found['due_at']} ({from_now(due_ms, now_ms)})"
    if found.get("unreadable"):
        return f"waits: {found['unreadable']}."
    if found["state"] == "PAUSED":
        reason = last["reason"] if last is not None and last["outcome"] == "PAUSED" else None
        by = f": {reason}" if reason else ""
        asked = _asked(last) if last is not None and last["outcome"] == "PAUSED" else ""
        return (
            f"is paused{by}. Without that it is due {when}; belfry schedule resume ends it.{asked}"
        )
    if found.get("waiting_for") == ACKNOWLEDGEMENT:
        last_at = found.get("latest_at")
        bound = f" At the latest it is due {when}." if last_at else ""
        return f"is not due yet: {found['waiting_reason']}.{bound}"
    if reason := found.get("waiting_reason"):
        since = f", since {found['waiting_since']}" if found.get("waiting_since") else ""
        return f"waits{since}: {reason.rstrip('.')}. It is due {when}."
    if due_ms > now_ms:
        before = f" Occurrences before: {found['occurrence']}." if found["occurrence"] else ""
        return f"waits for its due instant, {when}.{before}{_slides(found)}"
    return f"is due since {when} and fires with one of the next steps of its partition."


def _slides(found: Event) -> str:
    """Until when further requests slide a schedule that is debounced."""
    longest_ms = found.get("max_wait_ms")
    if longest_ms is None:
        return ""
    last = format_instant(parse_instant(found["accepted_at"]) + longest_ms)
    return f" Each further request slides it, at the latest to {last}."


def _asked(last: Event) -> str:
    """Where the request of an event lies."""
    place = asked_at(last)
    return f" Asked for at {place}." if place else ""


def _request(found: Event) -> str:
    """The place of the request for the schedule; rows do not name the topic."""
    if found.get("source_offset") is None:
        return ""
    return f" Its request: partition {found['source_partition']}, offset {found['source_offset']}."


def _fires(found: Event) -> str:
    """How well the occurrences of a schedule that recurs went so far."""
    counted = found.get("fires")
    return f" By its rule {counted['words']}." if counted else ""


def _over(last: Event, now_ms: int) -> str:
    """How a schedule ended, by the event that says so."""
    ago = from_now(parse_instant(last["at"]), now_ms)
    because = f": {last['reason']}" if last["reason"] else ""
    match last["outcome"]:
        case "FIRED":
            late = lateness(last["due_at"], last["at"])
            return f"fired {ago}, {late} after it was due, with fire id {last['fire_id']}."
        case "CANCELLED":
            due = f" It had been due {last['due_at']}." if last["due_at"] else ""
            return f"was cancelled {ago}{because}.{due}{_asked(last)}"
        case "MISSED":
            return (
                f"did not fire at {last['due_at']}{because or ': its misfire policy left it out'}."
            )
        case _:
            return f"completed {ago}: its rule has no occurrence left."
