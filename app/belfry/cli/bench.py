"""``belfry bench``: figures that anybody can reproduce.

A benchmark makes topics of its own under a fresh prefix, starts workers as processes, writes
requests, and counts what comes out. At the end it removes all of it. How a run goes is told in
`belfry.bench`; here are the options, and which of them belong to which benchmark.

    belfry bench raw  --runs 3      the yardstick: the same bytes through plain transactions
    belfry bench fire --runs 3      events a second out of belfry, on the same broker

The ratio of two such lines, measured in the same minutes, can be compared between machines. A
figure alone cannot.

With ``--output json`` a line is the median of the runs; with jsonl each run is a line as well. A
text shows each run as it ends, and then all of them together; meanwhile stderr shows how far a run
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from belfry.cli.bench_options import (
    Bench,
    BrokerPid,
    CommonTopic,
    Events,
    Guarantee,
    Kinds,
    Outcomes,
    Partitions,
    Payload,
    Pending,
    Pipelined,
    Promised,
    Rate,
    Runs,
    ScheduleKind,
    Seconds,
    Steps,
    Sweep,
    Tenants,
    Varied,
    Which,
    Workers,
)
from belfry.cli.failures import WrongUse
from belfry.cli.progress import progress_of
from belfry.cli.session import Session, with_session
from belfry.cli.shown import Output

if TYPE_CHECKING:
    from belfry.bench.plan import BenchPlan
    from belfry.bench.result import Result
    from belfry.settings import Settings


def register(app: typer.Typer) -> None:
    """Add ``bench`` to the program."""
    app.command("bench")(with_session(bench))


def bench(
    session: Session,
    which: Which,
    *,
    events: Events = 400_000,
    runs: Runs = 3,
    workers: Workers = 1,
    partitions: Partitions = 4,
    tenants: Tenants = 97,
    payload: Payload = 400,
    rate: Rate = 5_000,
    seconds: Seconds = 20,
    pending: Pending = 0,
    kind: Kinds = ScheduleKind.AT,
    outcomes: Outcomes = False,
    guarantee: Promised = Guarantee.EXACTLY_ONCE,
    common_topic: CommonTopic = False,
    pipelined: Pipelined = False,
    sweep: Sweep = Varied.PENDING,
    steps: Steps = "",
    broker_pid: BrokerPid = None,
) -> None:
    """Measure belfry on a broker: a belfry of its own, removed at the end.

    Give the broker nothing else to do.  Figures of one machine differ from day to day, so run `raw`
    in the same minutes and compare: it copies the same bytes in plain transactions.
    """
    from belfry.bench.plan import BenchPlan

    if pipelined and which is not Bench.RAW:
        raise WrongUse(f"--pipelined is for raw, and not for {which}: leave it out.")
    plan = BenchPlan(
        bench=str(which),
        events=events,
        workers=workers,
        partitions=partitions,
        tenants=tenants,
        payload_bytes=payload,
        rate=rate,
        seconds=seconds,
        pending=pending,
        with_ids=outcomes,
        kind=str(kind),
        guarantee=str(guarantee),
        common_topic=common_topic,
        pipelined=pipelined,
    )
    varied = _curve(plan, sweep, steps) if which is Bench.CURVE else [(plan, None)]
    # A broker that does not answer is told before anything is started.
    session.admin()
    if which is Bench.CALIBRATE:
        _calibrate(session, plan, runs, broker_pid)
        return
    for step, value in varied:
        _measure(session, step, value, runs)


def _curve(plan: BenchPlan, sweep: str, steps: str) -> Sequence[tuple[BenchPlan, int | None]]:
    """The plans of a curve, with the value that each varies; `WrongUse` for a wrong value."""
    from belfry.bench.plan import curve

    try:
        values = tuple(int(value) for value in steps.split(",") if value)
    except ValueError:
        raise WrongUse(
            f"--steps {steps[:60]!r} is not allowed: whole numbers with commas, such as 1,10,100."
        ) from None
    try:
        return curve(plan, sweep, values)
    except ValueError as error:
        raise WrongUse(f"--steps {error}") from None


def _measure(session: Session, plan: BenchPlan, varied: int | None, runs: int) -> None:
    """Run a plan, and print each run as it ends and all of them together.

    `varied` is the value of the parameter that a curve varies, or None. A run may take minutes, so
    its line is printed at once.
    """
    from dataclasses import replace

    from belfry.bench.result import BenchRuns, lines
    from belfry.bench.runs import measured

    text = session.printer.output is Output.TEXT
    # Of a single run the median is the same line, and is printed once.
    each_run = session.printer.output is Output.JSONL
    results: list[Result] = []
    settings = _of_worker(session)
    for _ in range(runs):
        with progress_of(session.printer) as tell:
            result = measured(settings, plan, tell)
        results.append(replace(result, varied=varied))
        if text:
            print(lines(result, plan))
        elif each_run and runs > 1:
            print(results[-1].line())
    spread = BenchRuns(results)
    print(spread.text() if text else spread.median().line())


def _calibrate(session: Session, plan: BenchPlan, runs: int, broker_pid: int | None) -> None:
    """Print the file of constants that `belfry plan` takes.

    Progress goes to stderr, so that stdout can be sent to a file.
    """
    import sys

    import orjson

    from belfry.bench.calibrate import CalibrationPlan, calibrated

    def told(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    found = calibrated(_of_worker(session), plan, CalibrationPlan(runs, broker_pid), told)
    print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())


def _of_worker(session: Session) -> Settings:
    """The settings of a worker with this command's options on top: workers are started with them.

    They are those of a whole worker, not of a command, so that a wrong name is told before anything
    is started.
    """
    from belfry.settings import Settings

    return session.settings_of(Settings, {})
