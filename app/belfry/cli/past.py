"""``belfry schedule history``, ``belfry tenant history|counts|statistics``: what was, what will be.

The commands ask a worker over HTTP, page after page, and print a long answer while they read it. A
history holds what the tenant's lifecycle level lets be written: fires at ALL alone.

    what           from                               how exact
    history        lifecycle events, kept by workers  each event that the level lets be written
    counts         minute buckets of the stores       pending schedules, by their due minute
    statistics     hours, counted from the events,    lateness as a share within a second
                   and from commits

Lateness is the time from the due instant to the commit, from which on a reader sees the event.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Final

import typer

from belfry.cli.bound_options import one_of
from belfry.cli.looking import Most, pages
from belfry.cli.options import ScheduleId, Tenant
from belfry.cli.remote import Remote, schedule_path, tenant_path
from belfry.cli.session import Session
from belfry.cli.shown import plain
from belfry.schedules.instants import format_duration, parse_instant
from belfry.schedules.outcomes import Outcome

# Characters of the longest bar of `counts`.
BAR: Final = 40
MINUTES: Final = f"{'minute due':17} {'schedules':>10}"
EVENTS: Final = f"{'at':24}  {'outcome':9} schedule, and what came of it"

From = Annotated[
    int | None, typer.Option("--from", parser=parse_instant, metavar="INSTANT", help="Not before.")
]
Until = Annotated[
    int | None, typer.Option("--until", parser=parse_instant, metavar="INSTANT", help="Before it.")
]


def _outcome(text: str) -> str:
    """The outcome that was typed."""
    allowed = tuple(each.value for each in Outcome if each is not Outcome.UNKNOWN)
    return one_of("outcome", allowed, text)


def history(
    session: Session,
    tenant: Tenant,
    schedule_id: ScheduleId,
    *,
    from_: From = None,
    until: Until = None,
    newest: Annotated[bool, typer.Option("--newest", help="The newest event first.")] = False,
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            parser=_outcome,
            metavar="OUTCOME",
            help="Only these, such as CANCELLED; may be repeated.",
        ),
    ] = None,
    limit: Most = None,
) -> None:
    """Show the history of a schedule and of the requests on it, oldest first.

    Fires are written where the tenant's lifecycle is ALL. Example:

    belfry schedule history demo order/4711
    """
    path = f"{schedule_path(tenant, schedule_id)}/history"
    # An option without a value is not sent: a worker of the release before does not know it.
    order, only = "newest" if newest else None, outcome or None
    _tell(session, path, {"from": from_, "until": until, "order": order, "outcome": only}, limit)


def of_tenant(
    session: Session,
    tenant: Tenant,
    *,
    from_: From = None,
    until: Until = None,
    limit: Most = None,
) -> None:
    """Show the history of all schedules of a tenant and of the requests on them, oldest first."""
    _tell(session, f"{tenant_path(tenant)}/history", {"from": from_, "until": until}, limit)


def counts(
    session: Session, tenant: Tenant, *, due_from: From = None, due_until: Until = None
) -> None:
    """Show how many schedules are due in each minute.

    A minute counts as a whole, also where the range begins or ends within it.
    """
    remote, cursor = Remote(session), ""
    # A tenant in several partitions has a minute in parts, on several pages.
    minutes: Counter[str] = Counter()
    while True:
        # The cursor goes with the same question, else the worker refuses it.
        query = {"due_from": due_from, "due_until": due_until, "cursor": cursor or None}
        page = remote.get(f"{tenant_path(tenant)}/counts", **query)
        for each in page["counts"]:
            minutes[each["minute"]] += each["pending"]
        if not (cursor := page["cursor"]):
            break
    most = max(minutes.values(), default=1)
    told = (
        ({"minute": minute, "pending": waiting}, _bar(minute, waiting, most))
        for minute, waiting in sorted(minutes.items())
    )
    session.printer.listed(told, MINUTES, f"Nothing of {tenant} is due in this range.")


def statistics(
    session: Session, tenant: Tenant, *, from_: From = None, until: Until = None
) -> None:
    """Show requests, fires and how late they were, by hours and in all."""
    query = {"from": from_, "until": until}
    found = Remote(session).get(f"{tenant_path(tenant)}/statistics", **query)
    if (found.get("fires_since") or "").startswith("9999"):
        session.printer.note("Not all workers count fires yet: no hour has shares.")
    elif found.get("fires_since"):
        session.printer.note(
            f"Fires are counted since {found['fires_since']}: hours before that have no shares,"
            f" unless the tenant's lifecycle is ALL."
        )
    hours = [_hour(each["hour"][:16], each) for each in found["hours"]]
    session.printer.one(found, "\n".join([_HEADING, *hours, _hour("in all", found)]))


def event_line(event: dict[str, Any]) -> str:
    """One lifecycle event: when, what, of which version, why, and the request that asked for it."""
    parts = [f"{event['at']}  {event['outcome']:9} {plain(event['schedule_id'])}"]
    if event["version"] is not None:
        parts.append(f"version {event['version']}")
    if event["due_at"] is not None:
        parts.append(f"due {event['due_at']}{_late(event)}")
    if event["attempt"] is not None:
        parts.append(f"attempt {event['attempt']} to {plain(event['target'] or '-')}")
    if event["code"] or event["reason"]:
        said = f"{event['code'] or ''}: {event['reason'] or ''}".strip(": ")
        # Reasons are sentences, and this is a part of one.
        parts.append(plain(said.removesuffix(".")))
    if place := asked_at(event):
        parts.append(f"asked at {place}")
    elif event.get("told_offset") is not None:
        parts.append(f"told at {event['told_partition']}@{event['told_offset']}")
    return ", ".join(parts)


def asked_at(event: dict[str, Any]) -> str | None:
    """Topic, partition and offset of the request that an event is about; None for no request."""
    if event["source_offset"] is None:
        return None
    return f"{event['source_topic']}/{event['source_partition']}@{event['source_offset']}"


def lateness(due_at: str, at: str) -> str:
    """How long after an instant another one was, for people; ``0ms`` where it was not after it.

    Both are instants in RFC 3339, as the HTTP API gives them.
    """
    late_ms = parse_instant(at) - parse_instant(due_at)
    return format_duration(late_ms) if late_ms > 0 else "0ms"


def _tell(session: Session, path: str, query: dict[str, Any], limit: int | None) -> None:
    """Print events page after page, or say that there is none.

    `path` is that of a history, `query` its range, `limit` the most events, None for all. The first
    event is asked for before anything is printed, so that an empty range is told as such.
    """
    found = pages(Remote(session), path, "events", query, limit)
    told = ((each, event_line(each)) for each in found)
    session.printer.listed(told, EVENTS, "Nothing is kept of this range.")


def _late(event: dict[str, Any]) -> str:
    """How late a fire was, for people."""
    if event["outcome"] != "FIRED":
        return ""
    return f" ({lateness(event['due_at'], event['at'])} late)"


def _bar(minute: str, waiting: int, most: int) -> str:
    """A minute with its number and a bar; the fullest minute has the longest one."""
    return f"{minute[:16]}Z {waiting:>10,}  {'█' * max(1, BAR * waiting // most)}"


_HEADING: Final = (
    f"{'hour':16} {'requests':>10} {'accepted':>10} {'fires':>10} {'in 1 s':>8} {'missed':>8}"
    f" {'delivered':>10} {'failed':>8} {'retries':>8}"
)


def _hour(name: str, each: dict[str, Any]) -> str:
    """A row of statistics, under `_HEADING`."""
    share = each["share_within_1s"]
    quick = "-" if share is None else f"{share:.2%}"
    return (
        f"{name:16} {each['requests']:>10,} {each['accepted']:>10,} {each['fires']:>10,}"
        f" {quick:>8} {each['missed']:>8,} {each['delivered']:>10,} {each['failed']:>8,}"
        f" {each.get('retries', 0):>8,}"
    )
