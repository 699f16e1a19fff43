"""The benchmarks: each returns one `Result`, of a belfry of its own.

The timed period of each, and its clock (the broker's, or that of this machine):

    ingest      manifest of the first take-over ─► last manifest that took requests in    broker
    fire        the due instant ─► last manifest with fires                               broker
    recovery    partitions are assigned ─► all workers fire                               machine
    restart     the same, with the state on disk                                          machine
    lateness    due instant in the payload ─► a reader has the record                     machine
    raw         first batch ─► last commit                                                machine

Events that did not fire are an error (`WorkerFailed`) and never improve a figure. Progress is shown
between two looks at the workers, and never while this process itself is measured.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from belfry.bench.cluster import BenchCluster
from belfry.bench.live import LiveReader, pour
from belfry.bench.logged import Trail, fired_by, taking_in, trails
from belfry.bench.plan import BenchPlan, Tell, silent
from belfry.bench.raw import copied
from belfry.bench.result import Result
from belfry.bench.worker import WorkerFailed
from belfry.bench.workload import PAYLOAD_BYTES, Workload, write
from belfry.settings import Settings

HOUR_MS: Final = 3_600_000
# Seconds without progress after which a benchmark is given up.
LONGEST_S: Final = 600.0
# Between two looks: the least seconds, the multiple of the time of an answer, and the most seconds.
LOOK_S: Final = 0.2
LOOK_PARTS: Final = 20
LATEST_LOOK_S: Final = 1.0
# The counted nouns of the progress.
TAKEN_IN: Final = "requests taken in"
FIRED: Final = "events fired"
RESTARTED: Final = "workers started again"
# Where this process is part of the figures, it shows no progress meanwhile.
AT_THE_END: Final = "records, counted at the end"


def ingest(cluster: BenchCluster, plan: BenchPlan) -> Result:
    """Requests that lie in the log, taken in: from the first take-over to the last commit."""
    _fill(cluster, plan)
    _write(cluster, plan, _now_ms() + HOUR_MS)
    cluster.make_outputs(plan)
    cluster.start_workers()
    _await(cluster.pending, plan.pending + plan.events, TAKEN_IN, cluster)
    trails = _trails(cluster, cluster.started_ms)
    began = min(trail[0].appended_ms for trail in trails)
    ended = max(step.appended_ms for trail in trails for step in taking_in(trail))
    return Result.of(plan, plan.events, (ended - began) / 1000).using(*cluster.usage())


def _fill(cluster: BenchCluster, plan: BenchPlan) -> None:
    """Make the pending schedules of the plan, due after those that are measured."""
    if not plan.pending:
        return
    workload = replace(_workload(plan, _now_ms() + 2 * HOUR_MS), events=plan.pending, stem="fill")
    write(cluster.properties, cluster.settings.topic("schedules"), workload, cluster.tell)
    cluster.start_workers()
    _await(cluster.pending, plan.pending, TAKEN_IN, cluster)
    cluster.stop_workers()


def fire(cluster: BenchCluster, plan: BenchPlan) -> Result:
    """Events that are all due at one instant: from it to the last committed transaction.

    All requests have to be in the state a second before the instant; otherwise taking them in would
    be measured too, and the run is an error. The CPU of taking in is left out.
    """
    _fill(cluster, plan)
    cluster.make_outputs(plan)
    due_ms = _fire_ms(plan)
    _write(cluster, plan, due_ms)
    cluster.start_workers()
    wanted = plan.pending + plan.events
    _await(lambda: _in_time(cluster.pending(), plan, due_ms), wanted, TAKEN_IN, cluster)
    before, _ = cluster.usage()
    # Before the instant no worker is asked: each is busy.
    _await(lambda: cluster.fired() if _now_ms() > due_ms else 0, plan.events, FIRED, cluster)
    cpu, peak = cluster.usage()
    steps = fired_by(lambda: _trails(cluster, cluster.started_ms), plan.events)
    fired = sum(step.manifest.fired for step in steps)
    if fired != plan.events:
        raise WorkerFailed(f"{fired} of {plan.events} events were fired")
    last = max(step.appended_ms for step in steps)
    return Result.of(plan, plan.events, (last - due_ms) / 1000).using(cpu - before, peak)


def _in_time(taken_in: int, plan: BenchPlan, due_ms: int) -> int:
    """The number of schedules taken in; raises `WorkerFailed` from a second before the instant on.

    After the instant schedules fire, so the awaited number may never be reached.
    """
    if _now_ms() > due_ms - 1_000:
        raise WorkerFailed(
            f"the requests were taken in too late: {taken_in} of"
            f" {plan.pending + plan.events} waited when they"
            " were due. Leave the machine to the benchmark, or give it fewer --events."
        )
    return taken_in


def _fire_ms(plan: BenchPlan) -> int:
    """The due instant of all: late enough for the intake of requests; a whole minute for CRON."""
    if plan.kind == "AT":
        # Larger payloads take longer to write and to take in.
        larger = max(0, plan.payload_bytes - PAYLOAD_BYTES)
        longer_ms = plan.events // 20 + 5 * plan.tenants + plan.events * larger // 5_000
        return _now_ms() + 15_000 + longer_ms
    latest_ms = _now_ms() + 20_000 + plan.events // 5
    return -(-latest_ms // 60_000) * 60_000 if plan.kind == "CRON" else latest_ms


def recovery(cluster: BenchCluster, plan: BenchPlan) -> Result:
    """Changelog records a second: workers without state, from their assignment until they fire."""
    _write(cluster, plan, _now_ms() + HOUR_MS)
    cluster.start_workers()
    _await(cluster.pending, plan.events, TAKEN_IN, cluster)
    cluster.stop_workers()
    cluster.wipe_state()
    return _restart(cluster, plan)


def restart(cluster: BenchCluster, plan: BenchPlan) -> Result:
    """Workers with their state on disk: from their assignment until they fire."""
    _write(cluster, plan, _now_ms() + HOUR_MS)
    cluster.start_workers()
    _await(cluster.pending, plan.events, TAKEN_IN, cluster)
    cluster.stop_workers()
    return _restart(cluster, plan)


def _restart(cluster: BenchCluster, plan: BenchPlan) -> Result:
    """Start workers, and time them from the first assigned partition until all of them fire."""
    cluster.tell(RESTARTED, 0, plan.workers)
    cluster.start_workers()
    while not any(worker.view().get("partitions") for worker in cluster.workers):
        time.sleep(0.02)
    began = time.monotonic()
    cluster.await_ready()
    return Result.of(plan, plan.events, time.monotonic() - began).using(*cluster.usage())


def raw(cluster: BenchCluster, plan: BenchPlan) -> Result:
    """The same bytes, copied by plain clients in transactions: the yardstick."""
    _write(cluster, plan, _now_ms())
    cluster.tell(AT_THE_END, 0, plan.events)
    return copied(cluster, plan)


def lateness(cluster: BenchCluster, plan: BenchPlan) -> Result:
    """Lateness at a live `read_committed` consumer while as many requests come in."""
    _fill(cluster, plan)
    cluster.make_outputs(plan)
    cluster.start_workers()
    cluster.await_ready()
    reader = LiveReader(cluster, plan)
    cluster.tell(AT_THE_END, 0, reader.expected)
    thread = threading.Thread(target=reader.run)
    thread.start()
    pour(cluster, plan)
    thread.join()
    if len(reader.lateness_ms) < reader.expected:
        raise WorkerFailed(f"{len(reader.lateness_ms)} of {reader.expected} events were seen")
    events = plan.rate * plan.seconds
    result = Result.of(plan, events, float(plan.seconds)).late(reader.steady_ms())
    return result.using(*cluster.usage())


def _write(cluster: BenchCluster, plan: BenchPlan, due_ms: int) -> None:
    """Write the plan's requests to the topic of requests, and wait until all are acknowledged."""
    topic = cluster.settings.topic("schedules")
    write(cluster.properties, topic, _workload(plan, due_ms), cluster.tell)


def _workload(plan: BenchPlan, due_ms: int) -> Workload:
    """The plan's requests, due at this instant."""
    return Workload(
        plan.events,
        due_ms,
        tenants=plan.tenants,
        payload_bytes=plan.payload_bytes,
        partitions=plan.partitions,
        with_ids=plan.with_ids,
        kind=plan.kind,
    )


def _trails(cluster: BenchCluster, from_ms: int = 0) -> list[Trail]:
    """The transactions of each partition, from an instant (epoch ms) on."""
    topic, partitions = cluster.settings.topic("changelog"), cluster.settings.cluster.partitions
    return trails(cluster.properties, topic, partitions, from_ms)


def _await(count: Callable[[], int], wanted: int, what: str, cluster: BenchCluster) -> None:
    """Wait until the count is as large as wanted, and show the progress.

    A worker of thousands of tenants works for long on an answer, so it is asked less often. Raises
    `WorkerFailed` after `LONGEST_S` seconds without progress.
    """
    most, deadline = -1, 0.0
    while True:
        asked = time.monotonic()
        if (found := count()) >= wanted:
            break
        cluster.tell(what, found, wanted)
        if found > most:
            most, deadline = found, asked + LONGEST_S
        if time.monotonic() > deadline:
            raise WorkerFailed(f"{found} of {wanted} {what}, and no more for {LONGEST_S:.0f} s")
        time.sleep(min(max(LOOK_S, LOOK_PARTS * (time.monotonic() - asked)), LATEST_LOOK_S))
    cluster.tell(what, wanted, wanted)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


BENCHES: Final[dict[str, Callable[[BenchCluster, BenchPlan], Result]]] = {
    "ingest": ingest,
    "fire": fire,
    "lateness": lateness,
    "recovery": recovery,
    "restart": restart,
    "raw": raw,
}


def measured(settings: Settings, plan: BenchPlan, tell: Tell = silent) -> Result:
    """One run of a plan, on a belfry of its own; `tell` is called with its progress."""
    with BenchCluster(settings, plan.workers, plan.partitions, tell) as cluster:
        return BENCHES[plan.bench](cluster, plan)
