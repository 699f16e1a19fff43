"""``belfry top`` and ``belfry tenant top``: what workers do now, and whose events wait.

Both ask one worker over HTTP, and that worker asks the others. A worker that does not answer is
named, so that nobody takes what is shown for all there is.

Fires a second are worked out here, from the counters of two looks; the first look shows 0. A worker
that was restarted counts from 0 again, which shows as a negative rate once.

    12:00:00  worker w1 has fired 1 000          0 fires/s
    12:00:02  worker w1 has fired 1 400          200 fires/s
    12:00:04  w1 was restarted, and has fired 50 -675 fires/s, once
"""

from __future__ import annotations

from enum import StrEnum
from time import monotonic, sleep
from typing import Annotated, Any, Final

import typer

from belfry.cli.options import seconds
from belfry.cli.remote import Remote
from belfry.cli.session import Session, with_session
from belfry.cli.shown import plain

# Seconds between two looks.
# Seconds.
PAUSE_S: Final = 2.0
Interval = Annotated[
    float | None,
    typer.Option(
        "--interval",
        parser=seconds,
        metavar="SECONDS",
        help="Pause between two looks.  [default: 2]",
    ),
]
Times = Annotated[
    int | None,
    typer.Option("--count", "-n", min=1, metavar="N", help="Look so often, then stop."),
]


def register(app: typer.Typer) -> None:
    """Add ``top`` to the program; ``tenant top`` is added by `belfry.cli.tenant`."""
    app.command("top")(with_session(top))


def top(session: Session, *, interval: Interval = None, count: Times = None) -> None:
    """Show what every worker does, until Ctrl-C.

    Pending schedules, lag and the oldest due event of each partition, and fires a second.
    """
    remote = Remote(session)
    before: dict[str, tuple[float, int]] = {}
    looks = 0
    while count is None or looks < count:
        if looks:
            sleep(PAUSE_S if interval is None else interval)
        looks += 1
        cluster = remote.get("/v1/cluster")
        session.printer.clear()
        session.printer.one(cluster, "\n".join(_lines(cluster, before)))


def _lines(cluster: dict[str, Any], before: dict[str, tuple[float, int]]) -> list[str]:
    """The cluster for people. `before` holds when each worker was looked at and how many events it
    had fired; it is brought up to date.
    """
    pending = sum(worker["pending"] or 0 for worker in cluster["workers"])
    # A key that is bound to some tenants is told no counts; then no sum is shown, rather than 0.
    known = all(worker["pending"] is not None for worker in cluster["workers"])
    told = f", {pending:,} pending" if known else ""
    lines = [f"{cluster['app_id']}: {len(cluster['workers'])} workers{told}"]
    for worker in cluster["workers"]:
        now, fired = monotonic(), worker["fired"] or 0
        then, earlier = before.get(worker["worker_id"], (now, fired))
        # A worker that was started anew counts from 0 again.
        rate = max(0.0, (fired - earlier) / (now - then)) if now > then else 0.0
        before[worker["worker_id"]] = (now, fired)
        state = "ready" if worker["ready"] else "; ".join(worker["problems"]) or "not ready"
        lines.append(f"\n{worker['worker_id']}  {worker['version']}  {state}  {rate:,.0f} fires/s")
        lines += [_partition(partition) for partition in worker["partitions"]]
    lines += [f"\n{name}  does not answer" for name in cluster.get("silent", ())]
    return lines


def _partition(partition: dict[str, Any]) -> str:
    """A partition in a line: state, pending, records to take in, and its next due instant."""
    oldest = partition["oldest_due_at"] or "-"
    if partition["pending"] is None:  # A key that is bound to some tenants is told no more.
        return f"  {partition['partition']:>4}  {partition['state']}"
    return (
        f"  {partition['partition']:>4}  {partition['state']:12}"
        f" {partition['pending']:>12,} pending"
        f"  {partition['ingest_lag_records']:>8,} to take in  next {oldest}"
    )


class By(StrEnum):
    """What comes first: figures of tenants, the largest first."""

    WAITING = "waiting"
    PENDING = "pending"
    FIRED = "fired"
    REJECTED = "rejected"
    LATENESS = "lateness"


Order = Annotated[By, typer.Option("--by", help="What comes first.")]
Most = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="So many.")]
Only = Annotated[bool, typer.Option("--waiting", help="Those whose events wait, and no others.")]


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
