"""Checkpoints are whole, two of them are kept, and nothing is sent twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from belfry.host.object_store import NoStore
from belfry.host.rocks import RocksMap
from belfry.recovery.checkpoint_store import checkpoint_store, sha256_of
from belfry.settings import Settings
from belfry.store.checkpoint import IndexKeys
from belfry.store.checkpoint_choice import UNUSED_MS
from tests.unit.recovery.checkpoints import FAR, INTERVAL_S, NOW_MS, Worker, commit, row, store

LATER_MS = INTERVAL_S * 1000


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path / "one", tmp_path / "stored")


@pytest.fixture
def rows(worker: Worker) -> Iterator[RocksMap]:
    found = store(worker.home / "partition-3")
    commit(found, FAR, b"first")
    yield found
    found.close()


def test_an_index_says_what_the_store_was(worker: Worker, rows: RocksMap) -> None:
    worker.turn(rows)
    (made,) = worker.there()
    assert made[:9] == ("cluster-a", "log-1", 3, 2, FAR, NOW_MS, FAR // 10, 7, "00" * 15 + "a0")
    assert {file.sha256 for file in made.files} == worker.files()
    assert (worker.counted("made"), worker.newest_s()) == (1, NOW_MS / 1000)
    assert not list(worker.home.glob("checkpoint-*"))


def test_what_is_written_while_it_is_carried_away_is_not_in_it(
    worker: Worker, rows: RocksMap, tmp_path: Path
) -> None:
    worker.maker.turn(3, rows, 2_000.0, owner=False)
    worker.maker._work()
    worker.maker.turn(3, rows, 2_000.0, owner=False)
    commit(rows, FAR + 100, b"second")
    rows.flush()
    worker.maker._work()
    other = Worker(tmp_path / "other", worker.stored)
    copy = other.opened()
    assert (row(copy, b"first"), row(copy, b"second")) == (b"\x01\x02first", None)
    copy.close()


def test_only_files_that_are_new_are_sent_and_two_checkpoints_are_kept(
    worker: Worker, rows: RocksMap
) -> None:
    sent = list[float]()
    for number in range(4):
        commit(rows, FAR + number, *(b"%d-%d" % (number, each) for each in range(3_000)))
        worker.turn(rows)
        worker.now_ms += LATER_MS
        told = worker.registry.get_sample_value("belfry_checkpoint_sent_bytes_total")
        sent.append((told or 0.0) - sum(sent))
    made = worker.there()
    assert [each.offset for each in made] == [FAR + 2, FAR + 3]
    assert worker.files() == {file.sha256 for each in made for file in each.files}
    # The last one holds the tables of all four, and sent those of one.
    assert sent[-1] < made[-1].size / 2
    for sha256 in worker.files():
        (found,) = worker.stored.rglob(sha256)
        assert sha256_of(found) == sha256


def test_the_links_wait_until_a_flush_has_ended(worker: Worker, rows: RocksMap) -> None:
    worker.maker.turn(3, rows, 2_000.0, owner=False)
    worker.maker._work()
    worker.maker.turn(3, rows, 999.0, owner=False)
    assert not (worker.home / "checkpoint-3").exists()
    worker.maker.turn(3, rows, 1_000.0, owner=False)
    assert (worker.home / "checkpoint-3").exists()


@pytest.mark.parametrize(
    ("owner", "after_ms", "made"),
    [
        (False, LATER_MS - 1, 1),
        (False, LATER_MS, 2),
        (True, LATER_MS, 1),
        (True, LATER_MS * 3 // 2, 2),
    ],
)
def test_whoever_comes_first_makes_it_and_an_owner_waits_for_a_standby(
    worker: Worker, rows: RocksMap, tmp_path: Path, *, owner: bool, after_ms: int, made: int
) -> None:
    worker.turn(rows)
    other = Worker(tmp_path / "two", worker.stored)
    other.now_ms += after_ms
    commit(rows, FAR + 1)
    other.turn(rows, owner=owner)
    assert len(other.there()) == made
    assert other.newest_s() == NOW_MS / 1000


def test_a_clock_that_is_far_ahead_keeps_nobody_from_making_one(
    worker: Worker, rows: RocksMap, tmp_path: Path
) -> None:
    commit(rows, FAR, written_ms=NOW_MS + 10**9)
    worker.turn(rows)
    commit(rows, FAR + 1)
    other = Worker(tmp_path / "two", worker.stored)
    other.turn(rows)
    assert len(other.there()) == 2


@pytest.mark.parametrize("step", ["C1", "C2"])
def test_one_that_was_killed_amid_it_is_none(
    worker: Worker, rows: RocksMap, tmp_path: Path, step: str
) -> None:
    def killed(reached: str) -> None:
        if reached == step:
            raise KeyboardInterrupt

    object.__setattr__(worker.given.failpoints, "reach", killed)
    with pytest.raises(KeyboardInterrupt):
        worker.turn(rows)
    assert (worker.there(), bool(worker.files())) == ([], True)
    after = Worker(worker.home, worker.stored)
    assert (after.home / "checkpoint-3").exists()
    after.maker.start()
    after.maker.stop()
    assert not (after.home / "checkpoint-3").exists()
    after.turn(rows)
    assert len(after.there()) == 1


def test_what_belongs_to_none_goes_after_a_day(worker: Worker, rows: RocksMap) -> None:
    worker.turn(rows)
    worker.folder.put_file("ab" * 32, Path(__file__))
    for later_ms, there in ((UNUSED_MS // 2, True), (UNUSED_MS * 2, False)):
        (stray,) = worker.stored.rglob("ab" * 32)
        worker.now_ms = int(stray.stat().st_mtime * 1000) + later_ms
        commit(rows, FAR + later_ms, written_ms=worker.now_ms)
        worker.turn(rows)
        assert ("ab" * 32 in worker.files()) is there


def test_a_store_that_fails_is_told_and_tried_again_in_its_time(
    worker: Worker, rows: RocksMap
) -> None:
    worker.stored.write_bytes(b"no folder")
    worker.turn(rows)
    assert worker.counted("failed") == 1
    worker.turn(rows)
    assert worker.counted("failed") == 1
    worker.stored.unlink()
    worker.now_ms += LATER_MS
    worker.turn(rows)
    assert (worker.counted("made"), len(worker.there())) == (1, 1)


def test_a_partition_that_never_had_an_owner_has_none(worker: Worker, tmp_path: Path) -> None:
    empty = store(tmp_path / "empty")
    worker.turn(empty)
    assert (worker.there(), worker.counted("failed")) == ([], 0)
    empty.close()


def test_nobody_replaces_what_is_believed_by_what_is_not(rows: RocksMap, tmp_path: Path) -> None:
    signed = IndexKeys((b"k" * 32,), signs=True, required=True)
    ours, stranger = (
        Worker(tmp_path / "ours", tmp_path / "stored", signed),
        Worker(tmp_path / "stranger", tmp_path / "stored"),
    )
    ours.turn(rows)
    for number in range(3):
        commit(rows, FAR * (2 + number))
        stranger.now_ms += 10 * LATER_MS
        stranger.turn(rows)
    found = ours.folder.indexes()
    assert sum(b" signed " in index for index in found.values()) == 1
    commit(rows, FAR + 1)
    ours.now_ms += LATER_MS
    ours.turn(rows)
    commit(rows, FAR + 2)
    ours.now_ms += LATER_MS
    ours.turn(rows)
    told = sorted(name for name, index in ours.folder.indexes().items() if b" signed " in index)
    assert [int(name[:20]) for name in told] == [FAR + 1, FAR + 2]


@pytest.mark.parametrize(
    ("url", "options", "why"),
    [
        ("nosuch://folder", {}, "cannot be used"),
        ("file:///folder", {"auto_mkdir": 1, "no_such_option": 1}, ""),
    ],
)
def test_a_store_that_means_nothing_is_refused_before_the_start(
    url: str, options: dict[str, object], why: str
) -> None:
    settings = Settings(checkpoint_store=url, checkpoint_options=options)
    if not why:
        assert checkpoint_store(settings) is not None
        return
    with pytest.raises(NoStore, match=why) as refused:
        checkpoint_store(settings)
    assert url not in str(refused.value)


def test_without_a_setting_there_is_none() -> None:
    assert checkpoint_store(Settings()) is None
