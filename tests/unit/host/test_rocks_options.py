"""Memory tables of all stores together have a bound, and each of them follows it."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from belfry.host.rocks import RocksMap
from belfry.host.rocks_options import (
    LEAST_BYTES,
    MEMTABLES_BYTES,
    MOST_BYTES,
    SHARES,
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


def files(path: Path) -> int:
    return len(list(path.glob("*.sst")))


def test_a_store_that_is_open_has_a_smaller_table_while_there_are_others(tmp_path: Path) -> None:
    before, many = SHARES.each, MEMTABLES_BYTES // LEAST_BYTES
    with ExitStack() as stack:
        store = stack.enter_context(closing(RocksMap(tmp_path / "first")))
        keys = (b"%09d" % number for number in range(10_000))
        for _ in range(5_000):
            store.write({next(keys): ROW})
        assert not files(tmp_path / "first")
        others = [stack.enter_context(closing(RocksMap(tmp_path / f"{n}"))) for n in range(many)]
        assert SHARES.each == LEAST_BYTES
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
    assert SHARES.each == before == MOST_BYTES
