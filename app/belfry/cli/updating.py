"""``belfry schedule update``: parts of a schedule change, and the rest stays as it is.

`update` is a read and a write. The write has a condition, the version that was read, so that a
change of somebody else in between is never overwritten:

    this command                     worker                       somebody else
    12:00:00.000  GET ──────────────► version 17.3
    12:00:00.010                      ◄──────────────────────────── pause: version 17.4
    12:00:00.020  PUT if-match 17.3 ─► 412 conflict: exit code 4

Fields that are not given stay as they are. A new rule replaces the old one as a whole, but keeps
the days that the old one leaves out or heeds. Only a recurring rule keeps these, for they are read
in its time zone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

import typer

from belfry.cli.assignments import assigned, check_names
from belfry.cli.failures import WrongUse
from belfry.cli.options import ExpectedVersion, ScheduleId, Tenant
from belfry.cli.remote import Remote, schedule_path
from belfry.cli.session import Session
from belfry.cli.shown import plain
from belfry.cli.when_options import FLAGS, When
from belfry.schedules.fields import FIELDS, KIND_OF, NOT_DEFINING
from belfry.schedules.identity import etag_of

# A schedule as shown and the request for it have the same names.
DEFINING: Final = tuple(
    json for name, field in FIELDS.items() if name not in NOT_DEFINING for json in field.json_names
)
# Fields that say when; a new rule replaces all of them.
WHEN: Final = frozenset({*KIND_OF, "timezone", "ack_delay_ms", "latest_at"})
# Names of one field, of which a request has one.
SAME: Final = (
    frozenset({"payload_text", "payload_base64", "payload_json"}),
    frozenset({"key_text", "key_base64"}),
)
# Fields that say on which days a rule is not due.
OF_DAYS: Final = frozenset({"except_cron", "calendar", "on_holiday"})
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
    """Change parts of a schedule; other fields stay as they are.

    Counts only if nobody else changes it meanwhile: exit code 4 otherwise. Set a field without an
    option by its name over HTTP. Example:

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
    if found.get("unreadable"):
        raise WrongUse(
            f"{schedule_id} cannot be shown whole, so an update of parts would lose the rest:"
            f" {found['unreadable']}. Create it anew, with --replace."
        )
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
    """The request for a schedule as it stands; a running delay has become its instant.

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
    """The given options of when, by the names of the HTTP API; `WrongUse` for more than one kind.

    Without any option the rule stays as it is.
    """
    given = when.fields()
    if len(given) > 1:
        raise WrongUse(f"Say when with at most one of {FLAGS}.")
    return given


def _verdict(verdict: dict[str, Any]) -> str:
    """The verdict on a change in a line for people."""
    name = plain(f"{verdict['tenant']}/{verdict['schedule_id']}")
    return f"{verdict['outcome']} {name}, version {verdict['version']}, due {verdict['due_at']}"
