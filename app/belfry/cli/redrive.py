"""``belfry redrive``: what was refused, or what has fired, is sent again, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli.failures import ask_to_begin
from belfry.cli.help import Program
from belfry.cli.looking import Prefix
from belfry.cli.options import Reason, Tenant
from belfry.cli.session import Session, with_session
from belfry.cli.shown import plain
from belfry.schedules.instants import parse_instant

if TYPE_CHECKING:
    from belfry.client.redrive import RedriveCount

Whose = Annotated[
    str,
    typer.Argument(
        metavar="TENANT",
        help="Whose requests; '*' for all, also of unknown ones.",
        show_default=False,
    ),
]
From = Annotated[
    int,
    typer.Option(
        "--from",
        parser=parse_instant,
        metavar="INSTANT",
        help="Refused, or fired, then or later.",
        show_default=False,
    ),
]
Until = Annotated[
    int,
    typer.Option(
        "--until",
        parser=parse_instant,
        metavar="INSTANT",
        help="Refused, or fired, before then.",
        show_default=False,
    ),
]
OneSchedule = Annotated[
    str | None, typer.Option("--id", metavar="ID", help="Only of this schedule.")
]
Topic = Annotated[
    str | None,
    typer.Option("--topic", metavar="TOPIC", help="Output topic.  [default: belfry.fired.TENANT]"),
]
Name = Annotated[
    str,
    typer.Option(
        "--name", metavar="TEXT", help="Of this redrive; under another one events are sent again."
    ),
]
Code = Annotated[
    str | None, typer.Option("--code", metavar="CODE", help="Only what was refused with this code.")
]
PerSecond = Annotated[
    int, typer.Option("--per-second", min=1, max=10_000, metavar="N", help="Requests a second.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether to begin.")]
Dry = Annotated[
    bool, typer.Option("--dry", "--dry-run", help="Show the count, and change nothing.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    group = Program()
    group.command("rejected")(with_session(rejected))
    group.command("fires")(with_session(fires))
    app.add_typer(group, name="redrive", help="Send again what was refused, or what has fired.")


def rejected(
    session: Session,
    tenant: Whose,
    *,
    from_: From,
    until: Until,
    code: Code = None,
    per_second: PerSecond = 100,
    yes: Yes = False,
    dry: Dry = False,
    reason: Reason = None,
) -> None:
    """Send requests again that were refused in a range, each once, as they were received.

    It counts by code first. What was sent is marked, so the same command goes on after a crash.
    Example:

    belfry redrive rejected demo --from 2026-12-01T00:00:00Z --until 2026-12-02T00:00:00Z --dry
    """
    with session.client() as client:
        found = client.redrive_preview(tenant, from_, until, code=code)
        if dry:
            session.printer.one(_json(found), _text(found, "would be sent"))
            return
        session.printer.note(_text(found, "would be sent"))
        if not found.places:
            return
        if not yes:
            ask_to_begin(f"Send {len(found.places)} requests again?")
        done = client.redrive(tenant, from_, until, code=code, per_second=per_second, reason=reason)
        session.printer.one(_json(done), _text(done, "were sent"))


def fires(
    session: Session,
    tenant: Tenant,
    *,
    from_: From,
    until: Until,
    schedule_id: OneSchedule = None,
    prefix: Prefix = None,
    topic: Topic = None,
    name: Name = "redrive",
    per_second: PerSecond = 100,
    yes: Yes = False,
    dry: Dry = False,
) -> None:
    """Send events again that have fired in a range, as they came out, with the same fire ids.

    It counts first. Under one name each event is sent again once, so the same command goes on
    after a crash. Example:

    belfry redrive fires demo --from 2026-12-01T00:00:00Z --until 2026-12-02T00:00:00Z --dry
    """
    from belfry.client.refired import RefireRange

    asked = RefireRange(from_, until, schedule_id, prefix or "", name)
    where = topic or session.settings.topic(f"fired.{tenant}")
    with session.client() as client:
        found = client.refire_preview(where, asked)
        if dry:
            session.printer.one(_json(found), _fires_text(found, "would be sent"))
            return
        session.printer.note(_fires_text(found, "would be sent"))
        if not found.places:
            return
        if not yes:
            ask_to_begin(f"Send {len(found.places)} events again?")
        done = client.refire(where, asked, per_second=per_second)
        session.printer.one(_json(done), _fires_text(done, "were sent"))


def _fires_text(found: RedriveCount, how: str) -> str:
    return f"{len(found.places)} events of {len(found.codes)} schedules {how}" + (
        f", {found.redriven} were redriven before" * bool(found.redriven)
    )


def _json(found: RedriveCount) -> dict[str, Any]:
    return {
        "requests": len(found.places),
        "codes": dict(found.codes),
        "redriven": found.redriven,
        "stuck": dict(found.stuck),
    }


def _text(found: RedriveCount, how: str) -> str:
    codes = ", ".join(f"{plain(code)}: {count}" for code, count in sorted(found.codes.items()))
    stuck = ", ".join(f"{why}: {count}" for why, count in sorted(found.stuck.items()))
    return (
        f"{len(found.places)} requests {how}"
        + (f" ({codes})" * bool(codes))
        + (f", {found.redriven} were redriven before" * bool(found.redriven))
        + (f", {found.stuck.total()} cannot be ({stuck})" * bool(stuck))
    )
