"""A cold worker comes back from the newest checkpoint that is whole, else from the one before."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.host.rocks import RocksMap
from belfry.recovery import checkpoint_restoring
from belfry.recovery.checkpoint_store import CheckpointFolder
from belfry.store.checkpoint import IndexKeys
from belfry.store.layout import keys
from belfry.store.ordered_map import Damaged
from tests.unit.recovery.checkpoints import (
    FAR,
    INTERVAL_S,
    NOW_MS,
    STALE_MS,
    Worker,
    commit,
    row,
    store,
)

SIGNED = IndexKeys((b"k" * 32,), signs=True)
REQUIRED = IndexKeys((b"k" * 32,), signs=True, required=True)


def made(home: Path, stored: Path, by: IndexKeys = IndexKeys()) -> Worker:  # noqa: B008
    """A worker that has made two checkpoints, of `old` and of `old` and `new`, and is gone."""
    worker = Worker(home, stored, by)
    rows = store(home / "partition-3")
    commit(rows, FAR, b"old", *(b"%d" % each for each in range(2_000)))
    worker.turn(rows)
    worker.now_ms += INTERVAL_S * 1000
    commit(rows, 2 * FAR, b"new", written_ms=worker.now_ms)
    worker.turn(rows)
    rows.close()
    assert [each.offset for each in worker.there()] == [FAR, 2 * FAR]
    return worker


@pytest.fixture
def maker(tmp_path: Path) -> Worker:
    return made(tmp_path / "maker", tmp_path / "stored")


@pytest.fixture
def cold(tmp_path: Path, maker: Worker) -> Worker:
    worker = Worker(tmp_path / "cold", maker.stored)
    worker.now_ms = maker.now_ms
    return worker


def names(worker: Worker, **at: int) -> tuple[bool, bool]:
    """Whether `old` and `new` are in the store that a take-over begins with."""
    rows = worker.opened(**at)
    found = row(rows, b"old") is not None, row(rows, b"new") is not None
    assert rows.get(keys.META_STAMP) is not None
    rows.close()
    assert {each.name for each in worker.home.iterdir()} <= {"partition-3"}
    return found


def sole(worker: Worker, which: int) -> Path:
    """A file of one checkpoint that the other one has not got."""
    own, other = worker.there()[which], worker.there()[1 - which]
    (first, *_) = [each for each in own.files if each not in other.files and each.size]
    (found,) = worker.stored.rglob(first.sha256)
    return found


def test_the_newest_is_used(cold: Worker) -> None:
    assert names(cold) == (True, True)
    assert (cold.restored("checkpoint"), cold.restored("changelog")) == (1, 0)
    # It is local state from then on.
    assert names(cold, end=2 * FAR + 10) == (True, True)
    assert cold.restored("local") == 1


def flip(path: Path) -> None:
    """One bit, in the midst."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


HURTS: dict[str, Callable[[Path], object]] = {
    "a bit": flip,
    "missing": Path.unlink,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
}


@pytest.mark.parametrize("hurt", HURTS.values(), ids=HURTS)
def test_a_damaged_one_falls_back_to_the_one_before_and_then_to_the_log(
    cold: Worker, hurt: Callable[[Path], object], tmp_path: Path
) -> None:
    hurt(sole(cold, 1))
    assert names(cold) == (True, False)
    assert (cold.counted("refused"), cold.restored("checkpoint")) == (1, 1)
    hurt(sole(cold, 0))
    colder = Worker(tmp_path / "colder", cold.stored)
    assert colder.there() != []
    rows = colder.opened()
    assert row(rows, b"old") is None
    assert (colder.counted("refused"), colder.restored("changelog")) == (2, 1)
    rows.close()


@pytest.mark.parametrize("hurt", [HURTS["a bit"], HURTS["cut"]], ids=["a bit", "cut"])
def test_so_does_a_damaged_index(cold: Worker, hurt: Callable[[Path], object]) -> None:
    *_, newest = sorted(cold.stored.rglob("*.checkpoint"))
    hurt(newest)
    assert names(cold) == (True, False)


def test_an_index_that_says_more_than_its_store_is_refused(cold: Worker, maker: Worker) -> None:
    """By a worker's own mistake: the files are whole, and of another offset."""
    from belfry.store.checkpoint import encode_index

    last = maker.there()[-1]
    forged = encode_index(last._replace(offset=3 * FAR), IndexKeys())
    maker.folder.put_index(f"{3 * FAR:020d}-forged.checkpoint", forged)
    assert names(cold) == (True, True)
    assert cold.counted("refused") == 1


def test_one_of_another_partition_under_this_ones_name_is_refused(
    cold: Worker, maker: Worker
) -> None:
    path = Path(cold.folder._path)
    shutil.copytree(path, path.with_name("2"))
    other = Worker(cold.home, cold.stored)
    object.__setattr__(other.local, "stamp", other.local.stamp.__class__("cluster-a", "log-1", 2))
    rows = other.opened()
    assert row(rows, b"old") is None
    rows.close()


def test_nobody_looks_where_the_log_is_read_at_once(cold: Worker) -> None:
    shutil.rmtree(cold.stored)
    cold.stored.write_bytes(b"whoever looks here fails")
    assert names(cold, end=50_000) == (False, False)
    assert cold.restored("changelog") == 1


@pytest.mark.parametrize("by", [SIGNED, REQUIRED])
def test_signed_workers_believe_unsigned_ones_as_they_do_rows(
    tmp_path: Path, maker: Worker, by: IndexKeys
) -> None:
    worker = Worker(tmp_path / "signed", maker.stored, by)
    assert names(worker) == ((False, False) if by.required else (True, True))
    assert worker.counted("refused") == (2 if by.required else 0)


def test_what_is_signed_is_used_by_whoever_has_the_secret(tmp_path: Path) -> None:
    made(tmp_path / "maker", tmp_path / "stored", SIGNED)
    for name, by, used in (
        ("same", REQUIRED, True),
        ("older", IndexKeys((b"n" * 32, b"k" * 32), signs=True, required=True), True),
        ("other", IndexKeys((b"n" * 32,), signs=True), False),
        ("none", IndexKeys(), False),
    ):
        worker = Worker(tmp_path / name, tmp_path / "stored", by)
        assert names(worker) == (used, used), name


def test_what_is_too_old_may_not_know_what_was_cancelled(cold: Worker) -> None:
    cold.now_ms = NOW_MS + STALE_MS + 1
    assert names(cold) == (True, True)
    shutil.rmtree(cold.home / "partition-3")
    cold.now_ms += INTERVAL_S * 1000
    assert names(cold) == (False, False)


def test_old_local_state_gives_way_and_its_tables_are_not_fetched(
    cold: Worker, maker: Worker
) -> None:
    shutil.copytree(maker.home / "partition-3", cold.home / "partition-3")
    rows = RocksMap(cold.home / "partition-3")
    # The same tables, and a state that goes less far.
    commit(rows, 10, b"own")
    rows.close()
    fetched = list[str]()
    folder = CheckpointFolder
    get = folder.get_file

    def counted(self: Any, sha256: str, local: Path) -> None:
        fetched.append(sha256)
        get(self, sha256, local)

    folder.get_file = counted  # type: ignore[method-assign]
    try:
        assert names(cold) == (True, True)
    finally:
        folder.get_file = get  # type: ignore[method-assign]
    tables = [each for each in maker.there()[1].files if each.name.endswith(".sst")]
    assert tables
    assert not {each.sha256 for each in tables} & set(fetched)
    rows = RocksMap(cold.home / "partition-3")
    assert row(rows, b"own") is None
    rows.close()


def test_local_state_that_is_near_the_end_stays(cold: Worker) -> None:
    rows = store(cold.home / "partition-3")
    commit(rows, 2 * FAR - 10, b"own")
    rows.close()
    rows = cold.opened(end=2 * FAR)
    assert row(rows, b"own") is not None
    rows.close()
    # Far from the end, but a checkpoint would save next to nothing.
    rows = cold.opened()
    assert row(rows, b"own") is not None
    rows.close()
    assert cold.restored("local") == 2


def test_state_that_is_found_wrong_is_not_restored_again(cold: Worker) -> None:
    assert names(cold) == (True, True)
    cold.now_ms += 1
    cold.local.found_wrong()
    shutil.rmtree(cold.home / "partition-3")
    assert names(cold) == (False, False)


def test_a_broker_that_is_away_leaves_nothing_open(cold: Worker) -> None:
    def away() -> tuple[int, int]:
        raise ConnectionError("no broker")

    changelog: Any = SimpleNamespace(ends=away, holds_records=lambda: True)
    with pytest.raises(ConnectionError):
        cold.local.open_newest(changelog)
    assert names(cold) == (True, True)


def test_a_lease_is_outwaited_from_when_the_state_came(cold: Worker) -> None:
    """The clock that the state was written by may have been behind."""
    assert cold.local.restored_ms == 0
    cold.opened().close()
    assert cold.local.restored_ms == cold.now_ms


def test_an_owner_whose_rows_are_wrong_says_so() -> None:
    from belfry.partitions.term import Owned

    told: list[str] = []
    rows = SimpleNamespace(condemn=lambda why: told.append("condemned"))
    owned: Any = SimpleNamespace(rows=rows, found_wrong=lambda: told.append("found wrong"))
    Owned.failed(owned, Damaged("a bucket"))
    Owned.failed(owned, ConnectionError("no broker"))
    assert told == ["condemned", "found wrong"]


def test_a_store_that_never_answers_holds_nobody_up(
    cold: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: Any = SimpleNamespace(late=False)

    def silent(_self: object) -> dict[str, bytes]:
        time.sleep(30)
        answered.late = True
        return {}

    monkeypatch.setattr(checkpoint_restoring, "INDEXES_S", 0.05)
    monkeypatch.setattr(CheckpointFolder, "indexes", silent)
    assert names(cold) == (False, False)
    assert not answered.late


def test_a_file_that_comes_too_late_has_a_name_of_its_own(
    cold: Worker, maker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was given up goes on in a thread of its own, and nobody knows when it writes."""
    monkeypatch.setattr(checkpoint_restoring, "FILE_S", 0.1)
    get, given = CheckpointFolder.get_file, list[Path]()
    old, new = maker.there()
    names = {each.name for each in old.files}
    # Both have a file of this name, so it is fetched twice.
    (slow, *_) = [each.sha256 for each in new.files if each not in old.files and each.name in names]

    def late(self: Any, sha256: str, local: Path) -> None:
        given.append(local)
        if sha256 == slow:
            time.sleep(0.5)
        get(self, sha256, local)

    monkeypatch.setattr(CheckpointFolder, "get_file", late)
    rows = cold.opened()
    assert (row(rows, b"old") is not None, row(rows, b"new") is not None) == (True, False)
    assert len(set(given)) == len(given)
    assert not {each.name for each in given} & {each.name for each in (*old.files, *new.files)}
    rows.close()
