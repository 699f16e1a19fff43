"""``belfry schedule get|list|locks``: what a worker holds, over HTTP.

Schedules lie in the stores of workers, and only a worker can look one up. Any worker can be asked:
it answers from its own store, or asks the owner of the partition.

A list comes in pages, and each page is asked for when the one before has been printed:

    GET …/schedules?limit=1000                 the first 1000, and the cursor of the rest
    GET …/schedules?limit=1000&cursor=…        the next ones, until there is no cursor

So a list of a million needs no memory here, and is no snapshot either. The commands that show
history and locks read their pages by the same `pages`, and other commands share the filters.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import time
from typing import Annotated, Any, Final

import typer

from belfry.cli.bound_options import one_of
from belfry.cli.options import ScheduleId, Tenant
from belfry.cli.remote import Remote, schedule_path
from belfry.cli.session import Session
from belfry.cli.shown import from_now, plain
from belfry.schedules.instants import format_instant, parse_instant

# Schedules of one page of a list, which is the most that a worker gives.
MOST: Final = 1_000
SCHEDULES: Final = f"{'due':24}  {'state':9} {'kind':5} ver  schedule"
LOCKS: Final = f"{'fire id':32}  schedule, group, and until when it waits"

# What a schedule that is shown may be; ends are remembered for a day.
STATES: Final = ("PENDING", "PAUSED", "FIRED", "CANCELLED", "COMPLETED", "MISSED")


def _state(text: str) -> str:
    """The state that was typed."""
    return one_of("state", STATES, text)


Prefix = Annotated[
    str | None, typer.Option("--prefix", metavar="TEXT", help="Only ids that begin so.")
]
DueFrom = Annotated[
    int | None,
    typer.Option("--due-from", parser=parse_instant, metavar="INSTANT", help="Due then or later."),
]
DueUntil = Annotated[
    int | None,
    typer.Option("--due-until", parser=parse_instant, metavar="INSTANT", help="Due before then."),
]
State = Annotated[
    str | None,
    typer.Option(
        "--state", parser=_state, metavar="STATE", help=f"Only these: {', '.join(STATES)}."
    ),
]
Group = Annotated[str | None, typer.Option("--group", metavar="TEXT", help="Only this group.")]
EventType = Annotated[
    str | None, typer.Option("--event-type", metavar="TEXT", help="Only this event type.")
]
Most = Annotated[
    int | None,
    typer.Option("--limit", "-n", min=1, metavar="N", help="Show at most so many.  [default: all]"),
]
Following = Annotated[
    int,
    typer.Option("--next", min=0, max=20, metavar="N", help="Occurrences to come that are shown."),
]
Last = Annotated[
    int, typer.Option("--last", min=0, max=10, metavar="N", help="Last fires that are shown.")
]


def get(
    session: Session,
    tenant: Tenant,
    schedule_id: ScheduleId,
    *,
    following: Following = 10,
    last: Last = 10,
) -> None:
    """Show a schedule; for a day after its end, how it ended.

    Exit code 3 if there is no such schedule.
    """
    asked = {"next": following or None, "last": last or None}
    found = Remote(session).get(schedule_path(tenant, schedule_id), **asked)
    session.printer.one(found, _whole(found))


def list_(
    session: Session,
    tenant: Tenant,
    *,
    prefix: Prefix = None,
    due_from: DueFrom = None,
    due_until: DueUntil = None,
    state: State = None,
    group: Group = None,
    event_type: EventType = None,
    limit: Most = None,
) -> None:
    """List a tenant's schedules, by id, or by due instant where a range is given.

    A long list is not a snapshot: a schedule that changes meanwhile may be missed or shown twice.
    Example:

    belfry schedule list demo --prefix order/
    """
    query = {
        "prefix": prefix,
        "due_from": due_from,
        "due_until": due_until,
        "state": None if state is None else state.upper(),
        "group": group,
        "event_type": event_type,
    }
    remote = Remote(session)
    path = schedule_path(tenant, "").rstrip("/")
    found = pages(remote, path, "schedules", query, limit)
    none = f"{tenant} has no such schedules."
    session.printer.listed(((each, _line(each)) for each in found), SCHEDULES, none)


def pages(
    remote: Remote, path: str, name: str, query: dict[str, Any], limit: int | None
) -> Iterator[dict[str, Any]]:
    """The items of a list under this name, page after page, up to a limit.

    `query` goes with every page, and `cursor` says where the next one begins. A page is asked for
    when the one before has been used, so a long list needs no memory. Raises `CommandError`.
    """
    left = limit
    cursor = None
    while left is None or left > 0:
        most = MOST if left is None else min(left, MOST)
        page = remote.get(path, **query, limit=most, cursor=cursor)
        yield from page[name]
        cursor = page["cursor"]
        if cursor is None:
            return
        if left is not None:
            left -= len(page[name])


def locks(session: Session, tenant: Tenant) -> None:
    """List a tenant's ack locks: the fires to acknowledge before others go on.

    Acknowledge one with: belfry schedule ack TENANT SCHEDULE_ID FIRE_ID
    """
    path = schedule_path(tenant, "").removesuffix("schedules/") + "locks"
    found = pages(Remote(session), path, "locks", {}, None)
    none = f"No fire of {tenant} is waited for."
    session.printer.listed(((each, _lock(each)) for each in found), LOCKS, none)


def _line(found: dict[str, Any]) -> str:
    """A schedule in a line of a list: due instant, state, kind, version, id, how far away."""
    due_ms = parse_instant(found["due_at"])
    away = from_now(due_ms, int(time() * 1000))
    kind = found.get("kind") or "-"
    name = plain(found["schedule_id"])
    why = f"  waiting for {found['waiting_for']}" if found.get("waiting_for") else ""
    return (
        f"{format_instant(due_ms)}  {found['state']:9} {kind:5} v{found['version']}  {name}  {away}"
        f"{why}"
    )


def _lock(found: dict[str, Any]) -> str:
    """An ack lock in a line: the fire to acknowledge, whose it is, and how long it is waited
    for.
    """
    fired = from_now(parse_instant(found["fired_at"]), int(time() * 1000))
    group = f"  group {plain(found['group'])}" if found["group"] else ""
    name = plain(found["schedule_id"])
    return f"{found['fire_id']}  {name}{group}  fired {fired}, waits until {found['expires_at']}"


def _whole(found: dict[str, Any]) -> str:
    """A schedule for people, a line for each field that has a value, then its next occurrences."""
    shown = {name: value for name, value in found.items() if value not in (None, [])}
    following, fires = shown.pop("next_occurrences", []), shown.pop("last_fires", [])
    if "fires" in shown:
        shown["fires"] = shown["fires"]["words"]
    lines = [f"{name:16} {plain(str(value))}" for name, value in shown.items()]
    if len(following) > 1:
        lines += [f"{'next':16} {each['due_at']}  #{each['occurrence']}" for each in following]
    lines += [_fire(each) for each in fires]
    return "\n".join(lines)


def _fire(each: dict[str, Any]) -> str:
    for_others = f", for {each['missed']} missed ones too" if each["missed"] else ""
    named = f"  {each['fire_id']}" if each["fire_id"] else ""
    fired = f"{'last':16} {each['due_at']}  {each['late_ms']} ms late{for_others}{named}"
    return "\n".join([fired, *map(_end, each.get("deliveries") or ())])


def _end(each: dict[str, Any]) -> str:
    """How a delivery of a fire ended, in a line below it."""
    why = f": {plain(each['code'])}" if each["code"] else ""
    how = f"{each['outcome']} at attempt {each['attempt']}"
    return f"{'':16} {each['at']}  {how}, {plain(each['target'])}{why}"
