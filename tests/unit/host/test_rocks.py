"""What a store says of itself, while it is open and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from belfry.host import rocks as module
from belfry.host.rocks import RocksMap
from belfry.partitions.term import NoRows
from belfry.store.ordered_map import Damaged

ROWS = 2_000


@pytest.fixture
def rows(tmp_path: Path) -> RocksMap:
    return RocksMap(tmp_path / "store")


def test_a_store_tells_what_it_takes(rows: RocksMap) -> None:
    empty = rows.figures()
    assert empty is not None
    rows.write({b"%05d" % number: b"x" * 400 for number in range(ROWS)})
    written = rows.figures()
    assert written is not None
    assert ROWS <= written.rows <= ROWS + 10
    assert written.memory_bytes - empty.memory_bytes > ROWS * 400
    # Closed, all of it lies on disk.
    rows.close()
    again = RocksMap(rows._path)
    kept = again.figures()
    assert kept is not None
    assert kept.disk_bytes > ROWS * 400
    assert kept.memory_bytes < written.memory_bytes
    assert (kept.merge_bytes, kept.errors) == (0, 0)
    again.close()


def test_a_store_that_is_closed_tells_nothing(rows: RocksMap) -> None:
    rows.close()
    assert rows.figures() is None


def test_to_close_a_store_once_more_touches_nothing_that_lies_there_by_then(rows: RocksMap) -> None:
    rows.condemn("it is wrong")
    rows.close()
    following = RocksMap(rows._path)
    following.write({b"a": b"1"})
    rows.close()
    assert following.get(b"a") == b"1"
    following.close()
    following = RocksMap(rows._path)
    assert following.get(b"a") == b"1"
    following.close()


def test_one_that_is_closed_by_another_thread_tells_nothing(rows: RocksMap) -> None:
    rows._db.close()
    assert rows.figures() is None


class EndsEarly:
    """RocksDB as it is where a block is damaged: an iterator just ends there."""

    def __init__(self, database: Any) -> None:
        self._database = database

    def items(self, **asked: Any) -> Iterator[tuple[bytes, bytes]]:
        return islice(self._database.items(**asked), 3)


def test_a_scan_from_the_end_that_ends_amid_the_store_has_met_damage(rows: RocksMap) -> None:
    rows.write({b"%d" % number: b"" for number in range(1, 10)})
    assert [key for key, _ in rows.scan_back(b"0", b"4")] == [b"3", b"2", b"1"]
    assert [key for key, _ in rows.scan_back(b"0", b"1")] == []
    whole = rows._db
    rows._db = EndsEarly(whole)  # type: ignore[assignment]
    assert [key for key, _ in rows.scan_back(b"5", b"6")] == [b"5"]
    with pytest.raises(Damaged, match="amid the store"):
        list(rows.scan_back(b"2", b"6"))
    rows._db = whole
    rows.close()
    assert not rows._path.exists()


def test_a_partition_without_a_state_has_no_figures() -> None:
    none: object = NoRows().figures()  # type: ignore[func-returns-value]
    assert none is None


def test_the_links_of_a_checkpoint_find_nothing_to_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other thread runs while links are made, and a flush would take most of that time."""
    left = list[int]()

    class Links:
        def __init__(self, db: Any) -> None:
            self.db = db

        def create_checkpoint(self, _path: str) -> None:
            left.append(self.db.property_int_value("rocksdb.num-entries-active-mem-table"))

    store = RocksMap(tmp_path / "one")
    store.write({b"%d" % each: b"x" * 100 for each in range(1_000)})
    monkeypatch.setattr(module, "Checkpoint", Links)
    store.checkpoint(tmp_path / "links")
    store.close()
    assert left == [0]


def test_a_store_whose_first_write_fails_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever tries again, while the error is still told of, finds no lock."""
    RocksMap(tmp_path / "store").close()

    def fails(*_: object) -> None:
        raise OSError("IO error: While appending to file")

    with monkeypatch.context() as patched:
        patched.setattr(RocksMap, "write", fails)
        with pytest.raises(OSError, match="appending") as caught:
            RocksMap(tmp_path / "store")
    again = RocksMap(tmp_path / "store")
    again.close()
    assert caught.value.__traceback__ is not None


def test_an_error_of_the_disk_is_not_its_own_cause(rows: RocksMap) -> None:
    """Nobody would let it go, with the store in its traceback, until garbage is looked for."""

    class Failing:
        def fails(self, *_: object) -> None:
            raise OSError("IO error: While appending to file")

        get = write = flush = fails

    whole, rows._db = rows._db, Failing()  # type: ignore[assignment]
    asked: list[Callable[[], object]] = [
        lambda: rows.get(b"a"),
        lambda: rows.get_many([b"a"]),
        lambda: rows.write({b"a": b"1"}),
        rows.flush,
    ]
    for each in asked:
        with pytest.raises(OSError, match="appending") as caught:
            each()
        assert caught.value.__cause__ is not caught.value
    assert rows.stuck
    rows._db = whole
    rows.close()
