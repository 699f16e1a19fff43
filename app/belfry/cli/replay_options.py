"""Options of `belfry replay`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from belfry.schedules.instants import parse_instant

Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition",
        min=0,
        metavar="NUMBER",
        help="Only this partition; repeatable.  [default: all]",
    ),
]
Until = Annotated[
    int | None,
    typer.Option(
        "--until", parser=parse_instant, metavar="INSTANT", help="Play up to then.  [default: now]"
    ),
]
From = Annotated[
    int | None,
    typer.Option(
        "--from",
        parser=parse_instant,
        metavar="INSTANT",
        help="Begin with the first take-over from then on.  [default: the partition's birth]",
    ),
]
With = Annotated[
    Path | None,
    typer.Option(
        "--with",
        metavar="FILE",
        help="Policies, as `belfry tenant set --file` takes them: show what they would change.",
    ),
]

ZoneData = Annotated[
    Path | None,
    typer.Option(
        "--zone-data",
        metavar="FOLDER",
        help="Time zone data of another release (pip install --target FOLDER tzdata==2024.1):"
        " show what it would change.",
    ),
]
Chunk = Annotated[
    int,
    typer.Option("--fire-chunk", min=1, metavar="NUMBER", help="BELFRY_FIRE_CHUNK of the workers."),
]
ShowEvents = Annotated[
    bool, typer.Option("--events", help="Print the events that fire on a virtual clock.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWorld:
    """The changed terms of a playback on a virtual clock; empty: no such playback."""

    with_: With = None
    zone_data: ZoneData = None
    events: ShowEvents = False
