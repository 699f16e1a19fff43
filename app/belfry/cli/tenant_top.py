"""``belfry tenant top``: the foremost tenants with their figures, and tenants whose events wait.

One tenant that floods, or whose topic is gone, hides behind sums over all of them. So tenants are
shown one by one, those first whose events wait, and a second line says why and since when:

    shop    14 pending   120 fired   8 refused   300 ms late
            2 due and waiting (rate) since 2026-12-01T09:00:00.000Z: its policy allows 5 a second

On a terminal it is a table with the same in its last column.

One worker is asked over HTTP, and that worker asks the others. A worker that does not answer is
named, so that nobody takes the shown tenants for all.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli.remote import Remote
from belfry.cli.session import Session
from belfry.cli.shown import plain
from belfry.cli.tables import add_row, looked_at, print_table, table_of

if TYPE_CHECKING:
    from rich.table import Table


class By(StrEnum):
    """The order of tenants: by a figure, the largest first."""

    WAITING = "waiting"
    PENDING = "pending"
    FIRED = "fired"
    REJECTED = "rejected"
    LATENESS = "lateness"


Order = Annotated[By, typer.Option("--by", help="The figure to sort by, the largest first.")]
Most = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="So many.")]
Only = Annotated[bool, typer.Option("--waiting", help="Only tenants whose events wait.")]


def tenant_top(
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
    if looked_at(session.printer) and found["figures"]:
        print_table(_table(found["figures"]))
    else:
        session.printer.many((each, line(each)) for each in found["figures"])


def _table(figures: list[dict[str, Any]]) -> Table:
    """The tenants for a terminal; those whose events wait are yellow."""
    numbers = ("pending", "fired", "refused", "ms late")
    table = table_of("tenant", *numbers, "waits", numbers=numbers)
    for each in figures:
        counts = (each["pending"], each["fired"], each["rejected"], round(_late_ms(each)))
        cells = (each["tenant"], *(f"{count:,}" for count in counts), _waits(each))
        add_row(table, *cells, style="" if each["wait"] is None else "yellow")
    return table


def line(each: dict[str, Any]) -> str:
    """A tenant in a line; a second one says why its events wait."""
    told = (
        f"{plain(each['tenant']):24} {each['pending']:>10,} pending {each['fired']:>10,} fired"
        f" {each['rejected']:>8,} refused {_late_ms(each):>9,.0f} ms late"
    )
    waits = _waits(each)
    return f"{told}\n{'':24} {waits}" if waits else told


def _late_ms(each: dict[str, Any]) -> float:
    """How late its events fired in the mean, in ms."""
    return each["late_seconds"] * 1000 / each["fired"] if each["fired"] else 0.0


def _waits(each: dict[str, Any]) -> str:
    """How many of its events wait, since when and why; empty if none waits."""
    wait = each["wait"]
    if wait is None:
        return ""
    oldest = f", the oldest due {wait['oldest_due_at']}" if wait["oldest_due_at"] else ""
    return (
        f"{wait['waiting']:,} due and waiting ({wait['cause']}) since {wait['since']}:"
        f" {plain(wait['reason'])}{oldest}"
    )
