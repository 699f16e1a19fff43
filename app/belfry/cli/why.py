"""``belfry why``: why a schedule fired, did not fire, or still waits, in words.

The first sentences are the answer (`why_words.py`).  They come from the schedule as it stands, or
from the last thing that its history tells of it.  Below them stand the newest events and fires,
each with its place in Kafka:

    demo/order/4711 was cancelled 12s ago: customer paid. It had been due 2026-12-01T09:00:00Z. …
      2026-12-01T08:00:00Z  ACCEPTED  order/4711, version 1, due …, asked at belfry.schedules/2@41
      2026-12-01T08:04:00Z  CANCELLED order/4711, version 1, due …, asked at belfry.schedules/2@57

Two questions are asked, whatever the length of a history: for the schedule, and for the newest
page of its events, which workers keep by schedule and by day.  If that page holds refusals alone,
and the state of the schedule is not known otherwise, it also asks for the last event that is not a
refusal, among 50 000 at most.
"""

from __future__ import annotations

from time import time
from typing import Any, Final, NamedTuple

from belfry.cli.failures import CommandError, Exit
from belfry.cli.help import Program
from belfry.cli.options import ScheduleId, Tenant
from belfry.cli.past import event_line
from belfry.cli.remote import Remote, schedule_path
from belfry.cli.session import Session, with_session
from belfry.cli.why_words import TELLING, Event, answer

# The newest events that are shown; the answer needs the last one that tells something.
SHOWN: Final = 20
# So often is asked for it alone, each time among 10 000 rows: some tenths of a second.
MOST_PAGES: Final = 5
# The last fires that a schedule tells of itself.
LAST: Final = 10


def register(app: Program) -> None:
    """Add ``why`` to the program."""
    app.command("why")(with_session(why))


def why(session: Session, tenant: Tenant, schedule_id: ScheduleId) -> None:
    """Say why a schedule fired, did not fire, or still waits, with its history.

    Exit code 3 if nothing is known of it. Example:

    belfry why demo order/4711
    """
    told, found, newest, more = explained(Remote(session), tenant, schedule_id, int(time() * 1000))
    shown = _with_fires(newest, found)
    lines = [told, *(f"  {event_line(each)}" for each in shown[-SHOWN:])]
    if more or len(shown) > SHOWN:
        lines.insert(1, f"  … and events before: belfry schedule history {tenant} {schedule_id}")
    session.printer.one({"answer": told, "schedule": found, "events": newest}, "\n".join(lines))


class Explanation(NamedTuple):
    """Why a schedule is as it is, and the evidence."""

    # Some sentences.
    answer: str
    # The schedule as the HTTP API shows it, None where it is gone.
    schedule: Event | None
    # The newest events, oldest first.
    events: list[Event]
    # Whether there are older ones, which are not shown.
    more: bool


def explained(remote: Remote, tenant: str, schedule_id: str, now_ms: int) -> Explanation:
    """Why a schedule is as it is, with its newest events.

    Raises `CommandError` if nothing is known, or no worker answers.
    """
    path = schedule_path(tenant, schedule_id)
    found = _standing(remote, path)
    page = remote.get(f"{path}/history", order="newest", limit=SHOWN)
    newest = page["events"]
    last = _last_telling(newest)
    is_told = last is not None and last["outcome"] in TELLING
    if page["cursor"] is not None and not is_told and _is_asked_for(found):
        last = _looked_for(remote, path) or last
    told = answer(f"{tenant}/{schedule_id}", found, last, now_ms)
    return Explanation(told, found, newest[::-1], page["cursor"] is not None)


def _standing(remote: Remote, path: str) -> Event | None:
    """The schedule as it stands, with its last fires, or None if there is none."""
    try:
        found: Event = remote.get(path, last=LAST)
    except CommandError as error:
        if error.exit_code is not Exit.NOT_FOUND:
            raise
        return None
    return found


def _is_asked_for(found: Event | None) -> bool:
    """Whether the answer needs an event: a pending schedule explains itself."""
    return found is None or found["state"] != "PENDING"


def _last_telling(newest: list[Event]) -> Event | None:
    """The last event of the schedule itself, else the last refusal."""
    telling = (each for each in newest if each["outcome"] in TELLING)
    return next(telling, newest[0] if newest else None)


def _looked_for(remote: Remote, path: str) -> Event | None:
    """The last event of the schedule itself, among the newest rows."""
    cursor = None
    for _ in range(MOST_PAGES):
        asked = {"order": "newest", "limit": 1, "outcome": sorted(TELLING), "cursor": cursor}
        page = remote.get(f"{path}/history", **asked)
        if page["events"]:
            last: Event = page["events"][0]
            return last
        cursor = page["cursor"]
        if cursor is None:
            break
    return None


def _with_fires(newest: list[Event], found: Event | None) -> list[Event]:
    """The newest events, and those fires that the schedule alone tells of, oldest first.

    Fires are events at the lifecycle level ALL only.
    """
    fires = [] if found is None else found.get("last_fires") or []
    told = {(each["due_at"], each["at"]) for each in newest if each["outcome"] == "FIRED"}
    own = [
        _fired(found or {}, each)
        for each in fires
        if (each["due_at"], each["fired_at"]) not in told
    ]
    return sorted([*newest, *own], key=_at)


def _at(event: Event) -> str:
    """Instants in RFC 3339 of UTC sort as they are."""
    at: str = event["at"]
    return at


def _fired(found: Event, fire: dict[str, Any]) -> Event:
    """A fire that the schedule tells of, in the names of an event."""
    empty = dict.fromkeys(("version", "code", "reason", "target", "attempt", "source_offset"))
    named = {"schedule_id": found["schedule_id"], "outcome": "FIRED", "at": fire["fired_at"]}
    return {**empty, **named, "due_at": fire["due_at"], "fire_id": fire["fire_id"]}
