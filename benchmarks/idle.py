"""What a worker takes while nothing happens, and once it has taken requests in: threads, memory.

    make bench-idle PARTITIONS=64
    BELFRY_BOOTSTRAP_SERVERS=localhost:9092 PYTHONPATH=app python benchmarks/idle.py

Prints one JSON line.  A worker of its own takes all partitions over, is left alone for SETTLE
seconds, and is looked at for SECONDS more.  Then it takes 40 000 requests of 400 bytes in, of four
tenants.  Looks go to `/proc`, so Linux only.  `threads` are named by the system: Python's have the
process's name, librdkafka's begin with `rdk:`.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from belfry.bench.cluster import BenchCluster
from belfry.bench.worker import BenchWorker, WorkerFailed, cpu_seconds
from belfry.bench.workload import Workload, write
from belfry.settings import Settings

PARTITIONS: Final = int(os.environ.get("PARTITIONS", "64"))
# A thread that nobody needs ends after ten seconds, one after the other.
SETTLE_S: Final = float(os.environ.get("SETTLE", "120"))
LOOK_S: Final = float(os.environ.get("SECONDS", "30"))
EVENTS: Final = 40_000
TENANTS: Final = 4
HOUR_MS: Final = 3_600_000
LONGEST_S: Final = 300.0


def threads(pid: int) -> Counter[str]:
    """How many threads a process has, by who made them."""
    found: Counter[str] = Counter()
    for name in Path(f"/proc/{pid}/task").glob("*/comm"):
        try:
            comm = name.read_text("utf-8").strip()
        except OSError:
            continue  # It has ended.
        maker, colon, _ = comm.partition(":")
        found[maker if colon else "python"] += 1
    return found


def resident_mb(pid: int) -> int:
    """Memory that a process has now, in MB."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


def files(pid: int) -> int:
    """Files and sockets that a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def taken_in(cluster: BenchCluster) -> None:
    """Write the requests, and wait until all of them wait."""
    due_ms = time.time_ns() // 1_000_000 + HOUR_MS
    workload = Workload(EVENTS, due_ms, tenants=TENANTS, partitions=PARTITIONS)
    write(cluster.properties, cluster.settings.topic("schedules"), workload)
    deadline = time.monotonic() + LONGEST_S
    while cluster.pending() < EVENTS:
        if time.monotonic() > deadline:
            raise WorkerFailed(f"{cluster.pending()} of {EVENTS} requests were taken in")
        time.sleep(0.2)


def measured(cluster: BenchCluster, worker: BenchWorker) -> dict[str, Any]:
    """The figures of one worker, idle and then at work."""
    pid = worker.pid
    time.sleep(SETTLE_S)
    began, spent = time.monotonic(), cpu_seconds(pid)
    time.sleep(LOOK_S)
    found: dict[str, Any] = {
        "partitions": PARTITIONS,
        "threads": sum(threads(pid).values()),
        **threads(pid),
        "idle_cores": round((cpu_seconds(pid) - spent) / (time.monotonic() - began), 3),
        "idle_mb": resident_mb(pid),
        "files": files(pid),
        "load": os.getloadavg()[0],
    }
    spent = cpu_seconds(pid)
    taken_in(cluster)
    used_us = (cpu_seconds(pid) - spent) / EVENTS * 1e6
    return {**found, "after_mb": resident_mb(pid), "us_a_request": round(used_us, 1)}


def main() -> None:
    """Measure one worker on a belfry of its own."""
    with BenchCluster(Settings(), 1, PARTITIONS) as cluster:
        cluster.start_workers()
        cluster.await_ready(LONGEST_S)
        print(json.dumps(measured(cluster, cluster.workers[0])))


if __name__ == "__main__":
    main()
