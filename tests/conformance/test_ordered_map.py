"""Every implementation of the ordered-map port behaves the same: in memory, and on RocksDB."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from time import monotonic, sleep

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belfry.host.rocks import RocksMap, wipe
from belfry.store.ordered_map import MemoryMap, OrderedMap, Parted, Range, TwoWayMap
from tests.conformance import crash_writer

# Belfry's keys begin with a letter; RocksDB's adapter keeps the last byte for itself.
END = b"\xff"
KEYS = st.binary(min_size=1, max_size=3).filter(lambda key: key < END)
BATCHES = st.tuples(
    st.dictionaries(KEYS, st.none() | st.binary(max_size=4), max_size=8),
    st.lists(st.tuples(KEYS, KEYS).map(lambda pair: (min(pair), max(pair))), max_size=3),
)


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Callable[[], RocksMap]]:
    """Opens the same RocksDB store; what is left open is closed at the end."""
    opened: list[RocksMap] = []

    def open_it() -> RocksMap:
        opened.append(RocksMap(tmp_path / "store"))
        return opened[-1]

    yield open_it
    for rows in opened:
        with suppress(Exception):  # closed by the test already
            rows.close()


@pytest.fixture(params=["memory", "rocksdb"])
def rows(request: pytest.FixtureRequest, on_disk: Callable[[], RocksMap]) -> TwoWayMap:
    """One implementation after the other, empty."""
    return MemoryMap() if request.param == "memory" else on_disk()


def everything(rows: OrderedMap) -> list[tuple[bytes, bytes]]:
    return list(rows.scan(b"", END))


def test_an_empty_map_holds_nothing(rows: OrderedMap) -> None:
    assert rows.get(b"a") is None
    assert list(rows.get_many([b"a", b"b"])) == [None, None]
    assert everything(rows) == []


@pytest.mark.parametrize(("start", "end"), [(b"a", b"c"), (b"", END), (b"b", b"b"), (b"c", b"a")])
def test_a_scan_from_the_end_is_the_other_one_turned_round(
    rows: TwoWayMap, start: bytes, end: bytes
) -> None:
    assert list(rows.scan_back(start, end)) == []
    rows.write({each: each for each in (b"a", b"aa", b"b", b"bz", b"c", b"d")})
    found = rows.scan_back(start, end)
    assert list(found) == list(rows.scan(start, end))[::-1]


def test_a_scan_from_the_end_sees_the_map_as_it_was(rows: TwoWayMap) -> None:
    rows.write({bytes((number,)): b"" for number in range(1, 100)})
    found = rows.scan_back(b"\x05", b"\x50")
    rows.write({b"\x06": None, b"\x07": b"new"})
    assert [key[0] for key, _ in found] == list(range(0x4F, 4, -1))


def test_get_gives_what_was_put(rows: OrderedMap) -> None:
    rows.write({b"a": b"1", b"b": b"", b"\0": b"\xff"})
    assert (rows.get(b"a"), rows.get(b"b"), rows.get(b"\0")) == (b"1", b"", b"\xff")
    rows.write({b"a": b"2"})
    assert rows.get(b"a") == b"2"


def test_get_many_keeps_the_order_and_repeats_of_its_keys(rows: OrderedMap) -> None:
    rows.write({b"a": b"1", b"c": b"3"})
    assert list(rows.get_many([b"c", b"b", b"a", b"c"])) == [b"3", None, b"1", b"3"]
    assert list(rows.get_many([])) == []


def test_writes_in_parts_lie_behind_their_prefixes(rows: OrderedMap) -> None:
    rows.write(dict.fromkeys([b"kb", b"kz", b"t1", b"u"], b"old"))
    parts = Parted((b"k", {b"z": None, b"a": b"1", b"": b"2"}), (b"", {b"t2": b"3", b"t1": None}))
    rows.write(parts, [(b"kb", b"kc")])
    assert list(rows.scan(b"", END)) == [(b"k", b"2"), (b"ka", b"1"), (b"t2", b"3"), (b"u", b"old")]
    assert dict(parts) == {b"kz": None, b"ka": b"1", b"k": b"2", b"t2": b"3", b"t1": None}
    assert (len(parts), b"kz" in parts, b"z" in parts, b"kt2" in parts) == (5, True, False, False)


def test_none_deletes_and_deleting_nothing_is_no_error(rows: OrderedMap) -> None:
    rows.write({b"a": b"1"})
    rows.write({b"a": None, b"b": None})
    assert rows.get(b"a") is None
    assert everything(rows) == []


def test_keys_are_in_byte_order(rows: OrderedMap) -> None:
    written = [b"b", b"\xfe\xff", b"a", b"aa", b"\0", b"a\0", b"\x80"]
    rows.write(dict.fromkeys(written, b"1"))
    assert [key for key, _ in everything(rows)] == sorted(written)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (b"b", b"d", [b"b", b"c"]),  # the start belongs to it, the end does not
        (b"a\0", b"c\0", [b"b", b"c"]),
        (b"", b"b", [b"a"]),
        (b"e", b"z", []),
        (b"c", b"c", []),
        (b"d", b"b", []),
    ],
)
def test_bounds_of_a_scan(
    rows: OrderedMap, start: bytes, end: bytes, expected: list[bytes]
) -> None:
    rows.write(dict.fromkeys([b"a", b"b", b"c", b"d"], b"1"))
    assert [key for key, _ in rows.scan(start, end)] == expected


@pytest.mark.parametrize("start", [b"d", b"z", END, END * 9])
def test_a_scan_from_behind_its_end_finds_nothing_and_harms_nothing(
    on_disk: Callable[[], RocksMap], start: bytes
) -> None:
    for rows in (MemoryMap(), on_disk()):
        rows.write({b"a": b"1", b"e": b"2"})
        assert list(rows.scan(start, b"d")) == []
    assert isinstance(rows, RocksMap)
    rows.close()
    assert everything(on_disk()) == [(b"a", b"1"), (b"e", b"2")]


def test_ranges_are_cleared_before_anything_is_put(rows: OrderedMap) -> None:
    rows.write(dict.fromkeys([b"a", b"b", b"c", b"d"], b"old"))
    rows.write({b"b": b"new"}, [(b"a", b"d")])
    assert everything(rows) == [(b"b", b"new"), (b"d", b"old")]


@pytest.mark.parametrize(
    ("cleared", "left"),
    [
        ([], [b"a", b"b", b"c"]),
        ([(b"b", b"b")], [b"a", b"b", b"c"]),
        ([(b"b", b"b\0")], [b"a", b"c"]),
        ([(b"a", b"b"), (b"c", b"d")], [b"b"]),
        ([(b"a", b"c"), (b"b", b"d")], []),
    ],
)
def test_what_a_range_clears(rows: OrderedMap, cleared: list[Range], left: list[bytes]) -> None:
    rows.write(dict.fromkeys([b"a", b"b", b"c"], b"1"))
    rows.write({}, cleared)
    assert [key for key, _ in everything(rows)] == left


def test_a_scan_that_has_begun_does_not_see_later_writes(rows: OrderedMap) -> None:
    rows.write(dict.fromkeys([b"a", b"b", b"c"], b"1"))
    scan = rows.scan(b"a", b"z")
    assert next(scan) == (b"a", b"1")
    rows.write({b"b": None, b"bb": b"2", b"c": b"2"})
    assert list(scan) == [(b"b", b"1"), (b"c", b"1")]


def test_a_long_scan_that_has_begun_does_not_see_later_writes(rows: OrderedMap) -> None:
    written = {b"%03d" % number: b"1" for number in range(100)}
    rows.write(written)
    scan, other = rows.scan(b"0", b"9"), rows.scan(b"0", b"9")
    begun = next(scan)
    rows.write({b"050": None, b"0505": b"2", b"099": b"2"}, [(b"010", b"020")])
    rows.write({b"098": None})
    assert [begun, *scan] == list(other) == sorted(written.items())
    assert len(everything(rows)) == 100 - 10 - 2 + 1


def test_a_scan_sees_the_map_as_it_was_when_asked_for(rows: OrderedMap) -> None:
    rows.write({b"a": b"1"})
    scan = rows.scan(b"a", b"z")
    rows.write({b"b": b"2"}, [(b"a", b"b")])
    assert list(scan) == [(b"a", b"1")]


def test_both_give_the_same_answers(on_disk: Callable[[], RocksMap]) -> None:
    disk = on_disk()

    @settings(max_examples=60, deadline=None)
    @given(st.lists(BATCHES, min_size=1, max_size=6))
    def hold(batches: list[tuple[dict[bytes, bytes | None], list[Range]]]) -> None:
        memory = MemoryMap()
        disk.write({}, [(b"\0", END)])
        for writes, cleared in batches:
            memory.write(writes, cleared)
            disk.write(writes, cleared)
            assert everything(memory) == everything(disk)

    hold()


@pytest.mark.parametrize("flush", [True, False])
def test_closing_keeps_everything(on_disk: Callable[[], RocksMap], *, flush: bool) -> None:
    rows = on_disk()
    rows.write(dict.fromkeys([b"a", b"b", b"c"], b"1"))
    if flush:
        rows.flush()
    rows.write({b"d": b"2"}, [(b"a", b"b")])
    rows.close()
    assert everything(on_disk()) == [(b"b", b"1"), (b"c", b"1"), (b"d", b"2")]


def test_a_store_that_exists_has_all_options_of_a_new_one(
    on_disk: Callable[[], RocksMap], tmp_path: Path
) -> None:
    options = []
    for _ in range(2):
        rows = on_disk()
        newest = max((tmp_path / "store").glob("OPTIONS-*"))
        options.append(newest.read_text().partition("[DBOptions]")[2])
        rows.close()
    assert "filter_policy=bloomfilter" in options[0]
    assert options[1] == options[0]


def test_wiping_leaves_nothing(tmp_path: Path) -> None:
    rows = RocksMap(tmp_path / "store")
    rows.write({b"a": b"1"})
    rows.close()
    wipe(tmp_path / "store")
    wipe(tmp_path / "store")
    rows = RocksMap(tmp_path / "store")
    assert everything(rows) == []
    rows.close()


def test_what_kill_9_leaves_is_a_prefix_of_the_batches(on_disk: Callable[[], RocksMap]) -> None:
    folder = on_disk()
    folder.close()
    path = folder._path
    writer = subprocess.Popen(
        [sys.executable, crash_writer.__file__, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for _ in range(20):
        next(writer.stdout)
    writer.kill()
    writer.communicate()

    rows = dict(everything(on_disk()))
    last = int(rows.pop(b"last"))
    # Flushes run on their own, so the last of them may be missing, but not all.
    assert last > 0
    names = {b"%08d" % number for number in range(1, last + 1)}
    assert rows.keys() == names | {b"twin-" + name for name in names}


def refuses(rows: RocksMap) -> bool:
    try:
        rows.write({b"not on disk": b"2"})
        rows.flush()
    except Exception as error:  # noqa: BLE001  # RocksDB's have no type of their own
        return "File too large" in str(error)
    return False


def test_a_store_that_its_disk_refuses_is_closed_as_it_is_there(
    on_disk: Callable[[], RocksMap],
) -> None:
    rows = on_disk()
    rows.write({b"on disk": b"1"})
    rows.close()
    rows = on_disk()
    limits = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (1, limits[1]))
    try:
        until_s = monotonic() + 20
        while not refuses(rows) and monotonic() < until_s:
            sleep(0.05)  # RocksDB meets it in the background.
    finally:
        setrlimit(RLIMIT_FSIZE, limits)
    assert rows.stuck
    rows.close()
    rows = on_disk()
    assert (rows.stuck, rows.get(b"on disk"), rows.get(b"not on disk")) == (False, b"1", None)
    rows.write({b"again": b"3"})
    rows.flush()
