"""How fast a checkpoint of many schedules becomes a partition's store again: no Kafka, no group.

    PYTHONPATH=app:. python benchmarks/restoring_files.py --pending 1000000

An engine takes PENDING requests of 400 bytes in.  A checkpoint of its store goes to a folder
(`file://`), and is kept for other workers.  Then a worker with an empty disk opens its store ROUNDS
times, by turns from the folder and from another process over HTTP, until the replay of the
changelog could begin.  A JSON line each:

    seconds, rows_per_s     from the question who has a checkpoint until the store is open
    cpu_s, served_cpu_s     processor time of the worker, and of the one that serves it
    mb, disk_mb_per_s       what was fetched; the speed of a plain copy of these files just before

Nothing of the files is dropped from Linux's memory unless `--cold` says so: then what is read comes
from the disk, for the copy and for the worker.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Final

from prometheus_client import CollectorRegistry

from belfry.api.auth.access import Gate
from belfry.api.routes.app import create_app
from belfry.api.server.server import HttpServer
from belfry.api.workers.checkpoint_asking import CheckpointAsker, token_of
from belfry.api.workers.checkpoint_door import CheckpointDoor
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.recovery.checkpoint_peers import PeerCheckpoints
from belfry.recovery.checkpoint_restoring import CheckpointRestorer
from belfry.settings import Settings
from belfry.store.layout import keys
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.telemetry.metrics import Metrics
from benchmarks.ends import DAY_MS, NOW_MS, Days
from tests.unit.api.conftest import FakeWorker
from tests.unit.recovery.checkpoints import FAR, MINE, PEERS, Net, Worker

STEP: Final = 5_000
SETTINGS: Final = Settings.model_validate({"http_worker_secret": "a secret of this benchmark"})
CLOCK: Final[Any] = SimpleNamespace(
    wall_ms=lambda: time.time() * 1000, monotonic_ms=lambda: time.monotonic() * 1000
)


def made(folder: Path, pending: int) -> Worker:
    """A worker that has made a checkpoint of so many schedules, and has stopped."""
    worker = Worker(folder / "maker", folder / "stored", net=Net())
    worker.now_ms = NOW_MS
    days = Days(worker.home / "partition-3")
    days.rows.write({keys.META_STAMP: MINE.encode()})
    Replay(ScheduleStore(days.rows)).finish(NOW_MS)
    while days.offset < pending:
        days.take(min(STEP, pending - days.offset), NOW_MS + DAY_MS + days.offset)
        # Steps stand for offsets of the changelog, of which there are to be enough.
        days.steps += FAR
    worker.turn(days.rows)
    worker.turn(days.rows)
    days.rows.close()
    (checkpoint,) = worker.there()
    assert checkpoint.pending == pending
    return worker


def serve(worker: Worker, to: Connection) -> None:
    """Serve its checkpoint over HTTP; tell the address, and its processor time when asked."""
    door = CheckpointDoor(worker.served, token_of(SETTINGS, CLOCK), 1e12, mine="")
    parts = ApiDependencies(Gate(), (), CLOCK.wall_ms)
    given: Any = (None, None, None, None, None, None, door)
    parts.open(Open(*given))
    app = create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts)
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    door.mine = server.url
    to.send(server.url)
    while to.recv():
        to.send(time.process_time())
    server.stop()


def restored(folder: Path, stored: Path | None, peer: str) -> dict[str, float]:
    """Seconds of a worker that has nothing, and its processor time."""
    worker = Worker(folder / "cold", stored)
    worker.now_ms = NOW_MS
    if not stored:
        asked = PeerCheckpoints(lambda _: [peer], CheckpointAsker(SETTINGS, CLOCK), PEERS, CLOCK)
        restorer = CheckpointRestorer(replace(worker.given, peers=asked, clock=CLOCK))
        worker.local = replace(worker.local, checkpoints=restorer)
    began_s, began = time.monotonic(), time.process_time()
    rows = worker.opened(end=1_000 * FAR * FAR)
    replay = Replay(ScheduleStore(rows))
    took = {"seconds": time.monotonic() - began_s, "cpu_s": time.process_time() - began}
    assert replay.begun
    assert worker.restored("checkpoint" if stored else "peer") == 1
    rows.close()
    shutil.rmtree(worker.home)
    return took


def copied_mb_per_s(files: list[Path], folder: Path) -> float:
    """How fast the same files are copied by nothing but that."""
    folder.mkdir()
    began_s = time.monotonic()
    for each in files:
        shutil.copyfile(each, folder / each.name)
    seconds = time.monotonic() - began_s
    shutil.rmtree(folder)
    return sum(each.stat().st_size for each in files) / seconds / 1e6


def forget(files: list[Path]) -> None:
    """Have Linux drop what it has read of these files."""
    os.sync()
    for each in files:
        with each.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def rounds(folder: Path, asked: argparse.Namespace) -> None:
    """Make a checkpoint, and restore it."""
    worker = made(folder, asked.pending)
    stored, served = worker.stored, next(worker.home.glob("checkpoint-3.*"))
    here, there = Pipe()
    server = Process(target=serve, args=(worker, there), daemon=True)
    server.start()
    peer = here.recv()

    def served_s() -> float:
        here.send(True)
        return float(here.recv())

    drop: Callable[[list[Path]], None] = forget if asked.cold else lambda _files: None
    for _ in range(asked.rounds):
        for way, place in (("checkpoint", stored), ("peer", None)):
            files = [each for each in (place or served).rglob("*") if each.is_file()]
            drop(files)
            disk = copied_mb_per_s(files, folder / "copy")
            drop(files)
            before = served_s()
            took = restored(folder, place, peer)
            line = {
                "bench": "restoring_files",
                "source": way,
                "pending": asked.pending,
                "mb": round(sum(each.stat().st_size for each in files) / 1e6),
                **{name: round(each, 2) for name, each in took.items()},
                "rows_per_s": round(asked.pending / took["seconds"]),
                "rows_per_cpu_s": round(asked.pending / took["cpu_s"]),
                "served_cpu_s": round(served_s() - before, 2),
                "disk_mb_per_s": round(disk),
                "load": os.getloadavg()[0],
            }
            print(json.dumps(line), flush=True)
    here.send(False)
    server.join()


def main() -> None:
    """Measure, in a folder that is removed."""
    given = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    given.add_argument("--pending", type=int, default=1_000_000)
    given.add_argument("--rounds", type=int, default=3)
    given.add_argument("--cold", action="store_true", help="read from the disk, not from memory")
    with TemporaryDirectory(prefix="belfry-restoring-") as folder:
        rounds(Path(folder), given.parse_args())


if __name__ == "__main__":
    main()
