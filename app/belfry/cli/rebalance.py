"""``belfry rebalance``: how even the partitions are, and what would have to move.

A tenant lives on one partition, found by hashing its name. A few large ones may share theirs by
chance, while other partitions idle. `plan` shows what each partition carries, and which tenants
would have to move for an even load, over as many partitions or over others:

    partition   pending    fires/s   share        then
            0   120,400      310.0   71.0 %    39.0 %
            1     8,100       20.5    9.0 %    31.0 %  …

    to move: 2 of 4096 groups, 32.0 % of the load
      group 1684   0 -> 1   30.0 %   shop

It only looks. The groups and the plan are made by `belfry.placement`, which is pure.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from belfry.cli.help import Program
from belfry.cli.options import seconds
from belfry.cli.session import Session, with_session
from belfry.placement.loads import Measure

MOST_PARTITIONS: Final = 1024
# Seconds between two looks.
OVER_S: Final = 10.0

Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        min=1,
        max=MOST_PARTITIONS,
        metavar="N",
        help="Over so many partitions.  [default: as many as there are]",
    ),
]
Within = Annotated[
    float,
    typer.Option(
        "--within",
        min=0.01,
        max=10,
        metavar="PART",
        help="No partition carries more than the mean and this part of it.",
    ),
]
By = Annotated[Measure, typer.Option("--by", help="What is made even.")]
Over = Annotated[
    float | None,
    typer.Option(
        "--over",
        parser=seconds,
        metavar="SECONDS",
        help="Count fires for so long; 0 leaves them out.  [default: 10]",
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``rebalance`` to the program."""
    group = Program()
    group.command("plan")(with_session(plan))
    app.add_typer(group, name="rebalance", help="How even partitions are: plan.")


def plan(
    session: Session,
    *,
    partitions: Partitions = None,
    within: Within = 0.1,
    by: By = Measure.ALL,
    over: Over = None,
) -> None:
    """Show what each partition carries, and which tenants would have to move for an even load.

    It only looks, and belfry moves no tenants yet. Asks a worker over HTTP, and Kafka. Example:

    belfry rebalance plan --partitions 16 --by fires
    """
    from belfry.cli.rebalance_loads import measured
    from belfry.cli.rebalance_shown import lines, planned_of, shown

    over_s = OVER_S if over is None else over
    if over_s:
        session.printer.note(f"Counting fires for {over_s:g} s …")
    found = measured(session, over_s)
    for name in found.silent:
        session.printer.note(f"{name} does not answer: what it owns is missing.")
    made = planned_of(found, partitions or found.partitions, within, by)
    session.printer.one(shown(made), "\n".join(lines(made)))
