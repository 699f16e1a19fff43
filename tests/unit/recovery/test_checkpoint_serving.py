"""What a worker keeps for others: the newest of each partition, and no more of its disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from belfry.host.rocks import RocksMap
from belfry.recovery import checkpoint_serving
from belfry.recovery.checkpoint_making import FORGOTTEN_AFTER
from belfry.recovery.checkpoint_serving import READ_MS
from belfry.store.checkpoint import Checkpoint, decode_index
from tests.unit.recovery.checkpoints import (
    FAR,
    INTERVAL_S,
    NOW_MS,
    PEERS,
    Net,
    Worker,
    commit,
    store,
)

LATER_MS = INTERVAL_S * 1000


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path / "one", None, net=Net())


@pytest.fixture
def rows(worker: Worker) -> Iterator[RocksMap]:
    found = store(worker.home / "partition-3")
    commit(found, FAR, b"first")
    yield found
    found.close()


def kept(worker: Worker) -> Checkpoint | None:
    """What others are told, which counts as reading."""
    index = worker.served.index(3)
    return None if index is None else decode_index(index, PEERS)


def folders(worker: Worker) -> int:
    return len(list(worker.home.glob("checkpoint-*")))


def again(worker: Worker, rows: RocksMap, offset: int, after_ms: int = LATER_MS) -> None:
    """Another checkpoint, of a later state."""
    worker.now_ms += after_ms
    commit(rows, offset, b"%d" % offset)
    rows.flush()
    worker.turn(rows)


def test_it_says_what_the_store_was_and_gives_its_files(worker: Worker, rows: RocksMap) -> None:
    assert kept(worker) is None
    worker.turn(rows)
    made = kept(worker)
    assert made is not None
    assert made[:9] == ("cluster-a", "log-1", 3, 2, FAR, NOW_MS, FAR // 10, 7, "00" * 15 + "a0")
    for file in made.files:
        halves = [worker.served.piece(3, file.sha256, at, file.size // 2 + 1) for at in
                  (0, file.size // 2 + 1)]  # fmt: skip
        assert sum(len(half or b"") for half in halves) == file.size
    assert worker.served.piece(3, made.files[0].sha256, 10**15, 10) == b""
    assert worker.served.piece(3, "ab" * 32, 0, 10) is None
    assert worker.served.piece(2, made.files[0].sha256, 0, 10) is None
    assert worker.served.index(2) is None


def test_it_is_replaced_in_its_time_and_the_one_before_is_removed(
    worker: Worker, rows: RocksMap
) -> None:
    worker.turn(rows)
    again(worker, rows, FAR + 1, LATER_MS - 1)
    assert (folders(worker), worker.counted("kept")) == (1, 1)
    again(worker, rows, FAR + 2, 1)
    assert (folders(worker), worker.counted("kept")) == (1, 2)
    made = kept(worker)
    assert made is not None
    assert made.offset == FAR + 2


def test_an_owner_waits_half_as_long_again(worker: Worker, rows: RocksMap) -> None:
    worker.turn(rows, owner=True)
    worker.now_ms += LATER_MS
    worker.turn(rows, owner=True)
    assert worker.counted("kept") == 1
    worker.now_ms += LATER_MS // 2
    worker.turn(rows, owner=True)
    assert worker.counted("kept") == 2


def test_one_that_is_read_stays_until_nobody_reads_it(worker: Worker, rows: RocksMap) -> None:
    worker.turn(rows)
    worker.now_ms += LATER_MS
    first = kept(worker)
    assert first is not None
    again(worker, rows, FAR + 1, 0)
    second = kept(worker)
    assert second is not None
    assert (second.offset, folders(worker)) == (FAR + 1, 2)
    (sole, *_) = {f.sha256 for f in first.files} - {f.sha256 for f in second.files}
    for _ in range(3):
        worker.now_ms += int(READ_MS)
        worker.maker._forget()
        assert worker.served.piece(3, sole, 0, 10) is not None
    worker.now_ms += int(READ_MS) + 1
    worker.maker._forget()
    assert (worker.served.piece(3, sole, 0, 10), folders(worker)) == (None, 1)


def test_one_that_nobody_reads_goes_when_it_is_replaced(worker: Worker, rows: RocksMap) -> None:
    worker.turn(rows)
    assert kept(worker) is not None
    worker.now_ms += int(READ_MS) + 1
    again(worker, rows, FAR + 1)
    assert folders(worker) == 1


def test_no_more_than_two_are_there_however_many_are_read(
    worker: Worker, rows: RocksMap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_serving, "READ_MS", 10.0 * LATER_MS)
    seen = list[Checkpoint]()
    for number in range(4):
        again(worker, rows, FAR + number)
        made = kept(worker)
        assert made is not None
        seen.append(made)
        assert folders(worker) == min(2, number + 1)
    # The newest, and the one that was read last of those before.
    for made, there in zip(seen, (False, False, True, True), strict=True):
        others = {f.sha256 for each in seen if each is not made for f in each.files}
        (sole, *_) = [f.sha256 for f in made.files if f.sha256 not in others]
        assert (worker.served.piece(3, sole, 0, 10) is not None) is there
    worker.now_ms += 10 * LATER_MS + 1
    worker.served.sweep()
    assert folders(worker) == 1


def test_what_nobody_here_holds_any_more_is_removed(worker: Worker, rows: RocksMap) -> None:
    worker.turn(rows)
    worker.now_ms += FORGOTTEN_AFTER * LATER_MS
    worker.maker._forget()
    assert folders(worker) == 1
    worker.now_ms += 1
    worker.maker._forget()
    assert (folders(worker), kept(worker)) == (0, None)


def test_a_disk_that_is_short_keeps_nothing(
    worker: Worker, rows: RocksMap, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(worker.home)
    worker.turn(rows)
    worker.served._reserve_bytes = 1_000_000_000
    short = free._replace(free=2 * worker.served._reserve_bytes - 1)
    monkeypatch.setattr(checkpoint_serving, "disk_usage", lambda _path: short)
    worker.maker._forget()
    assert (folders(worker), kept(worker)) == (0, None)
    again(worker, rows, FAR + 1)
    assert (folders(worker), kept(worker), worker.counted("failed")) == (0, None, 0)
    # It has room again, and is tried in its time.
    monkeypatch.undo()
    again(worker, rows, FAR + 2)
    assert folders(worker) == 1


def test_what_a_former_process_kept_is_removed(worker: Worker, rows: RocksMap) -> None:
    worker.turn(rows)
    after = Worker(worker.home, None, net=Net())
    after.maker.start()
    after.maker.stop()
    assert folders(worker) == 0


def test_a_file_that_is_gone_is_not_there(worker: Worker, rows: RocksMap) -> None:
    worker.turn(rows)
    made = kept(worker)
    assert made is not None
    (folder,) = worker.home.glob("checkpoint-*")
    shutil.rmtree(folder)
    assert worker.served.piece(3, made.files[0].sha256, 0, 10) is None


def test_one_of_the_store_that_another_has_made_is_kept_here_all_the_same(
    tmp_path: Path, rows: RocksMap
) -> None:
    """Nothing is sent twice, and each has its own."""
    stored = tmp_path / "stored"
    first, second = (Worker(tmp_path / name, stored, net=Net()) for name in ("first", "second"))
    first.turn(rows)
    assert (first.counted("made"), first.counted("kept")) == (1, 1)
    second.turn(rows)
    second.turn(rows)
    assert (second.counted("made"), second.counted("kept")) == (0, 1)
    assert len(first.there()) == 1


def test_a_store_that_fails_leaves_what_is_kept(tmp_path: Path, rows: RocksMap) -> None:
    worker = Worker(tmp_path / "two", tmp_path / "stored", net=Net())

    def fails(step: str) -> None:
        raise OSError(step)

    object.__setattr__(worker.given.failpoints, "reach", fails)
    worker.turn(rows)
    assert (worker.counted("failed"), worker.counted("kept")) == (1, 1)
    assert kept(worker) is not None
