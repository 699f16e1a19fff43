"""``belfry redrive``: requests that were refused are sent again, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli.failures import ask_to_begin
from belfry.cli.help import Program
from belfry.cli.options import Reason
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
        help="Refused then or later.",
        show_default=False,
    ),
]
Until = Annotated[
    int,
    typer.Option(
        "--until",
        parser=parse_instant,
        metavar="INSTANT",
        help="Refused before then.",
        show_default=False,
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
    app.add_typer(group, name="redrive", help="Send again what was refused.")


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
