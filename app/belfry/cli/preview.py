"""``belfry schedule preview``: a rule in words and its next instants, without a broker.

The same code computes them as in a worker (`belfry.schedules.preview`), so that the shown instants
are those that fire. The clock is this machine's: a delay counts from now, as it would count from
the request's arrival.

    $ belfry schedule preview --cron "0 9 * * MON" --tz Europe/Paris --count 1
    …
    #0    2026-11-30T09:00:00.000+01:00   2026-11-30T08:00:00.000Z   in 4d …

Warnings go to stderr: local times that a change of clocks skips or repeats, for one.

Two things need names. ``H`` in a cron expression is spread by tenant and id, and a calendar is the
tenant's, so --calendar asks a worker over HTTP for its days.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

import typer

from belfry.cli.bound_options import BoundOptions, check_recurring
from belfry.cli.failures import WrongUse
from belfry.cli.remote import Remote, tenant_path
from belfry.cli.session import Session
from belfry.cli.shown import Output, from_now
from belfry.cli.when_options import When, check_zone
from belfry.schedules.civil import day_number
from belfry.schedules.days_off import DAY_NAMES, packed_days
from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import format_instant
from belfry.schedules.rejections import Rejection

if TYPE_CHECKING:
    from belfry.schedules.preview import Occurrence, Preview

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)

Count = Annotated[
    int, typer.Option("--count", "-n", min=1, max=10_000, metavar="N", help="How many to show.")
]
Owner = Annotated[
    str,
    typer.Option(
        "--tenant", metavar="TENANT", help="Whose it is to be: H and --calendar depend on it."
    ),
]
Name = Annotated[
    str, typer.Option("--id", metavar="ID", help="Which schedule it is to be: H depends on it.")
]


def preview(
    session: Session,
    *,
    when: When,
    bounds: BoundOptions,
    count: Count = 5,
    tenant: Owner = "",
    schedule_id: Name = "",
) -> None:
    """Show when a rule is due, counted from now, and what to know about it.

    Needs no broker, but a worker where it names a --calendar of a --tenant. Local times are those
    of --tz, or of this machine without it. Example:

    belfry schedule preview --cron "0 9 * * MON" --tz Europe/Paris
    """
    from belfry.schedules.preview import preview as previewed

    when.check()
    check_recurring(bounds, when.recurs)
    if when.zone is not None:
        check_zone(when.zone)
    # ``H`` of a cron expression is a number that is derived from both names.
    names = {"tenant": tenant, "schedule_id": schedule_id}
    request: Any = {**_request(when, bounds), **names}
    now_ms = int(time() * 1000)
    found = previewed(request, now_ms, count, when.zone, _days(session, request))
    if isinstance(found, Rejection):
        raise WrongUse(found.reason)
    _print(session, found, when.zone, now_ms)


def _request(when: When, bounds: BoundOptions) -> dict[str, Any]:
    """The request that a preview stands for, with nothing but its rule.

    `EMPTY` has all other fields, as a request that leaves them out would have them.
    """
    return {
        **EMPTY,
        "kind": when.given[0].name,
        **when.fields(),
        "timezone": when.zone,
        "start_at": bounds.start_at,
        "end_at": bounds.end_at,
        "max_fires": bounds.max_fires,
        "except_cron": bounds.except_cron,
        "calendar": bounds.calendar,
        "on_holiday": bounds.on_holiday,
        "jitter_ms": bounds.jitter,
        "max_wait_ms": bounds.max_wait,
        "ack_delay_ms": bounds.ack_delay,
        "latest_at": bounds.latest_at,
    }


def _days(session: Session, request: Any) -> bytes | None:
    """The days of the calendar that a preview names, as a worker tells them.

    The result is packed as records hold it, None without a calendar. `WrongUse` without a tenant.
    """
    calendar, tenant = request["calendar"], request["tenant"]
    if calendar is None:
        return None
    if not tenant:
        raise WrongUse(f"--calendar {calendar} is that of a tenant: say whose with --tenant.")
    path = f"{tenant_path(tenant)}/calendars/{quote(calendar, safe='')}"
    found = Remote(session).get(path)
    days = (day_number(date.fromisoformat(each)) for each in found["days"])
    return packed_days(days, map(DAY_NAMES.index, found["weekend"]))


def _print(session: Session, found: Preview, tz: str | None, now_ms: int) -> None:
    """Everything as text or as one JSON object; as JSON lines the instants alone."""
    printer = session.printer
    shown = [_shown(each, tz, now_ms) for each in found.occurrences]
    if printer.output is Output.JSON:
        whole = {
            "words": found.words,
            "timezone": found.timezone,
            "occurrences": [record for record, _ in shown],
            "warnings": [each._asdict() for each in found.warnings],
        }
        printer.one(whole, "")
        return
    if printer.for_people:
        printer.one({}, found.words)
    printer.many(shown)
    for warning in found.warnings:
        printer.note(f"{warning.code}: {warning.text}")


def _shown(each: Occurrence, tz: str | None, now_ms: int) -> tuple[dict[str, object], str]:
    """An occurrence for programs and for people; without a zone its local time is this
    machine's.
    """
    due_ms = each.scheduled_ms
    local = _local(due_ms) if tz is None else each.local
    utc = format_instant(due_ms)
    away = from_now(due_ms, now_ms) if due_ms > now_ms else "in the past: fires at once"
    record = {"occurrence": each.number, "scheduled_at": utc, "local": local}
    return record, f"#{each.number:<4} {local}   {utc}   {away}"


def _local(due_ms: int) -> str:
    """An instant by this machine's own clock."""
    return (_EPOCH + due_ms * _MILLISECOND).astimezone().isoformat(timespec="milliseconds")
