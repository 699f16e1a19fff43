"""``belfry audit``: who asked for which change, and what became of it.

Workers write the audit log to a topic of its own (`belfry.audit`), one record for each change and
each refusal, as docs/audit.md says. These commands read that topic from Kafka and need no worker.
`list` reads from an instant to the end and stops. `tail` begins now, or at --since, and waits for
more.

    $ belfry audit list --tenant payments --since 1h
    2026-12-01T09:05:40.019Z  REFUSED   schedule.cancel   orders  payments/order/7  403  forbidden

Filters are applied here, after reading: the topic has no index. Records that do not decode are left
out: only a stranger can have written them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.help import Program
from belfry.cli.options import ago, seconds
from belfry.cli.session import Session, with_session
from belfry.cli.shown import instant_json, plain

if TYPE_CHECKING:
    from belfry.audit.reading import AuditFilter, AuditReader
    from belfry.wire.audit import AuditEvent

# As it is typed: the help shows it as the default.
DAY: Final = "24h"
EVENTS: Final = f"{'at':24}  {'result':8}  {'action':16}  who, on what, and what came of it"


Tenant = Annotated[
    str | None,
    typer.Option("--tenant", metavar="TENANT", help="Only changes that concern this tenant."),
]
Caller = Annotated[
    str | None,
    typer.Option("--caller", metavar="NAME", help="Only of this key, or subject of a token."),
]
Refused = Annotated[
    bool,
    typer.Option(
        "--refused", help="Only changes that were refused for lack of a right or by a limit."
    ),
]
Since = Annotated[
    int,
    typer.Option(
        "--since",
        parser=ago,
        metavar="WHEN",
        help="From then on: 2h, 7d, or an instant in RFC 3339.",
    ),
]
FollowedSince = Annotated[
    int | None,
    typer.Option(
        "--since",
        parser=ago,
        metavar="WHEN",
        help="Begin then: 2h, 7d, or an instant in RFC 3339.  [default: now]",
    ),
]
Max = Annotated[
    int | None, typer.Option("--max", "-n", min=1, metavar="N", help="End after so many events.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", parser=seconds, metavar="SECONDS", help="End after so long.  [default: never]"
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``audit`` with its commands to the program."""
    group = Program()
    group.command("list")(with_session(list_))
    group.command("tail")(with_session(tail))
    app.add_typer(group, name="audit", help="Who asked for which change: list, tail.")


def list_(
    session: Session,
    *,
    tenant: Tenant = None,
    caller: Caller = None,
    refused: Refused = False,
    since: Since = DAY,  # type: ignore[assignment]  # typer parses it
) -> None:
    """List the audit log since a while ago, the oldest first.

    Each line says when, who, what, and with which result. Example:

    belfry audit list --tenant payments --since 7d
    """
    # All at once, since it ends; `tail` yields as they come.
    found = _reader(session).listed(_wanted(tenant, caller, refused, since))
    none = "The audit log has no such change."
    session.printer.listed(((shown(each), line(each)) for each in found), EVENTS, none)


def tail(
    session: Session,
    *,
    tenant: Tenant = None,
    caller: Caller = None,
    refused: Refused = False,
    since: FollowedSince = None,
    max_: Max = None,
    timeout: Timeout = None,
) -> None:
    """Show the audit log as it grows; Ctrl-C ends it."""
    wanted = _wanted(tenant, caller, refused, since)
    events = _until(_reader(session).followed(wanted), max_, timeout)
    try:
        session.printer.many((shown(each), line(each)) for each in events)
    except KeyboardInterrupt:
        return


def _wanted(
    tenant: str | None, caller: str | None, refused: bool, since: int | None
) -> AuditFilter:
    """The filter of the options; `since` is in ms since 1970, None for the end of the topic."""
    from belfry.audit.reading import AuditFilter

    return AuditFilter(tenant, caller, "REFUSED" if refused else None, since)


def _reader(session: Session) -> AuditReader:
    """A reader of the topic of the audit log; it knows belfry's schema, and asks the registry for
    no other.
    """
    from belfry.audit.reading import AuditReader
    from belfry.client.decoding import Decoder
    from belfry.registry.subjects import look_in, open_registry

    settings = session.settings
    decoder = Decoder("AuditEvent", look_in(open_registry(settings)), only=True)
    return AuditReader(session.cluster(), settings.topic("audit"), decoder)


def _until(
    events: Iterator[AuditEvent | None], most: int | None, timeout_s: float | None
) -> Iterator[AuditEvent]:
    """Events until there were `most` of them, or until `timeout_s` seconds have passed.

    The reader yields None when nothing has come for a moment, so the end is noticed in a quiet
    topic too. The reader's consumer is closed at the end, however that comes.
    """
    deadline = None if timeout_s is None else monotonic() + timeout_s
    came = 0
    with closing(events):  # type: ignore[type-var]  # a generator
        for event in events:
            if event is not None:
                came += 1
                yield event
            if came == most or (deadline is not None and monotonic() > deadline):
                return


def shown(event: AuditEvent) -> dict[str, Any]:
    """An event for programs: the schema's names, without empty fields.

    Field `at` is an instant in RFC 3339 with milliseconds, in UTC.
    """
    found = {name: value for name, value in asdict(event).items() if value not in (None, (), "")}
    return {**found, "at": instant_json(event.at)}


def line(event: AuditEvent) -> str:
    """An event in a line for people.

    Its columns are the instant, the result, the action, who asked, on what, the HTTP status, the
    outcome, the code, what was changed, and why. A caller that is not known over HTTP is ``?``.
    """
    who = event.caller or ("?" if event.via == "http" else event.via)
    what = "/".join(each for each in (event.tenant, event.object) if each)
    parts = [
        f"{instant_json(event.at)}  {event.result:8}  {event.action:16}  {who}",
        what if event.tenant != event.object else event.tenant or "",
        str(event.status or ""),
        event.outcome or "",
        event.code or "",
        f"x{event.count}" if event.count > 1 else "",
        f"{len(event.objects)} schedules" if event.objects else "",
        "  ".join(f"{each.field}: {each.before} -> {each.after}" for each in event.changes),
        f"because {event.reason!r}" if event.reason else "",
        f"from {event.source_address}" if event.source_address else "",
    ]
    # Ids, names and paths are others' words.
    return plain("  ".join(each for each in parts if each))
