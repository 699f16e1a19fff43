"""Constants of the capacity model, measured on this machine and its broker.

It makes eleven short runs of the shipped worker, each on a belfry of its own, or takes the quickest
of several runs of each kind.  `calibration.py` computes the constants from them:

    start, 4 and 32 partitions        the cost of a worker before it does any work
    ingest, 32 partitions             memory of many partitions; meanwhile the broker warms up
    ingest, 4 partitions              CPU and bytes of a request, memory of a worker
    ingest, payload five times as big CPU and bytes of a payload's byte
    ingest, 1 partition               the rate of one partition; memory of a partition
    fire, 4 and 1 partitions, bigger  the same for fires
    recovery, bigger                  the cost of following a changelog, and its speed
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

from belfry.bench.calibration import (
    BIGGER,
    MANY,
    PARTITIONS,
    CalibrationRun,
    IdleWorker,
    constants_of,
)
from belfry.bench.cluster import BenchCluster
from belfry.bench.logged import topic_bytes
from belfry.bench.plan import BenchPlan
from belfry.bench.runs import BENCHES
from belfry.bench.worker import WorkerFailed, cpu_seconds
from belfry.settings import Settings

# Tries of a run on a machine that is busy with other work.
ATTEMPTS: Final = 3


class CalibrationPlan(NamedTuple):
    """How many runs there are of each kind, and the broker's process where it is known."""

    runs: int = 1
    broker_pid: int | None = None


def calibrated(
    settings: Settings, plan: BenchPlan, asked: CalibrationPlan, told: Callable[[str], None]
) -> dict[str, Any]:
    """The file of constants: the constants, the day, and the machine.

    `told` gets a line after each run. It takes some minutes. Raises `WorkerFailed` where a run
    fails `ATTEMPTS` times.
    """
    on, (cpu_s, few_mb), (_, many_mb) = (
        machine(),
        _idle(settings, PARTITIONS),
        _idle(settings, MANY),
    )
    idle = IdleWorker(cpu_s, few_mb, many_mb)
    told(f"{'start':10}  {cpu_s:.2f} s of CPU, {few_mb:.0f} MB, {MANY} partitions {many_mb:.0f} MB")
    bigger = replace(plan, payload_bytes=plan.payload_bytes * BIGGER)
    runs: dict[str, CalibrationRun] = {}
    for name, bench, sized, partitions in (
        # The first run warms the broker up: only its memory counts.
        ("in_many", "ingest", plan, MANY),
        ("in", "ingest", plan, PARTITIONS),
        ("in_bigger", "ingest", bigger, PARTITIONS),
        ("in_one", "ingest", plan, 1),
        ("out", "fire", plan, PARTITIONS),
        ("out_bigger", "fire", bigger, PARTITIONS),
        ("out_one", "fire", plan, 1),
        ("follow", "recovery", plan, PARTITIONS),
        ("follow_bigger", "recovery", bigger, PARTITIONS),
    ):
        runs[name] = _run(settings, replace(sized, bench=bench, partitions=partitions), asked)
        told(f"{name:10}  {runs[name].result.line()}")
    return {
        "measured_on": date.today().isoformat(),  # noqa: DTZ011  # the day where it is measured
        "machine": on,
        "events": plan.events,
        "payload_bytes": plan.payload_bytes,
        "tenants": plan.tenants,
        "constants": {name: _rounded(value) for name, value in constants_of(runs, idle).items()},
    }


def machine() -> str:
    """A sentence about the machine of the figures."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores, {model}, {memory:.0f} GB, {platform.system()},"
        f" load average before {os.getloadavg()[1]:.1f}"
    )


def _run(settings: Settings, plan: BenchPlan, asked: CalibrationPlan) -> CalibrationRun:
    """The quickest of some runs, which other work on the machine has held up least."""
    return max(
        (_retried(settings, plan, asked.broker_pid) for _ in range(asked.runs)),
        key=lambda each: each.result.events_per_second,
    )


def _retried(settings: Settings, plan: BenchPlan, broker_pid: int | None) -> CalibrationRun:
    """One run; on a machine with other work it may be too slow, and is made again."""
    for _ in range(ATTEMPTS - 1):
        with suppress(WorkerFailed):
            return _run_once(settings, plan, broker_pid)
    return _run_once(settings, plan, broker_pid)


def _run_once(settings: Settings, plan: BenchPlan, broker_pid: int | None) -> CalibrationRun:
    """One run on a belfry of its own, which is removed afterwards."""
    with BenchCluster(settings, plan.workers, plan.partitions) as cluster:
        before_s = 0.0 if broker_pid is None else cpu_seconds(broker_pid)
        result = BENCHES[plan.bench](cluster, plan)
        used = None if broker_pid is None else cpu_seconds(broker_pid) - before_s
        return CalibrationRun(
            result,
            used,
            cluster.state_bytes(),
            _bytes(cluster, "changelog")[1],
            _bytes(cluster, "schedules")[1],
            _mean_bytes(cluster) if plan.bench == "fire" else 0.0,
        )


def _bytes(cluster: BenchCluster, name: str) -> tuple[int, int]:
    """Records of one of its topics, and their bytes."""
    return topic_bytes(cluster.properties, cluster.settings.topic(name))


def _mean_bytes(cluster: BenchCluster) -> float:
    """Bytes of one tenant's fired record."""
    count, whole = _bytes(cluster, "fired.tenant-0")
    return whole / max(1, count)


def _idle(settings: Settings, partitions: int) -> tuple[float, float]:
    """CPU seconds of a worker until it is ready, with nothing to do, and its memory in MB."""
    with BenchCluster(settings, 1, partitions) as cluster:
        cluster.start_workers()
        cluster.await_ready()
        return cluster.usage()


def _rounded(value: float) -> float:
    """Rounded to four digits: a measurement is not more precise."""
    return float(f"{value:.4g}")
