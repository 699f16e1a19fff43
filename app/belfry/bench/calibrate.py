"""Constants of the capacity model, measured on this machine and its broker.

Eight short runs of the shipped worker, each on a belfry of its own, or the quickest of several of
each.  A constant is a difference between two of them wherever it can be, so that what a worker's
start costs is in none:

    start                             what a worker takes before it does anything
    ingest, 4 partitions              CPU and bytes of a request, memory of a worker
    ingest, payload five times as big CPU and bytes of a payload's byte
    ingest, 1 partition               what one partition takes in; memory of a partition
    fire, 4 and 1 partitions, bigger  the same for what fires
    recovery, bigger                  what following a changelog costs, and how quick it is
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

from belfry.bench.cluster import CLOCK_TICKS, BenchCluster, WorkerFailed
from belfry.bench.plan import BenchPlan
from belfry.bench.result import Result
from belfry.bench.runs import BENCHES
from belfry.settings import Settings

# The larger payload is so many times the usual one.
BIGGER: Final = 5
PARTITIONS: Final = 4
# Tries of a run on a machine that others keep busy.
ATTEMPTS: Final = 3


class CalibrationPlan(NamedTuple):
    """How many runs there are of each, and the broker's process where it is known."""

    runs: int = 1
    broker_pid: int | None = None


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """One run: its figures, the broker's CPU for it, and what it left behind."""

    result: Result
    # CPU seconds of the broker for the run, None where its process is not known.
    broker_cpu_s: float | None
    # Bytes of the worker's local state on disk, after the run.
    state_bytes: int
    # Bytes of all keys, values and headers in the changelog, uncompressed; likewise of the
    # requests.
    changelog_bytes: int
    request_bytes: int
    # Mean bytes of a fired record.
    fired_bytes: float

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the worker."""
        return self.result.cpu_seconds or 0.0

    @property
    def rss_mb(self) -> float:
        """Peak memory of the worker in MB."""
        return self.result.peak_rss_mb or 0.0


def calibrated(
    settings: Settings, plan: BenchPlan, asked: CalibrationPlan, told: Callable[[str], None]
) -> dict[str, Any]:
    """The file of constants: what was measured, when, and on what.

    `told` gets a line after each run. It takes some minutes. Raises `WorkerFailed` where a run
    fails `ATTEMPTS` times.

    How a constant follows, with 400 000 events, payloads of 400 and 2 000 bytes, and a start of 2
    s:

        ingest,   400 bytes    CPU 10 s    (10 − 2) s / 400 000 =  20 µs an event
        ingest, 2 000 bytes    CPU 14 s    (14 − 2) s / 400 000 =  30 µs an event
        a byte of payload                  (30 − 20) µs / 1 600 bytes = 0.00625 µs
        an event without its payload       20 µs − 400 × 0.00625 µs = 17.5 µs
    """
    on, start = machine(), _start_cpu_s(settings)
    told(f"{'start':10}  {start:.2f} s of CPU")
    bigger = replace(plan, payload_bytes=plan.payload_bytes * BIGGER)
    runs: dict[str, CalibrationRun] = {}
    for name, bench, sized, partitions in (
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
        "measured_on": date.today().isoformat(),  # noqa: DTZ011  # the day of who measures
        "machine": on,
        "events": plan.events,
        "payload_bytes": plan.payload_bytes,
        "tenants": plan.tenants,
        "constants": {name: _rounded(value) for name, value in _constants(runs, start).items()},
    }


def machine() -> str:
    """What the figures were measured on, in a sentence."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores, {model}, {memory:.0f} GB, {platform.system()},"
        f" load average before {os.getloadavg()[1]:.1f}"
    )


def _run(settings: Settings, plan: BenchPlan, asked: CalibrationPlan) -> CalibrationRun:
    """The quickest of some runs, which others on the machine have held up least."""
    return max(
        (_retried(settings, plan, asked.broker_pid) for _ in range(asked.runs)),
        key=lambda each: each.result.events_per_second,
    )


def _retried(settings: Settings, plan: BenchPlan, broker_pid: int | None) -> CalibrationRun:
    """One run; on a machine that is busy with others it may be too slow, and is made again."""
    for _ in range(ATTEMPTS - 1):
        with suppress(WorkerFailed):
            return _run_once(settings, plan, broker_pid)
    return _run_once(settings, plan, broker_pid)


def _run_once(settings: Settings, plan: BenchPlan, broker_pid: int | None) -> CalibrationRun:
    """One run on a belfry of its own, which is removed behind it."""
    with BenchCluster(settings, plan.workers, plan.partitions) as cluster:
        before = _cpu_of(broker_pid)
        result = BENCHES[plan.bench](cluster, plan)
        after = _cpu_of(broker_pid)
        used = None if before is None or after is None else after - before
        return CalibrationRun(
            result,
            used,
            cluster.state_bytes(),
            cluster.topic_bytes("changelog")[1],
            cluster.topic_bytes("schedules")[1],
            _mean_bytes(cluster) if plan.bench == "fire" else 0.0,
        )


def _mean_bytes(cluster: BenchCluster) -> float:
    """Bytes of one tenant's fired record."""
    count, whole = cluster.topic_bytes("fired.tenant-0")
    return whole / max(1, count)


def _start_cpu_s(settings: Settings) -> float:
    """CPU seconds of a worker until it is ready, with nothing to do."""
    with BenchCluster(settings, 1, PARTITIONS) as cluster:
        cluster.start_workers()
        cluster.await_ready()
        return cluster.usage()[0]


def _cpu_of(pid: int | None) -> float | None:
    """CPU seconds that a process has used, by Linux's ``/proc`` (fields 14 and 15 of ``stat``)."""
    if pid is None:
        return None
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def _constants(runs: dict[str, CalibrationRun], start_s: float) -> dict[str, float]:
    """What the runs say, for each event and each byte of a payload."""
    events = runs["in"].result.events
    payload = runs["in"].result.payload_bytes
    in_us, in_byte = _line(runs["in"].cpu_s, runs["in_bigger"].cpu_s, start_s, events, payload)
    out_us, out_byte = _line(runs["out"].cpu_s, runs["out_bigger"].cpu_s, 0.0, events, payload)
    follow_us, follow_byte = _line(
        runs["follow"].cpu_s, runs["follow_bigger"].cpu_s, start_s, events, payload
    )
    read_us, read_byte = _line(
        runs["follow"].result.seconds, runs["follow_bigger"].result.seconds, 0.0, events, payload
    )
    partition_mb = max(0.0, (runs["in"].rss_mb - runs["in_one"].rss_mb) / (PARTITIONS - 1))
    changelog_in = runs["in"].changelog_bytes / events - payload
    before = {"in": start_s, "in_bigger": start_s, "out": 0.0, "out_bigger": 0.0}
    grown = runs["in_bigger"].state_bytes - runs["in"].state_bytes
    state_byte = max(0.0, grown / events / (payload * (BIGGER - 1)))
    found = {
        "in_cpu_us": in_us,
        "in_cpu_us_per_byte": in_byte,
        "out_cpu_us": out_us,
        "out_cpu_us_per_byte": out_byte,
        "follow_cpu_us": follow_us,
        "follow_cpu_us_per_byte": follow_byte,
        "read_back_us": read_us,
        "read_back_us_per_byte": read_byte,
        "in_per_second_of_a_partition": runs["in_one"].result.events_per_second,
        "out_per_second_of_a_partition": runs["out_one"].result.events_per_second,
        # What the busiest run used: others may have been held up by a machine that does more.
        "cores_of_a_process": max(
            (runs[name].cpu_s - before_s) / runs[name].result.seconds
            for name, before_s in before.items()
        ),
        "worker_mb": max(0.0, runs["in_one"].rss_mb - partition_mb),
        "partition_mb": partition_mb,
        "request_bytes": runs["in"].request_bytes / events - payload,
        "row_bytes": changelog_in,
        # What a fire adds to the changelog: the end of a schedule, kept for a day.
        "ended_bytes": max(0.0, runs["out"].changelog_bytes / events - payload - changelog_in),
        "fired_bytes": max(0.0, runs["out"].fired_bytes - payload),
        "state_bytes": max(0.0, runs["in"].state_bytes / events - state_byte * payload),
        "state_bytes_per_byte": state_byte,
    }
    return found | _of_the_broker(runs, events, payload)


def _of_the_broker(runs: dict[str, CalibrationRun], events: int, payload: int) -> dict[str, float]:
    """The broker's CPU, where its process was told; the load's own writing is in it."""
    cpu = {name: run.broker_cpu_s for name, run in runs.items()}
    took = {name: used for name, used in cpu.items() if used is not None}
    if not took:
        return {}
    both_us, both_byte = _line(took["in"], took["in_bigger"], 0.0, events, payload)
    out_us = max(0.0, took["out"] - took["in"]) * 1e6 / events
    return {
        "broker_in_cpu_us": both_us,
        "broker_cpu_us_per_byte": both_byte,
        "broker_out_cpu_us": out_us,
    }


def _line(
    small_s: float, big_s: float, start_s: float, events: int, payload: int
) -> tuple[float, float]:
    """Microseconds of an event without its payload, and of a byte of the payload."""
    small, big = ((each - start_s) * 1e6 / events for each in (small_s, big_s))
    slope = max(0.0, (big - small) / (payload * (BIGGER - 1)))
    return max(0.0, small - slope * payload), slope


def _rounded(value: float) -> float:
    """Four digits: a measurement knows no more."""
    return float(f"{value:.4g}")
