"""Memory tables and cached blocks of all stores together have bounds, which they follow."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from shutil import rmtree

import pytest

from belfry.host import rocks
from belfry.host.rocks import RocksMap
from belfry.host.rocks_options import (
    CACHES_BYTES,
    LEAST_BYTES,
    MEMTABLES_BYTES,
    MOST_BYTES,
    StoreShares,
    cache_bytes,
    memtable_bytes,
)

MB = 1024 * 1024
ROW = bytes(1000)


@pytest.mark.parametrize(
    ("stores", "each"), [(0, 8), (1, 8), (8, 8), (9, 4), (16, 4), (17, 2), (33, 1), (1_000, 1)]
)
def test_tables_are_smaller_where_there_are_more(stores: int, each: int) -> None:
    assert memtable_bytes(stores) == each * MB


def test_they_stay_below_their_bound_until_they_are_as_small_as_can_be() -> None:
    for stores in range(1, MEMTABLES_BYTES // LEAST_BYTES):
        assert memtable_bytes(stores) * stores <= MEMTABLES_BYTES


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> StoreShares:
    """Of this test's stores alone: other tests may leave some open."""
    made = StoreShares()
    monkeypatch.setattr(rocks, "SHARES", made)
    return made


def files(path: Path) -> int:
    return len(list(path.glob("*.sst")))


def test_a_store_that_is_open_has_a_smaller_table_while_there_are_others(
    tmp_path: Path, shares: StoreShares
) -> None:
    many = MEMTABLES_BYTES // LEAST_BYTES
    with ExitStack() as stack:
        store = stack.enter_context(closing(RocksMap(tmp_path / "first")))
        keys = (b"%09d" % number for number in range(10_000))
        for _ in range(5_000):
            store.write({next(keys): ROW})
        assert not files(tmp_path / "first")
        others = [stack.enter_context(closing(RocksMap(tmp_path / f"{n}"))) for n in range(many)]
        assert shares.each == LEAST_BYTES
        for _ in range(4_500):
            store.write({next(keys): ROW})
        # A table that is full becomes a file in the background.
        deadline = time.monotonic() + 10
        while files(tmp_path / "first") < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert files(tmp_path / "first") >= 4
        for other in others:
            other.close()
        store.write({next(keys): ROW})
    assert shares.each == MOST_BYTES


def test_what_of_a_row_stays_in_memory_is_small(tmp_path: Path) -> None:
    """Indexes and filters: by RocksDB's defaults 10^7 schedules took 59 MB, and now 30."""
    with closing(RocksMap(tmp_path)) as store:
        for start in range(0, 30_000, 1_000):
            numbers = range(start, start + 1_000)
            names = {b"n-tenant-%d\0order-%09d" % (each % 97, each): ROW[:24] for each in numbers}
            store.write(names | {b"p%017d" % (7 * each): ROW[:540] for each in numbers})
        store._db.flush()
        kept = store._db.property_int_value("rocksdb.estimate-table-readers-mem")
    assert kept is not None
    assert kept / 30_000 < 4.0


@pytest.mark.parametrize("asked", [True, False])
def test_a_table_has_a_filter_where_names_are_looked_up(tmp_path: Path, *, asked: bool) -> None:
    """Each row is put into it, which costs as much as half of its write."""
    with closing(RocksMap(tmp_path, names_asked=asked)) as store:
        store.write({b"a": b"1"})
        assert store.get_many([b"a", b"b"]) == [b"1", None]
        options = max(tmp_path.glob("OPTIONS-*")).read_text()
    assert ("memtable_prefix_bloom_size_ratio=0.05" in options) == asked
    assert ("memtable_whole_key_filtering=true" in options) == asked


def test_stores_that_could_not_be_begun_or_were_let_go_do_not_count(
    tmp_path: Path, shares: StoreShares, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is tried again and again, and a replay drops its branches."""
    for number in range(20):
        RocksMap(tmp_path / f"{number}")

    def full(*_: object) -> None:
        raise OSError("IO error: No space left on device")

    monkeypatch.setattr(RocksMap, "write", full)
    for number in range(20):
        with pytest.raises(OSError, match="No space"):
            RocksMap(tmp_path / f"{number}")
    assert shares.each == MOST_BYTES


def test_closing_a_store_twice_counts_once(tmp_path: Path, shares: StoreShares) -> None:
    stores = [RocksMap(tmp_path / f"{number}") for number in range(9)]
    assert shares.each == MOST_BYTES // 2
    for _ in range(2):
        stores[0].close()
    another = [RocksMap(tmp_path / "0"), RocksMap(tmp_path / "9")]
    assert shares.each == MOST_BYTES // 2
    for store in [*stores, *another]:
        store.close()
    assert shares.each == MOST_BYTES


def test_a_size_that_cannot_be_had_fails_no_write(tmp_path: Path, shares: StoreShares) -> None:
    """A full disk takes no file of options; a write goes into the memory table all the same."""
    with closing(RocksMap(tmp_path / "store")) as store, ExitStack() as stack:
        # Where the folder is gone no file can be made either.
        rmtree(tmp_path / "store")
        for number in range(MEMTABLES_BYTES // MOST_BYTES):
            stack.enter_context(closing(RocksMap(tmp_path / f"{number}")))
        assert shares.each < MOST_BYTES
        store.write({b"a": b"1"})
        assert store.get(b"a") == b"1"
        assert not store.stuck


def test_a_store_is_opened_anew_with_the_size_of_then(tmp_path: Path, shares: StoreShares) -> None:
    """Not with that which its options file kept."""
    path = tmp_path / "store"
    with ExitStack() as stack:
        first = stack.enter_context(closing(RocksMap(path)))
        for number in range(8):
            stack.enter_context(closing(RocksMap(tmp_path / f"{number}")))
        first.write({b"a": b"1"})
        assert f"write_buffer_size={MOST_BYTES // 2}\n" in options_of(path)
    assert shares.each == MOST_BYTES
    with closing(RocksMap(path)):
        assert f"write_buffer_size={MOST_BYTES}\n" in options_of(path)


def options_of(path: Path) -> str:
    return max(path.glob("OPTIONS-*"), key=lambda file: file.name).read_text()


@pytest.mark.parametrize(("stores", "together"), [(0, 8), (1, 8), (2, 16), (8, 16), (64, 16)])
def test_so_much_is_cached_of_all_stores_together(stores: int, together: int) -> None:
    assert cache_bytes(stores) == together * MB


def test_stores_that_are_read_through_cache_no_more_than_the_bound(
    tmp_path: Path, shares: StoreShares
) -> None:
    rows = {b"%09d" % number: ROW for number in range(6_000)}
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(RocksMap(tmp_path / f"{n}"))) for n in range(14)]
        for store in stores:
            store.write(rows)
            # What lies in the memory table is read from there.
            store.checkpoint(store._path.with_name(f"{store._path.name}.links"))
        for store in stores:
            assert sum(1 for _ in store.scan(b"0", b"9")) == len(rows)
        # Of 6 MB each: what a cache for each would hold is more than the bound.
        assert CACHES_BYTES * 0.8 < shares.cache.get_usage() <= CACHES_BYTES
        told = [found.memory_bytes for store in stores if (found := store.figures())]
        assert CACHES_BYTES * 0.8 < sum(told) < CACHES_BYTES * 1.5
        for store in stores[1:]:
            store.close()
        assert shares.cache.get_usage() <= 8 * MB


def test_the_cache_has_room_for_all_whichever_thread_was_quicker() -> None:
    told, slow, shares = list[int](), threading.Event(), StoreShares()

    class Told:
        def set_capacity(self, size: int) -> None:
            if not slow.is_set():
                slow.set()
                time.sleep(0.1)
            told.append(size)

    shares.cache = Told()  # type: ignore[misc,assignment]
    first, second = Told(), Told()
    thread = threading.Thread(target=shares.opened, args=(first,))
    thread.start()
    assert slow.wait(30)
    shares.opened(second)
    thread.join()
    assert told == [cache_bytes(1), cache_bytes(2)]


def test_stores_that_are_going_to_be_open_count_from_the_begin(
    tmp_path: Path, shares: StoreShares, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the first of 64 would be given another size three times, and write its options anew."""
    sizes: list[int] = []
    monkeypatch.setattr(RocksMap, "_resize", lambda _store, size: sizes.append(size))
    shares.expect(64)
    assert shares.each == LEAST_BYTES
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(RocksMap(tmp_path / f"{n}"))) for n in range(10)]
        for store in stores:
            store.write({b"a": ROW})
    assert not sizes
    shares.expect(0)
    assert shares.each == MOST_BYTES
