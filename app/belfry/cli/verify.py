"""``belfry verify``: whether the topics of a belfry agree with one another as specified.

Four parts do it. The rules are `belfry.verification`, which is pure and shares no code with the
engine that it checks. `verify_cluster` reads topics in an order that makes a comparison possible.
`verify_state` keeps the facts in a file, so that memory stays bounded and a later run goes on.
`verify_service` makes one pass, or one after the other with metrics.

    belfry verify                                   one pass over all that the topics hold
    belfry verify --state verified.db               and the next run reads new records only
    belfry verify --state verified.db --every 60s   a pass a minute, until Ctrl-C

A record that compaction or retention has removed cannot be checked. It is counted with its reason,
and never reported as a finding.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli.failures import Exit, WrongUse
from belfry.cli.options import seconds
from belfry.cli.session import Session, with_session
from belfry.cli.shown import Tell, plain

if TYPE_CHECKING:
    from belfry.verification.findings import Breached, CheckCounts

# Something was found, where 1 is an error.
FOUND = Exit.CONFLICT
DAY_MS = 24 * 3_600_000

# A database of SQLite; without it a temporary one, which is gone at the end.
State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="Remember in this file how far it was read, and go on from there next time.",
    ),
]
Every = Annotated[
    float | None,
    typer.Option(
        "--every", parser=seconds, metavar="DURATION", help="Go on for ever, with such pauses: 60s."
    ),
]


def metrics_place(text: str) -> tuple[str, int]:
    """Host and port as typed; raises ValueError that says what is allowed."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"{text!r} is no HOST:PORT, such as 0.0.0.0:9465.")
    return host.strip("[]"), int(port)


# A host and a port; without it no metrics are served.
MetricsPlace = Annotated[
    Any,
    typer.Option(
        "--metrics",
        parser=metrics_place,
        metavar="HOST:PORT",
        help="Show metrics for Prometheus there, at /metrics; with --every.",
    ),
]
# Seconds of one pass, however much is missing.
Grace = Annotated[
    float,
    typer.Option(
        "--grace",
        parser=seconds,
        metavar="DURATION",
        help="Wait so long for records that are not there yet.",
    ),
]
# Seconds, by the timestamps of the changelog.
OverdueAfter = Annotated[
    float,
    typer.Option(
        "--overdue-after",
        parser=seconds,
        metavar="DURATION",
        help="Find schedules that should have fired so long before the end of the log.",
    ),
]
# Days; memory on disk grows with it.
Remember = Annotated[
    int,
    typer.Option(
        "--remember-days",
        min=1,
        max=365,
        metavar="DAYS",
        help="Find events that come twice so far back.",
    ),
]
Also = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Where events of a tenant went before its policy changed; repeatable.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``verify`` to the program."""
    app.command("verify")(with_session(verify))


def verify(
    session: Session,
    *,
    state: State = None,
    every: Every = None,
    metrics: MetricsPlace = None,
    grace: Grace = "10s",  # type: ignore[assignment]  # typer parses it
    overdue_after: OverdueAfter = "60s",  # type: ignore[assignment]  # the same
    remember_days: Remember = 7,
    topic: Also = None,
) -> int:
    """Check each transaction of a belfry against its specification, by its topics alone.

    Reads changelog, outputs, lifecycle and rejected topics, and writes nothing to Kafka. It checks
    numbers, epochs, positions, watermarks, digests, each fired event against its schedule, and that
    each due schedule has fired. Exit code 0 if nothing is wrong, 4 for a finding, 1 for an error, 3
    if there is no changelog. Example:

    belfry verify --state verified.db
    """
    if metrics is not None and every is None:
        raise WrongUse("--metrics goes with --every: a single pass ends before it is scraped.")
    terms = grace, int(overdue_after * 1000), remember_days * DAY_MS
    return _verify(session, (state, topic or [], terms), every, metrics)


def _verify(
    session: Session,
    run: tuple[Path | None, list[str], tuple[float, int, int]],
    every: float | None,
    metrics: Any,
) -> int:
    """One pass, or pass after pass; returns `FOUND` where the one has found something."""
    from belfry.cli.verify_cluster import PassTerms
    from belfry.cli.verify_service import VerifyRun, shown_metrics, verify_for_ever, verify_once

    state, also, terms = run
    given = VerifyRun(state, also, PassTerms(*terms))
    printer = session.printer
    if every is not None:
        with printer.several() as tell:
            verify_for_ever(session, given, partial(_show, tell), every, shown_metrics(metrics))
    return FOUND if verify_once(session, given, partial(_show, printer.one)) else Exit.OK


# -- what is shown ---------------------------------------------------------------------------------


def _show(tell: Tell, found: list[Breached], counts: CheckCounts) -> None:
    """Print the findings of a pass, and its counts."""
    text = "\n".join([*map(line, found), *summary(found, counts)])
    tell(shown(found, counts), text)


def shown(found: list[Breached], counts: CheckCounts) -> dict[str, Any]:
    """A pass for programs.

    `counts` are those of all passes of this run, `not_checked` has the number of unchecked records
    by reason.
    """
    from belfry.verification.findings import MEANINGS

    return {
        "findings": [
            {
                "kind": each.breach,
                "meaning": MEANINGS[each.breach],
                "topic": each.spot.topic,
                "partition": each.spot.partition,
                "offset": each.spot.offset,
                "found": each.found,
                "expected": each.expected,
            }
            for each in found
        ],
        "counts": asdict(counts),
        "not_checked": counts.unchecked(),
    }


def line(found: Breached) -> str:
    """A finding in a line for people: its kind, its place, the found and the expected value."""
    # Ids are others' words.
    said = f"{found.found}; expected: {found.expected}"
    return f"{found.breach.upper():18} {found.spot}  {plain(said)}"


def summary(found: list[Breached], counts: CheckCounts) -> list[str]:
    """The counts of checked records, in lines for people."""
    right = "nothing is wrong."
    if counts.unchecked():
        right = "nothing is wrong in what was checked."
    told = [
        f"{counts.checked:,} of {counts.transactions:,} transactions checked, {counts.fires:,}"
        f" fires, {counts.digests:,} digests, {counts.outputs:,} output records: "
        + (f"{len(found):,} findings." if found else right)
    ]
    told += [f"Not checked: {number:,} {why}." for why, number in counts.unchecked().items()]
    return told
