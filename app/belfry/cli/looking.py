"""``belfry schedule get|list|update``: what a worker holds, over HTTP.

Schedules lie in the stores of workers, and only a worker can look one up. Any worker can be asked:
it answers from its own store, or asks the owner of the partition.

`update` is a read and a write. The write has a condition, the version that was read, so that a
change of somebody else in between is never overwritten:

    this command                     worker                       somebody else
    12:00:00.000  GET ──────────────► version 17.3
    12:00:00.010                      ◄──────────────────────────── pause: version 17.4
    12:00:00.020  PUT if-match 17.3 ─► 412 conflict: exit code 4

What is not given stays as it is. A new rule takes the place of the old one as a whole, with the
days that it leaves out or heeds. Only a rule that recurs keeps these, for they are read in its time
zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import time
from typing import Annotated, Any, Final

import typer

from belfry.cli.assignments import assigned, check_names
from belfry.cli.failures import WrongUse
from belfry.cli.options import FLAGS, ExpectedVersion, ScheduleId, Tenant, When
from belfry.cli.remote import Remote, schedule_path
from belfry.cli.session import Session
from belfry.cli.shown import from_now, plain
from belfry.schedules.fields import FIELDS, KIND_OF, NOT_DEFINING
from belfry.schedules.identity import etag_of
from belfry.schedules.instants import format_instant, parse_instant

# Schedules of one page of a list, which is the most that a worker gives.
MOST: Final = 1_000
SCHEDULES: Final = f"{'due':24}  {'state':9} {'kind':5} ver  schedule"
LOCKS: Final = f"{'fire id':32}  schedule, group, and until when it waits"
# What a schedule shows and what asks for it have the same names.
DEFINING: Final = tuple(
    json for name, field in FIELDS.items() if name not in NOT_DEFINING for json in field.json_names
)
# Fields that say when; a new rule replaces all of them.
WHEN: Final = frozenset({*KIND_OF, "timezone"})
# Names of one field, of which a request has one.
SAME: Final = (
    frozenset({"payload_text", "payload_base64", "payload_json"}),
    frozenset({"key_text", "key_base64"}),
)
# Fields that say on which days a rule is not due.
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

NewOthers = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Any other field, by its name over HTTP: key_text, headers, jitter_ms ..."
        " VALUE is JSON, or text; `none` takes it away. Repeatable.",
    ),
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
    none = f"{tenant} has no such schedules."
    session.printer.listed(((each, _line(each)) for each in found), SCHEDULES, none)


def pages(
    remote: Remote, path: str, name: str, query: dict[str, Any], limit: int | None
) -> Iterator[dict[str, Any]]:
    """What a list holds under this name, page after page, up to a limit.

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
    others: NewOthers = None,
    expected_version: ExpectedVersion = None,
) -> None:
    """Change parts of a schedule; what is not given stays as it is.

    Counts only if nobody else changes it meanwhile: exit code 4 otherwise. What has no option of
    its own is set by its name over HTTP. Example:

    belfry schedule update demo hello --in 10m --set key_text=k --set misfire=SKIP
    """
    changed = _others(others or ())
    typed = {"timezone": when.zone, "group": group, "event_type": event_type}
    typed["payload_text"] = payload
    changed |= {name: value for name, value in typed.items() if value is not None}
    days = {"except_cron": except_cron, "calendar": calendar, "on_holiday": on_holiday}
    remote = Remote(session)
    path = schedule_path(tenant, schedule_id)
    found = remote.get(path)
    # A schedule that is over has no version to compare with: it is created anew.
    if found["state"] not in ("PENDING", "PAUSED"):
        raise WrongUse(f"{schedule_id} is over ({found['state']}): create it anew.")
    body = _with_days(_with_rule(definition(found), when), days)
    for names in SAME:
        if changed.keys() & names:
            body = {name: value for name, value in body.items() if name not in names}
    body |= changed
    etag = expected_version or etag_of(found.get("generation"), found["version"])
    verdict = remote.ask("PUT", path, body, {"if-match": f'"{etag}"'})
    session.printer.one(verdict, _verdict(verdict))


def _with_rule(body: dict[str, Any], when: When) -> dict[str, Any]:
    """The same with the instant or the rule that was given, if one was."""
    given = _given(when)
    if not given:
        return body
    replaced = WHEN - {"timezone"} if _has_days(body, when) else WHEN | OF_DAYS
    return {name: value for name, value in body.items() if name not in replaced} | given


def _with_days(body: dict[str, Any], days: dict[str, str | None]) -> dict[str, Any]:
    """The same with the days to leave out that were given; an empty name ends that."""
    given = {name: value or None for name, value in days.items() if value is not None}
    if "calendar" in given and given["calendar"] is None:
        given.setdefault("on_holiday", None)
    if way := given.get("on_holiday"):
        given["on_holiday"] = way.upper()
    return body | given


def _others(given: Iterable[str]) -> dict[str, Any]:
    """Fields that were given by their names over HTTP."""
    found = assigned(given, "jitter_ms=5000")
    check_names(found, {*DEFINING, *SAME[0]} - WHEN)
    return found


def definition(found: dict[str, Any]) -> dict[str, Any]:
    """What asks for a schedule as it stands; a delay that runs already is its instant by now.

    `found` is a schedule as the HTTP API shows it, and the result is a body that creates the same.
    A delay that has begun is told as its instant, so it slides no more.
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
    """What was given of when, by the names of the HTTP API; `WrongUse` for more than one kind.

    Nothing at all is fine: the rule stays as it is then.
    """
    given = when.fields()
    if len(given) > 1:
        raise WrongUse(f"Say when with at most one of {FLAGS}.")
    return given


def _verdict(verdict: dict[str, Any]) -> str:
    """The verdict on a change in a line for people."""
    name = plain(f"{verdict['tenant']}/{verdict['schedule_id']}")
    return f"{verdict['outcome']} {name}, version {verdict['version']}, due {verdict['due_at']}"


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
    lines = [f"{name:16} {plain(str(value))}" for name, value in shown.items()]
    if len(following) > 1:
        lines += [f"{'next':16} {each['due_at']}  #{each['occurrence']}" for each in following]
    lines += [_fire(each) for each in fires]
    return "\n".join(lines)


def _fire(each: dict[str, Any]) -> str:
    for_others = f", for {each['missed']} missed ones too" if each["missed"] else ""
    named = f"  {each['fire_id']}" if each["fire_id"] else ""
    return f"{'last':16} {each['due_at']}  {each['late_ms']} ms late{for_others}{named}"
