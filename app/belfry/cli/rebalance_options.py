"""Options of `belfry rebalance`: the terms of a plan, and how moves are carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from belfry.cli.options import seconds
from belfry.placement.loads import Measure

MOST_PARTITIONS: Final = 1024


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


AtOnce = Annotated[
    int,
    typer.Option(
        "--at-once", min=1, max=16, metavar="N", help="So many key groups on their way at a time."
    ),
]
Most = Annotated[
    int | None,
    typer.Option(
        "--most", min=1, metavar="N", help="Only the first so many of them.  [default: all]"
    ),
]
Limit = Annotated[
    float | None,
    typer.Option(
        "--limit",
        parser=seconds,
        metavar="SECONDS",
        help="Longest wait for one key group.  [default: 60]",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether to begin.")]
Dry = Annotated[
    bool, typer.Option("--dry-run", "--dry", help="Show what would move, and change nothing.")
]
Tenants = Annotated[
    list[str],
    typer.Argument(metavar="TENANT", help="Tenants whose key groups move.", show_default=False),
]
To = Annotated[
    int, typer.Option("--to", min=0, max=1023, metavar="PARTITION", help="Where they are to lie.")
]
GrowTo = Annotated[
    int,
    typer.Option(
        "--partitions", min=1, max=1024, metavar="N", help="How many partitions there are then."
    ),
]
GrowLimit = Annotated[
    float | None,
    typer.Option(
        "--limit",
        parser=seconds,
        metavar="SECONDS",
        help="Longest wait for workers at each step.  [default: 120]",
    ),
]
GrowDry = Annotated[
    bool, typer.Option("--dry-run", "--dry", help="Show what would be added, and change nothing.")
]
GroupNumber = Annotated[
    int, typer.Argument(metavar="GROUP", min=0, help="Number of the key group.", show_default=False)
]


@dataclass(frozen=True)
class Planning:
    """The terms of a plan."""

    partitions: Partitions = None
    within: Within = 0.1
    by: By = Measure.ALL
    over: Over = None


@dataclass(frozen=True)
class Carrying:
    """How moves are carried out."""

    at_once: AtOnce = 1
    limit: Limit = None
    yes: Yes = False
    dry: Dry = False
