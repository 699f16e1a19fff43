"""How long a worker without local state takes to stand by: from each place that has its state.

    make bench-restoring PENDING=1000000

A belfry of one partition has PENDING schedules of 400 bytes, written once.  Its owner keeps a
checkpoint of them for other workers, and sends it to a folder.  Then a worker with an empty disk is
started ROUNDS times for each way, by turns: by another worker's checkpoint, by that of the folder,
and by the changelog.  A JSON line each:

    seconds     from the start of its process until it would be promoted at once
    fetch_s     of that, from the question who has a checkpoint until it has been tried out
    rows_per_s  PENDING by fetch_s
    cpu_s       the processor time of the process until it was warm
    bytes       that were fetched

A worker gives others 200 MB/s at most, so a peer's row shows that bound unless
`BELFRY_CHECKPOINT_PEER_BYTES_PER_S` is set for the run.
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
WAYS: Final = ("peer", "checkpoint", "changelog")
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


def one(settings: Settings, way: str, stored: Path) -> dict[str, Any]:
    """Start a worker without local state, and end it once it is warm."""
    os.environ["BELFRY_CHECKPOINT_PEERS"] = "always" if way == "peer" else "never"
    os.environ.pop("BELFRY_CHECKPOINT_STORE", None)
    if way == "checkpoint":
        os.environ["BELFRY_CHECKPOINT_STORE"] = f"file://{stored}"
    folder = Path(tempfile.mkdtemp(prefix="belfry-restoring-"))
    began_s = time.monotonic()
    worker = BenchWorker(settings, folder, free_port())
    try:
        wait(lambda: warm(worker), worker)
        seconds, (cpu_s, _) = time.monotonic() - began_s, worker.usage()
        restored = told(worker, "state is restored from a checkpoint")
        fetch_s = restored[0]["seconds"] if restored else None
        return {
            "bench": "restoring",
            "pending": PENDING,
            "source": restored[0]["source"] if restored else "changelog",
            "seconds": round(seconds, 2),
            "fetch_s": fetch_s and round(fetch_s, 2),
            "rows_per_s": fetch_s and round(PENDING / fetch_s),
            "cpu_s": round(cpu_s, 2),
            "bytes": restored[0]["fetched_bytes"] if restored else 0,
            "load": os.getloadavg()[0],
        }
    finally:
        worker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Write, and measure all ways by turns."""
    stored = Path(tempfile.mkdtemp(prefix="belfry-stored-"))
    os.environ |= {
        "BELFRY_BENCH_LOG_LEVEL": "info",
        "BELFRY_CHECKPOINT_PEERS": "always",
        "BELFRY_CHECKPOINT_STORE": f"file://{stored}",
        "BELFRY_CHECKPOINT_INTERVAL_S": str(INTERVAL_S),
        "BELFRY_HTTP_WORKER_SECRET": "a secret of this benchmark",
    }
    try:
        measure(stored)
    finally:
        shutil.rmtree(stored, ignore_errors=True)


def measure(stored: Path) -> None:
    """Write, and start workers without local state; `stored` is the folder of checkpoints."""
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
            return bool(made) and made[-1]["pending"] >= PENDING and made[-1]["kept"]

        wait(kept, owner)
        for _ in range(ROUNDS):
            for way in WAYS:
                print(json.dumps(one(cluster.settings, way, stored)), flush=True)


if __name__ == "__main__":
    main()
