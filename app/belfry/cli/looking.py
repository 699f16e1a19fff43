"""``belfry schedule get|list|update``: what a worker holds, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from time import time
from typing import Annotated, Any, Final

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.options import FLAGS, ExpectedVersion, ScheduleId, Tenant, When
from belfry.cli.remote import Remote, schedule_path
from belfry.cli.session import Session
from belfry.cli.shown import from_now, plain
from belfry.schedules.fields import FIELDS, KIND_OF, NOT_DEFINING
from belfry.schedules.identity import etag_of
from belfry.schedules.instants import format_instant, parse_instant

MOST: Final = 1_000
# What a schedule shows and what asks for it have the same names.
DEFINING: Final = tuple(
    json for name, field in FIELDS.items() if name not in NOT_DEFINING for json in field.json_names
)
WHEN: Final = frozenset({*KIND_OF, "timezone"})
# What goes with each kind that recurs, and is read in a zone.
OF_DAYS: Final = frozenset({"except_cron", "calendar", "on_holiday"})

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
    typer.Option("--state", metavar="STATE", help="PENDING, PAUSED, FIRED, COMPLETED, MISSED."),
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
NewExcept = Annotated[
    str | None,
    typer.Option(
        "--except-cron",
        metavar="EXPRESSION",
        help="No occurrence in the minutes of this cron expression; an empty one ends that.",
    ),
]
NewCalendar = Annotated[
    str | None,
    typer.Option(
        "--calendar",
        metavar="CALENDAR",
        help="Calendar whose days off it heeds; an empty one ends that.",
    ),
]
NewWay = Annotated[
    str | None,
    typer.Option(
        "--on-holiday",
        metavar="WAY",
        help="On a day off: SKIP, NEXT_BUSINESS_DAY or PREVIOUS_BUSINESS_DAY.",
    ),
]
Payload = Annotated[
    str | None, typer.Option("--payload", metavar="TEXT", help="New value of the event.")
]
NewGroup = Annotated[str | None, typer.Option("--group", metavar="TEXT", help="New group.")]
NewType = Annotated[str | None, typer.Option("--event-type", metavar="TEXT", help="New type.")]


def get(
    session: Session,
    tenant: Tenant,
    schedule_id: ScheduleId,
    *,
    following: Following = 10,
    last: Last = 10,
) -> None:
    """Show a schedule; for a day after its end, how it ended.

    Exit code 3 when there is none.
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

    A long list is no snapshot: what changes meanwhile may be missed or shown twice. Example:

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
    session.printer.many((each, _line(each)) for each in found)


def pages(
    remote: Remote, path: str, name: str, query: dict[str, Any], limit: int | None
) -> Iterator[dict[str, Any]]:
    """What a list holds under this name, page after page, up to a limit."""
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
    session.printer.many((each, _lock(each)) for each in found)


def update(
    session: Session,
    tenant: Tenant,
    schedule_id: ScheduleId,
    *,
    when: When,
    except_cron: NewExcept = None,
    calendar: NewCalendar = None,
    on_holiday: NewWay = None,
    payload: Payload = None,
    group: NewGroup = None,
    event_type: NewType = None,
    expected_version: ExpectedVersion = None,
) -> None:
    """Change parts of a schedule; what is not given stays as it is.

    Counts only if nobody else changes it meanwhile: exit code 4 otherwise. Example:

    belfry schedule update demo hello --in 10m
    """
    remote = Remote(session)
    path = schedule_path(tenant, schedule_id)
    found = remote.get(path)
    if found["state"] not in ("PENDING", "PAUSED"):
        raise WrongUse(f"{schedule_id} is over ({found['state']}): create it anew.")
    body = definition(found)
    if given := _given(when):
        replaced = WHEN - {"timezone"} if _has_days(body, when) else WHEN | OF_DAYS
        body = {name: value for name, value in body.items() if name not in replaced} | given
    if except_cron is not None:
        body["except_cron"] = except_cron or None
    if calendar is not None:
        body["calendar"] = calendar or None
        body["on_holiday"] = body.get("on_holiday") if calendar else None
    if on_holiday is not None:
        body["on_holiday"] = on_holiday.upper()
    for name, value in (("timezone", when.zone), ("group", group), ("event_type", event_type)):
        if value is not None:
            body[name] = value
    if payload is not None:
        body.pop("payload_base64", None)
        body["payload_text"] = payload
    etag = expected_version or etag_of(found.get("generation"), found["version"])
    verdict = remote.ask("PUT", path, body, {"if-match": f'"{etag}"'})
    session.printer.one(verdict, _verdict(verdict))


def definition(found: dict[str, Any]) -> dict[str, Any]:
    """What asks for a schedule as it stands; a delay that runs already is its instant by now.

    So it slides no more.
    """
    body = {name: found[name] for name in DEFINING if found.get(name) is not None}
    if body.pop("delay_ms", None) is not None:
        body["at"] = found["scheduled_at"]
        body.pop("max_wait_ms", None)
    return body


def _has_days(body: dict[str, Any], when: When) -> bool:
    """Whether a new rule leaves out or heeds what the old one does, and is read in its zone."""
    return when.recurs and bool(OF_DAYS & body.keys())


def _given(when: When) -> dict[str, Any]:
    """What was given of when, by the names of the HTTP API."""
    given = when.fields()
    if len(given) > 1:
        raise WrongUse(f"Say when with at most one of {FLAGS}.")
    return given


def _verdict(verdict: dict[str, Any]) -> str:
    name = plain(f"{verdict['tenant']}/{verdict['schedule_id']}")
    return f"{verdict['outcome']} {name}, version {verdict['version']}, due {verdict['due_at']}"


def _line(found: dict[str, Any]) -> str:
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
    fired = from_now(parse_instant(found["fired_at"]), int(time() * 1000))
    group = f"  group {plain(found['group'])}" if found["group"] else ""
    name = plain(found["schedule_id"])
    return f"{found['fire_id']}  {name}{group}  fired {fired}, waits until {found['expires_at']}"


def _whole(found: dict[str, Any]) -> str:
    shown = {name: value for name, value in found.items() if value not in (None, [])}
    following, fires = shown.pop("next_occurrences", []), shown.pop("last_fires", [])
    lines = [f"{name:16} {plain(str(value))}" for name, value in shown.items()]
    if len(following) > 1:
        lines += [f"{'next':16} {each['due_at']}  #{each['occurrence']}" for each in following]
    lines += [_fire(each) for each in fires]
    return "\n".join(lines)


def _fire(each: dict[str, Any]) -> str:
    for_others = f", for {each['missed']} missed ones too" if each["missed"] else ""
    named = f"  {each['fire_id']}" if each["fire_id"] else ""
    return f"{'last':16} {each['due_at']}  {each['late_ms']} ms late{for_others}{named}"
