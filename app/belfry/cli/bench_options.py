"""Options of ``belfry bench``: what is measured, how much of it, and on what.

Each option has bounds within which a run means something on one machine. Help says before a colon
which benchmarks an option is for; the others do not look at it.

    belfry bench fire --kind CRON --tenants 10      crons of ten tenants
    belfry bench curve --sweep payload --steps 16,400,10000

Benchmarks themselves are in `belfry.bench`; nothing of it is imported here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class ScheduleKind(StrEnum):
    """What the schedules of a benchmark are: due once, every day by a duration, or by cron."""

    AT = "AT"
    EVERY = "EVERY"
    CRON = "CRON"


class Guarantee(StrEnum):
    """What tenants are promised, as their policies say it."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


class Varied(StrEnum):
    """What a curve varies, by its names in `belfry.bench.plan`."""

    PENDING = "pending"
    PAYLOAD = "payload"
    PARTITIONS = "partitions"
    TENANTS = "tenants"


class Bench(StrEnum):
    """What can be measured.

    - `ingest`: requests that are taken in, a second. `fire`: events that come out, a second.
    - `lateness`: from the due instant until a reader has the event, under a steady rate, in ms.
    - `recovery`: records of the changelog that a worker without local state replays, a second.
      `restart`: the same way, with the state on disk.
    - `raw`: the yardstick, without belfry. `curve`: a benchmark with one parameter varied.
    - `calibrate`: the constants that `belfry plan` takes for this hardware.
    """

    INGEST = "ingest"
    FIRE = "fire"
    LATENESS = "lateness"
    RECOVERY = "recovery"
    RAW = "raw"
    RESTART = "restart"
    CURVE = "curve"
    CALIBRATE = "calibrate"


Which = Annotated[
    Bench,
    typer.Argument(metavar="WHAT", help=f"What to measure: {', '.join(Bench)}."),
]
Events = Annotated[
    int, typer.Option("--events", min=1_000, max=20_000_000, metavar="N", help="Requests of a run.")
]
Runs = Annotated[
    int, typer.Option("--runs", min=1, max=20, metavar="N", help="Runs; the line is the median.")
]
Workers = Annotated[
    int, typer.Option("--workers", min=1, max=16, metavar="N", help="Worker processes.")
]
Partitions = Annotated[
    int, typer.Option("--partitions", min=1, max=256, metavar="N", help="Partitions.")
]
Tenants = Annotated[int, typer.Option("--tenants", min=1, max=10_000, metavar="N", help="Tenants.")]
Payload = Annotated[
    int, typer.Option("--payload", min=16, max=500_000, metavar="BYTES", help="Bytes of a payload.")
]
Rate = Annotated[
    int,
    typer.Option("--rate", min=1, max=200_000, metavar="N", help="lateness: requests a second."),
]
Seconds = Annotated[
    int,
    typer.Option(
        "--seconds", min=5, max=3_600, metavar="N", help="lateness: how long requests come in."
    ),
]
Pending = Annotated[
    int,
    typer.Option(
        "--pending",
        min=0,
        max=50_000_000,
        metavar="N",
        help="ingest, fire, lateness: schedules that wait already.",
    ),
]
Kinds = Annotated[
    ScheduleKind, typer.Option("--kind", help="fire: kind of the schedules, due once or every day.")
]
Outcomes = Annotated[
    bool, typer.Option("--outcomes", help="Give every request an id, so each gets its outcome.")
]
Promised = Annotated[
    Guarantee, typer.Option("--guarantee", help="fire: guarantee of the tenants' policies.")
]
CommonTopic = Annotated[
    bool,
    typer.Option("--common-topic", help="fire, lateness: an output that all tenants share."),
]
Pipelined = Annotated[
    bool,
    typer.Option("--pipelined", help="raw: two producers in turn, no wait for a full queue."),
]
Sweep = Annotated[Varied, typer.Option("--sweep", help="curve: what is varied.")]
BrokerPid = Annotated[
    int | None,
    typer.Option(
        "--broker-pid", metavar="PID", help="calibrate: a broker of this machine, to count its CPU."
    ),
]
Steps = Annotated[
    str, typer.Option("--steps", metavar="N,N…", help="curve: the values, instead of the usual.")
]
