"""``belfry tenant top``: tenants with their figures, and why their events wait."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from belfry.cli.remote import Remote
from belfry.cli.session import Session
from belfry.cli.shown import plain


class By(StrEnum):
    """What comes first."""

    WAITING = "waiting"
    PENDING = "pending"
    FIRED = "fired"
    REJECTED = "rejected"
    LATENESS = "lateness"


Order = Annotated[By, typer.Option("--by", help="What comes first.")]
Most = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="So many.")]
Only = Annotated[bool, typer.Option("--waiting", help="Those whose events wait, and no others.")]


def top(
    session: Session, *, by: Order = By.WAITING, limit: Most = 20, waiting: Only = False
) -> None:
    """Show the foremost tenants: pending, fires, refusals, lateness, and why their events wait.

    Every tenant that has anything counts, with a policy or without. Counts are since the owners of
    their partitions began.
    """
    only = "true" if waiting else None
    found = Remote(session).get("/v1/tenants", sort=str(by), limit=limit, waiting=only)
    for name in found["silent"]:
        session.printer.note(f"{name} does not answer: what it owns is missing.")
    if not found["figures"]:
        session.printer.note("No tenant's events wait." if waiting else "There are no tenants yet.")
    session.printer.many((each, line(each)) for each in found["figures"])


def line(each: dict[str, Any]) -> str:
    """A tenant in a line; a second one says why its events wait."""
    mean_ms = each["late_seconds"] * 1000 / each["fired"] if each["fired"] else 0.0
    told = (
        f"{plain(each['tenant']):24} {each['pending']:>10,} pending"
        f" {each['fired']:>10,} fired {each['rejected']:>8,} refused {mean_ms:>9,.0f} ms late"
    )
    wait = each["wait"]
    if wait is None:
        return told
    oldest = f", the oldest due {wait['oldest_due_at']}" if wait["oldest_due_at"] else ""
    return (
        f"{told}\n{'':24} {wait['waiting']:,} due and waiting ({wait['cause']}) since"
        f" {wait['since']}: {plain(wait['reason'])}{oldest}"
    )
