"""A worker that has lost its disk comes back from a checkpoint, to the state that the log gives.

``SCHEDULES=1000000 pytest -s …`` measures more of them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from belfry.host.rocks import RocksMap
from belfry.store.layout.pending import decode_pending
from belfry.store.schedules import ScheduleStore
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker
from tests.s3.server import BUCKET, S3Server

pytestmark = pytest.mark.slow

SCHEDULES: Final = int(os.environ.get("SCHEDULES", "52000"))
SOON: Final = 40
LATER_MS: Final = 6 * 3_600_000
SECRET: Final = "the secret of all workers"
TAKEN_OVER: Final = "partition taken over"


def indexes(stored: Path) -> dict[str, dict[str, Any]]:
    """What the checkpoints that are there say of themselves, the oldest first."""
    found = sorted(stored.rglob("*.checkpoint"))
    return {each.name: json.loads(each.read_bytes().split(b"\n", 1)[1]) for each in found}


def told(worker: Worker, event: str) -> list[dict[str, Any]]:
    """Lines of a worker's log about one thing; the last may be on its way."""
    whole = worker.log.read_text("utf-8").rpartition("\n")[0]
    lines = (json.loads(line) for line in whole.splitlines() if line)
    return [line for line in lines if line.get("event") == event]


def taken_over(worker: Worker) -> tuple[float, int]:
    """Seconds and rows of the changelog of its last take-over."""
    last = told(worker, TAKEN_OVER)[-1]
    return last["seconds"], last["records"]


def cold(worker: Worker, **settings: str) -> tuple[float, int]:
    """Start a worker that has nothing on its disk; what its take-over took.

    It is ready before that as well, while the group has given it nothing yet.
    """
    shutil.rmtree(worker.data_dir)
    before = len(told(worker, TAKEN_OVER))
    worker.settings |= {f"BELFRY_{name}": value for name, value in settings.items()}
    worker.start().wait_ready()
    wait_for("its take-over", lambda: len(told(worker, TAKEN_OVER)) > before)
    return taken_over(worker.wait_ready())


def pending(worker: Worker) -> dict[bytes, bytes]:
    """The schedules that wait, by name, in the store of a worker that has stopped.

    In which queue one lies is not compared: an owner isolates a hot tenant, and no row says so.
    """
    store = RocksMap(worker.data_dir / "partition-0")
    found = {decode_pending(each).name: each for each in ScheduleStore(store).all_pending()}
    store.close()
    return found


def flip_own_file(stored: Path) -> None:
    """One bit of a table that the newest checkpoint alone has."""
    *_, before, newest = indexes(stored).values()
    shared = {sha256 for _, _, sha256 in before["files"]}
    (sha256, *_) = [each for name, size, each in newest["files"] if size and each not in shared]
    (path,) = stored.rglob(sha256)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture(params=["files", "s3"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, unique: Callable[[str], str]
) -> tuple[Path, dict[str, str]]:
    """Where checkpoints lie: a folder of this machine, and the settings that lead there."""
    if request.param == "files":
        stored = tmp_path / "stored"
        return stored, {"CHECKPOINT_STORE": f"file://{stored}"}
    s3: S3Server = request.getfixturevalue("s3")
    folder = unique("checkpoints")
    return s3.bucket / folder, {
        "CHECKPOINT_STORE": f"s3://{BUCKET}/{folder}",
        "CHECKPOINT_OPTIONS": json.dumps(s3.options()),
    }


@pytest.mark.timeout(300)
def test_a_worker_without_a_disk_comes_back_from_the_newest_checkpoint_that_is_whole(
    kafka: str, tmp_path: Path, place: tuple[Path, dict[str, str]], unique: Callable[[str], str]
) -> None:
    stored, store = place
    given = {
        "CLUSTER__PARTITIONS": "1",
        **store,
        "CHECKPOINT_INTERVAL_S": "2",
        "HTTP_WORKER_SECRET": SECRET,
        "CHANGELOG": "required",
    }
    with Site(kafka, unique("checkpoints"), tmp_path, **given) as site:
        worker = site.worker().start().wait_ready()
        at = now_ms() + LATER_MS
        for number in range(SCHEDULES):
            site.ask_soon("shop", f"order/{number}", at=at + number, payload=b"%d" % number)
        site.producer.flush(60)

        def whole() -> list[str]:
            found = indexes(stored).items()
            return [name for name, each in found if each["pending"] >= SCHEDULES]

        # Both that are kept, so that the one before will do as well.
        wait_for("two checkpoints of all", lambda: len(whole()) >= 2, 90)
        # Some of what comes later fires before the kill, and some after it.
        for number in range(SOON):
            site.ask_soon("shop", f"soon/{number}", at=now_ms() + 100 * number, payload=b"soon")
        site.producer.flush(20)
        wait_for("first events", lambda: site.fired("shop"))
        worker.kill()

        by_checkpoint = cold(worker)
        assert len(told(worker, "state is restored from a checkpoint")) == 1, worker.said()
        wait_for("the others", lambda: len(site.fired("shop")) >= SOON)
        assert worker.stop() == 0
        copied = pending(worker)
        assert len(copied) == SCHEDULES
        flip_own_file(stored)
        count = len(indexes(stored))

        # The newest is damaged, and another one is never finished.
        shutil.rmtree(worker.data_dir)
        worker.start("C2:kill")
        assert worker.wait_end(60) != 0
        restored = told(worker, "state is restored from a checkpoint")
        assert len(told(worker, "a checkpoint is not used")) == 1
        assert restored[-1]["checkpoint"] == list(indexes(stored))[-2]
        assert len(indexes(stored)) == count
        worker.start().wait_ready()
        assert worker.stop() == 0

        worker.settings.pop("BELFRY_CHECKPOINT_STORE")
        by_log = cold(worker)
        assert worker.stop() == 0
        assert pending(worker) == copied
        assert by_checkpoint[1] < by_log[1] / 4
        assert by_log[1] >= SCHEDULES
        print(f"{SCHEDULES}: (s, rows) checkpoint {by_checkpoint}, log {by_log}")  # noqa: T201
        assert [each.value for each in site.fired("shop")] == [b"soon"] * SOON
