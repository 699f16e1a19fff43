"""``belfry top``: the present work of all workers, look after look.

One worker is asked over HTTP, and that worker asks the others. A worker that does not answer is
named, so that nobody takes the shown workers for all.

On a terminal it is a table that is drawn anew with each look. Elsewhere it is lines, look after
look, which a pipe can read; programs get the answer of the worker.

Fires a second are worked out here, from the counters of two looks; the first look shows 0. A worker
that was restarted counts from 0 again, which shows as 0 once.

    12:00:00  worker w1 has fired 1 000            0 fires/s
    12:00:02  worker w1 has fired 1 400          200 fires/s
    12:00:04  w1 was restarted, and has fired 50   0 fires/s
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.options import seconds
from belfry.cli.remote import Remote
from belfry.cli.session import Session, with_session
from belfry.cli.shown import amount
from belfry.cli.tables import add_row, looked_at, table_of

if TYPE_CHECKING:
    from rich.table import Table

# The answer of ``/v1/cluster``.
ClusterShown = dict[str, Any]
# When each worker was looked at, by this process's clock, and how many events it had fired.
Seen = dict[str, tuple[float, int]]
# Seconds between two looks.
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
    """Add ``top`` to the program."""
    app.command("top")(with_session(top))


def top(session: Session, *, interval: Interval = None, count: Times = None) -> None:
    """Show what every worker does, until Ctrl-C.

    Pending schedules, lag and the oldest due event of each partition, and fires a second.
    """
    looks = _looks(Remote(session), PAUSE_S if interval is None else interval, count)
    try:
        _show(session, looks, count)
    # The usual end of the command: exit code 0.
    except KeyboardInterrupt:
        return


def _show(session: Session, looks: Iterable[ClusterShown], count: int | None) -> None:
    """Show each look, as a table at a terminal and as lines elsewhere."""
    if looked_at(session.printer):
        _watch(looks)
        return
    before: Seen = {}
    # One look is one object, and more of them are an array.
    printer = session.printer
    with nullcontext(printer.one) if count == 1 else printer.several() as tell:
        for cluster in looks:
            tell(cluster, "\n".join(_lines(cluster, _rates(cluster, before))))


def _looks(remote: Remote, pause_s: float, count: int | None) -> Iterator[ClusterShown]:
    """The state of the cluster, look after look, with a pause between two.

    Without a count it goes on for ever.
    """
    for look in itertools.count():
        if look == count:
            return
        if look:
            sleep(pause_s)
        yield remote.get("/v1/cluster")


def _watch(looks: Iterable[ClusterShown]) -> None:
    """Show each look in the place of the one before; the last one stays on the terminal."""
    from rich.console import Console
    from rich.live import Live

    before: Seen = {}
    # Drawn once a look: the table does not change in between.
    with Live(console=Console(), auto_refresh=False) as live:
        for cluster in looks:
            live.update(_table(cluster, _rates(cluster, before)), refresh=True)


def _rates(cluster: ClusterShown, before: Seen) -> dict[str, float]:
    """Fires a second of each worker since it was looked at before.

    `before` holds when that was, and how many events the worker had fired; it is brought up to
    date.
    """
    found = {}
    for worker in cluster["workers"]:
        name, now, fired = worker["worker_id"], monotonic(), worker["fired"] or 0
        then, earlier = before.get(name, (now, fired))
        # A worker that was started anew counts from 0 again.
        found[name] = max(0.0, (fired - earlier) / (now - then)) if now > then else 0.0
        before[name] = (now, fired)
    return found


def _heading(cluster: ClusterShown) -> str:
    """The cluster of the workers, their number, and their pending schedules in all."""
    pending = sum(worker["pending"] or 0 for worker in cluster["workers"])
    # A key that is bound to some tenants is told no counts; then no sum is shown, rather than 0.
    known = all(worker["pending"] is not None for worker in cluster["workers"])
    told = f", {pending:,} pending" if known else ""
    return f"{cluster['app_id']}: {amount(len(cluster['workers']), 'worker')}{told}"


def _state(worker: dict[str, Any]) -> str:
    """That a worker is ready, or why it is not."""
    return "ready" if worker["ready"] else "; ".join(worker["problems"]) or "not ready"


def _table(cluster: ClusterShown, rates: Mapping[str, float]) -> Table:
    """The cluster for a terminal: a row for each worker, and below it one for each partition.

    A worker that is not ready, or does not answer, is red.
    """
    heads = ("worker", "state", "pending", "lag", "next due", "fires/s")
    numbers = ("pending", "lag", "fires/s")
    table = table_of(*heads, numbers=numbers, title=_heading(cluster))
    for worker in cluster["workers"]:
        table.add_section()
        name = f"{worker['worker_id']}  {worker['version']}"
        rate = f"{rates[worker['worker_id']]:,.0f}"
        style = "bold" if worker["ready"] else "bold red"
        pending = _number(worker["pending"])
        add_row(table, name, _state(worker), pending, "", "", rate, style=style)
        for each in worker["partitions"]:
            waits = _number(each["pending"]), _number(each["ingest_lag_records"])
            number, due_at = f"{each['partition']:>4}", each["oldest_due_at"] or "-"
            add_row(table, number, each["state"], *waits, due_at)
    for name in cluster.get("silent", ()):
        table.add_section()
        add_row(table, name, "does not answer", style="bold red")
    return table


def _number(count: int | None) -> str:
    """A count; empty for a key that is bound to some tenants, which is told none."""
    return "" if count is None else f"{count:,}"


def _lines(cluster: ClusterShown, rates: Mapping[str, float]) -> list[str]:
    """The cluster for people who read it from a file or through a pipe."""
    lines = [_heading(cluster)]
    for worker in cluster["workers"]:
        name = worker["worker_id"]
        lines.append(f"\n{name}  {worker['version']}  {_state(worker)}  {rates[name]:,.0f} fires/s")
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
