"""``belfry mirror``: a belfry in a second cluster, which follows the first and may take over.

The settings are those of the side that follows, the *target*; ``--source`` names the other one.

    belfry mirror run          carries requests, state, lifecycle and policies, until Ctrl-C
    belfry mirror status       how far each partition is, and how far behind
    belfry mirror verify       both sides, schedule by schedule
    belfry mirror take-over    makes the target the active side; says what it would do
    belfry mirror fence        keeps a source that has come back from firing
    belfry mirror lost         what the source holds that was not carried

docs/mirror.md says what the sides promise, and how to go back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from time import time
from typing import Annotated, Any

import typer

from belfry.cli.failures import Exit, WrongUse
from belfry.cli.help import Program
from belfry.cli.mirror_sides import (
    SourceHosts,
    Told,
    both,
    line,
    now_ms,
    reachable,
    servers,
    status_line,
    told,
)
from belfry.cli.mirror_take_over import fence, lost, take_over
from belfry.cli.session import Session, with_session
from belfry.cli.verify import metrics_place

MetricsPlace = Annotated[
    Any,
    typer.Option(
        "--metrics",
        parser=metrics_place,
        metavar="HOST:PORT",
        help="Show metrics for Prometheus there, at /metrics; not with --once.",
    ),
]
Once = Annotated[bool, typer.Option("--once", help="End when all is carried that is there.")]


def register(app: typer.Typer) -> None:
    """Add ``mirror`` with its commands to the program."""
    group = Program()
    for command in (run, status, verify, fence, lost):
        group.command(command.__name__)(with_session(command))
    group.command("take-over")(with_session(take_over))
    app.add_typer(group, name="mirror", help="A second cluster that follows, and takes over.")


def run(
    session: Session,
    *,
    source: SourceHosts = None,
    once: Once = False,
    metrics: MetricsPlace = None,
) -> None:
    """Carry requests, state, lifecycle and policies from the source to this cluster.

    Each record is carried once, in transactions that say how far they go, so it may be killed and
    started again. Partitions that are added to the source are added here. Goes on until Ctrl-C, or
    until somebody takes over. Example:

    belfry mirror run --source kafka-a:9092 --metrics 0.0.0.0:9466
    """
    from prometheus_client import CollectorRegistry

    from belfry.cli.verify_service import serve
    from belfry.mirror.following import MirrorFollower
    from belfry.mirror.growth import grown_together
    from belfry.mirror.policies import policies_in
    from belfry.mirror.sides import with_marks
    from belfry.telemetry.mirror_metrics import MirrorMetrics

    if metrics is not None and once:
        raise WrongUse("--metrics goes without --once: one round ends before it is scraped.")
    with told():
        theirs, mine = both(session, source)
        theirs, mine = grown_together(theirs, with_marks(mine), now_ms())
        registry = CollectorRegistry()
        shown = MirrorMetrics(registry, time())
        if metrics is not None:
            serve(registry, *metrics)
        policies = policies_in(theirs.settings), policies_in(mine.settings)
        follower = MirrorFollower((theirs, mine), policies, shown, session.printer.note)
        session.printer.note(
            f"cluster {mine.here.cluster} follows {theirs.here.cluster}: {mine.homes} partitions"
        )
        with closing(follower):
            follower.run(once=once, now_ms=now_ms)


def status(session: Session, *, source: SourceHosts = None) -> int:
    """How far each partition was carried, and how far behind the source it is.

    Exit code 1 if a partition follows no source. Example:

    belfry mirror status --source kafka-a:9092
    """
    from belfry.mirror.looking import statuses
    from belfry.mirror.sides import opened

    with told():
        mine = opened("target", session.settings)
        theirs = None if servers(session, source) is None else reachable(session, source)
        found = list(statuses(theirs, mine))
    at_ms = now_ms()
    session.printer.many(status_line(each, at_ms) for each in found)
    return Exit.OK if all(each.stands for each in found) else Exit.ERROR


def verify(session: Session, *, source: SourceHosts = None) -> int:
    """Compare both sides schedule by schedule, as of what was carried.

    Later changes of the source are counted, and not compared. It names schedules that lie in two
    partitions of this side, which must not happen when a key group moves. Exit code 4 if the sides
    differ, or if a schedule lies twice. Example:

    belfry mirror verify --source kafka-a:9092
    """
    from belfry.mirror.comparing import Owners
    from belfry.mirror.looking import comparison

    differs = False

    def compared() -> Iterator[Told]:
        nonlocal differs
        theirs, mine = both(session, source)
        owners = Owners(mine.grown_from or mine.homes)
        for each in range(theirs.homes):
            found = comparison(theirs, mine, each, owners)
            differs = differs or bool(found.different)
            for kind, key in found.different:
                yield line(each, kind, key.decode(errors="backslashreplace"))
            same = f"{found.same} rows are the same, {found.moved} have changed since"
            added = "added in the source, and not followed yet: nothing of a group lies there"
            yield line(each, "compared", same if each < mine.homes else added)
        for kind, key in owners.doubled():
            differs = True
            yield line(None, kind, f"{kind}: {key.decode(errors='backslashreplace')}")

    with told():
        session.printer.many(compared())
    return Exit.CONFLICT if differs else Exit.OK
