"""``belfry schedule why``: why a schedule fired, did not fire, or still waits, in words.

The first sentence is the answer.  It comes from the schedule as it stands, or from the last thing
that its history tells of it.  Below it stand all events that are kept, each with the place of the
request that asked for it, and last what could be missing from them:

    demo/order/4711 was cancelled 12s ago, before it came due: customer paid.
      2026-12-01T09:00:00Z  ACCEPTED  order/4711, version 1, due …, asked at belfry.schedules/2@41
      2026-12-01T09:04:00Z  CANCELLED order/4711, version 1, due …, asked at belfry.schedules/2@57

`answer` is pure: the schedule and its events come as the HTTP API gives them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from time import time
from typing import Any, Final, NamedTuple

from belfry.cli.failures import CommandError, Exit
from belfry.cli.looking import pages
from belfry.cli.options import ScheduleId, Tenant
from belfry.cli.past import event_line, lateness
from belfry.cli.remote import Remote, schedule_path
from belfry.cli.session import Session
from belfry.cli.shown import from_now, plain
from belfry.schedules.instants import format_instant, parse_instant
from belfry.tenants.waits import ACKNOWLEDGEMENT

# The newest events that are shown; the answer needs the last one.
SHOWN: Final = 20
# Events that say what became of a schedule; others are refusals of requests on it.
_ENDS: Final = frozenset({"CANCELLED", "FIRED", "MISSED", "COMPLETED"})
_TELLING: Final = _ENDS | {"ACCEPTED", "UPDATED", "PAUSED", "RESUMED"}
Event = dict[str, Any]


def why(session: Session, tenant: Tenant, schedule_id: ScheduleId) -> None:
    """Say why a schedule fired, did not fire, or still waits, with what its history tells.

    Exit code 3 where nothing is known of it. Example:

    belfry schedule why demo order/4711
    """
    told, found, newest, count = explained(Remote(session), tenant, schedule_id, int(time() * 1000))
    lines = [told, *(f"  {event_line(each)}" for each in newest)]
    if count > len(newest):
        all_of_them = f"belfry schedule history {tenant} {schedule_id}"
        lines.insert(1, f"  … {count - len(newest):,} events before these: {all_of_them}")
    session.printer.one({"answer": told, "schedule": found, "events": newest}, "\n".join(lines))


class Explanation(NamedTuple):
    """Why a schedule is as it is, and what says so."""

    # A sentence or two.
    answer: str
    # The schedule as the HTTP API shows it, None where it is gone.
    schedule: Event | None
    # The newest events, oldest first.
    events: list[Event]
    # How many events there are, with those that are not shown.
    of_all: int


def explained(remote: Remote, tenant: str, schedule_id: str, now_ms: int) -> Explanation:
    """Why a schedule is as it is, with its newest events, and how many there are in all.

    Raises `CommandError` if nothing is known, or no worker answers.
    """
    path = schedule_path(tenant, schedule_id)
    found = _standing(remote, path)
    last, newest, count = _read(pages(remote, f"{path}/history", "events", {}, None))
    told = answer(f"{tenant}/{schedule_id}", found, last, now_ms)
    return Explanation(told, found, newest, count)


def answer(name: str, found: Event | None, last: Event | None, now_ms: int) -> str:
    """Why a schedule is as it is, in a sentence or two.

    `found` is the schedule as it stands, None where it is gone; `last` is the last event that says
    what became of it, or a refusal where there is nothing else.  Raises `CommandError` if nothing
    is known.
    """
    if found is not None and found["state"] in ("PENDING", "PAUSED"):
        return plain(f"{name} {_waits(found, last, now_ms)}")
    if last is not None and last["outcome"] in _ENDS:
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
    if last["outcome"] not in _TELLING:
        said = ": ".join(each for each in (last["code"], last["reason"]) if each)
        return plain(f"{name} was never accepted: {last['outcome']}, {said}")
    return plain(
        f"{name} was accepted, due {last['due_at']}, and is over. How it ended is not kept: fires"
        " are written where the tenant's lifecycle is ALL, and ends are remembered for a day."
    )


def _standing(remote: Remote, path: str) -> Event | None:
    """The schedule as it stands, or None where there is none."""
    try:
        found: Event = remote.get(path)
    except CommandError as error:
        if error.exit_code is not Exit.NOT_FOUND:
            raise
        return None
    return found


def _read(events: Iterable[Event]) -> tuple[Event | None, list[Event], int]:
    """The last event that tells most, the newest of all, and how many there are."""
    newest: deque[Event] = deque(maxlen=SHOWN)
    last: Event | None = None
    count = 0
    for event in events:
        newest.append(event)
        count += 1
        if event["outcome"] in _TELLING or last is None or last["outcome"] not in _TELLING:
            last = event
    return last, list(newest), count


def _waits(found: Event, last: Event | None, now_ms: int) -> str:
    """What a schedule that is not over waits for; the first reason that fits counts."""
    due_ms = parse_instant(found["due_at"])
    when = f"{found['due_at']} ({from_now(due_ms, now_ms)})"
    if found.get("unreadable"):
        return f"waits: {found['unreadable']}."
    if found["state"] == "PAUSED":
        reason = last["reason"] if last is not None and last["outcome"] == "PAUSED" else None
        by = f": {reason}" if reason else ""
        return f"is paused{by}. Without that it is due {when}; belfry schedule resume ends it."
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
            return f"was cancelled {ago}{because}.{due}"
        case "MISSED":
            return (
                f"did not fire at {last['due_at']}{because or ': its misfire policy left it out'}."
            )
        case _:
            return f"completed {ago}: its rule has no occurrence left."
