"""How long a worker without local state takes to stand by: from another worker, and from the log.

    make bench-restoring PENDING=1000000

A belfry of one partition has PENDING schedules of 400 bytes, written once, and its owner keeps a
checkpoint of them.  Then a worker with an empty disk is started ROUNDS times for each way, by
turns.  A JSON line each:

    seconds     from the start of its process until it would be promoted at once
    fetch_s     of that, from the question who has a checkpoint until it has been tried out
    bytes       that were fetched
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from belfry.bench.cluster import BenchCluster
from belfry.bench.worker import BenchWorker
from belfry.bench.workload import Workload, write
from belfry.devstack.ports import free_port
from belfry.settings import Settings

PENDING: Final = int(os.environ.get("PENDING", "1000000"))
ROUNDS: Final = int(os.environ.get("ROUNDS", "3"))
DAY_MS: Final = 86_400_000
# The owner makes one each so many seconds, so a round may begin soon after the last write.
INTERVAL_S: Final = 20


def told(worker: BenchWorker, event: str) -> list[dict[str, Any]]:
    """What a worker's log says of one thing."""
    # The last line may be on its way.
    lines = worker.log.read_text().rpartition("\n")[0].splitlines()
    return [line for line in map(json.loads, lines) if line.get("event") == event]


def wait(what: Any, worker: BenchWorker, at_most_s: float = 600.0, every_s: float = 0.1) -> Any:
    """The first true answer, while the worker runs; raises TimeoutError."""
    deadline = time.monotonic() + at_most_s
    while not (found := what()):
        worker.view()
        if time.monotonic() > deadline:
            raise TimeoutError(worker.log.read_text()[-2_000:])
        time.sleep(every_s)
    return found


def warm(worker: BenchWorker) -> bool:
    """Whether it stands by, near to the end of the log."""
    try:
        with urlopen(f"{worker.url}/v1/cluster?alone=true", timeout=5) as answer:  # noqa: S310  # loopback
            return any(each["warm"] for each in json.load(answer)["standbys"])
    except OSError:
        return False


def one(settings: Settings, peers: str) -> dict[str, Any]:
    """Start a worker without local state, and end it once it is warm."""
    os.environ["BELFRY_CHECKPOINT_PEERS"] = peers
    folder = Path(tempfile.mkdtemp(prefix="belfry-restoring-"))
    began_s = time.monotonic()
    worker = BenchWorker(settings, folder, free_port())
    try:
        wait(lambda: warm(worker), worker)
        seconds = time.monotonic() - began_s
        restored = told(worker, "state is restored from a checkpoint")
        return {
            "bench": "restoring",
            "pending": PENDING,
            "source": restored[0]["source"] if restored else "changelog",
            "seconds": round(seconds, 2),
            "fetch_s": round(restored[0]["seconds"], 2) if restored else None,
            "bytes": restored[0]["fetched_bytes"] if restored else 0,
            "load": os.getloadavg()[0],
        }
    finally:
        worker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Write, and measure both ways by turns."""
    os.environ |= {
        "BELFRY_BENCH_LOG_LEVEL": "info",
        "BELFRY_CHECKPOINT_PEERS": "always",
        "BELFRY_CHECKPOINT_INTERVAL_S": str(INTERVAL_S),
        "BELFRY_HTTP_WORKER_SECRET": "a secret of this benchmark",
    }
    with BenchCluster(Settings(), 1, 1) as cluster:
        cluster.start_workers()
        cluster.await_ready()
        (owner,) = cluster.workers
        due_ms = time.time_ns() // 1_000_000 + DAY_MS
        work = Workload(PENDING, due_ms, DAY_MS, partitions=1)
        write(cluster.properties, cluster.settings.topic("schedules"), work)
        wait(lambda: owner.pending() >= PENDING, owner, 3_600.0, 1.0)

        def kept() -> bool:
            made = told(owner, "a checkpoint was made")
            return bool(made) and made[-1]["pending"] >= PENDING

        wait(kept, owner)
        for _ in range(ROUNDS):
            for peers in ("always", "never"):
                print(json.dumps(one(cluster.settings, peers)), flush=True)


if __name__ == "__main__":
    main()
