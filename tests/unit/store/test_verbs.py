"""Verbs of a step: what each leaves to be asked for, and counts, is what the long way leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from belfry.store.buckets import differing
from belfry.store.layout import keys
from belfry.store.layout.locations import (
    BEHIND_LOCK,
    IN_BACKLOG,
    IN_CATCH_UP,
    IN_PAUSED,
    IN_TIMELINE,
    Location,
    encode_location,
)
from belfry.store.layout.manifests import Manifest, StoredState, encode_manifest
from belfry.store.layout.pending import decode_pending, encode_pending
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from tests.unit.store.test_records import ROW

T0 = 1_800_000_000_000
STATE = StoredState(17, T0 + 5, Manifest(3, 2, 41, T0, 1, 0, bytes(16)))
PLACES = [
    Location(IN_TIMELINE, T0, 1),
    Location(IN_BACKLOG, T0, 1),
    Location(IN_BACKLOG, T0, 1, b"\3"),
    Location(IN_CATCH_UP, T0, 1),
    Location(IN_CATCH_UP, T0, 1, b"\3"),
    Location(IN_PAUSED, T0, 1),
    Location(BEHIND_LOCK, T0, 1, b"gate"),
]


def record(name: bytes, due_ms: int = T0, seq: int = 1) -> bytes:
    row = ROW._replace(tenant=b"t", schedule_id=name, due_ms=due_ms, seq=seq)
    return encode_pending(row)


def content(store: ScheduleStore) -> list[tuple[bytes, bytes]]:
    return list(store._rows.scan(b"", b"\xff"))


def sizes(store: ScheduleStore) -> list[dict[object, int]]:
    queues = (IN_BACKLOG, IN_CATCH_UP)
    told = [{**store.queue_sizes(queue), **store.level_sizes(queue)} for queue in queues]
    return [dict(each) for each in told]


def test_short_ways_into_the_backlog_and_the_timeline_are_the_long_ones() -> None:
    long_way, short = (ScheduleStore(MemoryMap()) for _ in range(2))
    for number in range(3):
        name, kept = b"t/%d" % number, record(b"%d" % number)
        long_way.keep(name, kept, Location(IN_BACKLOG, T0, number))
        short.keep_in_backlog(name, b"t", kept, (T0, number))
    for number in range(3, 5):
        name, kept = b"t/%d" % number, record(b"%d" % number)
        long_way.keep(name, kept, Location(IN_TIMELINE, T0, number))
        short.keep_in_timeline(name, kept, T0, number)
    assert short.changes == long_way.changes
    assert short.unsaid == long_way.unsaid
    assert short.pending_change == long_way.pending_change == 5
    for store in (long_way, short):
        store.commit(STATE)
    assert content(short) == content(long_way)
    assert sizes(short) == [{b"t": 3}, {}]


@pytest.mark.parametrize("place", PLACES)
def test_what_is_removed_is_counted_nowhere_any_more(place: Location) -> None:
    store = ScheduleStore(MemoryMap())
    for name in (b"a", b"b"):
        store.keep(b"t/" + name, record(name), place._replace(seq=name[0]))
    store.commit(STATE)
    before = sizes(store)
    store.remove(b"t/a", encode_location(place._replace(seq=ord("a"))))
    assert (store.named(b"t/a"), store.changes) == (None, {b"t/a": None})
    assert store.pending_change == -1
    store.commit(STATE)
    assert sizes(store) == [{name: size - 1 for name, size in each.items()} for each in before]
    assert list(store.all_pending()) == [record(b"b")]
    assert store.waiting_of(b"t") == 1
    store.remove(b"t/b", encode_location(place._replace(seq=ord("b"))))
    store.commit(STATE)
    assert sizes(store) == [{}, {}]
    assert list(differing(store._rows)) == []


@pytest.mark.parametrize("place", PLACES)
def test_another_record_in_the_same_place_moves_nothing(place: Location) -> None:
    store = ScheduleStore(MemoryMap())
    store.keep(b"t/a", record(b"a"), place)
    store.commit(STATE)
    before = sizes(store)
    row = store.named(b"t/a")
    assert row is not None
    other = encode_pending(decode_pending(record(b"a"))._replace(extra=b""))
    store.replace(b"t/a", row, other)
    assert store.changes == {b"t/a": other}
    assert (store.pending_change, store.named(b"t/a")) == (0, row)
    assert store.pending_at(b"t/a", row) == other
    assert dict(store.grown_bytes()) == {b"t": -len(b"more")}
    store.commit(STATE)
    assert sizes(store) == before
    assert list(store.all_pending()) == [other]
    assert store.waiting_of(b"t") == 1


@pytest.mark.parametrize("place", PLACES[1:5])
def test_what_is_taken_leaves_its_queue(place: Location) -> None:
    store = ScheduleStore(MemoryMap())
    for seq in range(5):
        store.keep(b"t/%d" % seq, record(b"%d" % seq), place._replace(seq=seq))
    store.commit(STATE)
    rows = list(store.queue(place.where, b"t", place.within))
    store.take(rows[1:3])
    assert store.pending_change == -2
    store.end(b"t/1", b"\1\2gone", 9)
    store.end(b"t/2", b"\1\2gone", 0)
    assert store.changes == {b"t/1": b"\1\2gone", b"t/2": None}
    assert dict(store.ends.kept) == {9: [b"t/1"]}
    store.commit(STATE)
    assert list(store.queue(place.where, b"t", place.within)) == [rows[0], *rows[3:]]
    assert [size for each in sizes(store) for size in each.values()] == [3]
    store.take([])
    assert store.pending_change == 0


def test_what_is_taken_apart_leaves_its_neighbours_and_what_took_its_place() -> None:
    store = ScheduleStore(MemoryMap())
    for seq in range(4):
        store.keep(b"t/%d" % seq, record(b"%d" % seq, seq=seq), Location(IN_TIMELINE, T0, seq))
    store.commit(STATE)
    rows = list(store.timeline((T0, 0), T0))
    again = record(b"2", seq=2)
    store.rewrite(b"t/2", again)
    store.move(b"t/2", again, Location(IN_TIMELINE, T0, 2))
    store.take_apart([rows[0], rows[2]])
    store.end(b"t/0", b"", 0)
    assert store.pending_change == -1
    assert store.changes == {b"t/2": again, b"t/0": None}
    store.commit(STATE)
    assert list(store.timeline((T0, 0), T0)) == [rows[1], (rows[2][0], again), rows[3]]
    assert list(differing(store._rows)) == []
    store.take_apart([])
    assert store.pending_change == 0


def test_a_lock_tells_what_it_holds_without_what_this_step_has_taken() -> None:
    store = ScheduleStore(MemoryMap())
    for seq, lock in enumerate((b"ga", b"ga", b"gb", b"ga")):
        store.keep(b"t/%d" % seq, record(b"%d" % seq), Location(BEHIND_LOCK, T0, seq, lock))
    store.commit(STATE)
    held = list(store.locked(b"t", b"ga"))
    assert [keys.sort_key(key)[1] for key, _ in held] == [0, 1, 3]
    assert [row for _, row in held] == [record(b"0"), record(b"1"), record(b"3")]
    store.take(held[1:2])
    assert list(store.locked(b"t", b"ga")) == [held[0], held[2]]
    assert [keys.sort_key(key)[1] for key, _ in store.locked(b"t", b"gb")] == [2]
    assert list(store.locked(b"u", b"ga")) == []


class Asked(MemoryMap):
    """A map that notes how it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def get(self, key: bytes) -> bytes | None:
        """One row."""
        self.asked.append("one")
        return super().get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Several rows."""
        self.asked.append("many")
        return super().get_many(keys)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """A range of rows."""
        self.asked.append("scan")
        return super().scan(start, end)


def test_names_that_were_fetched_are_not_looked_up_again_until_the_step_ends() -> None:
    rows = Asked()
    store = ScheduleStore(rows)
    store.keep(b"t/a", record(b"a"), PLACES[0])
    store.commit(STATE)
    row = encode_location(PLACES[0])
    rows.asked.clear()
    assert dict(store.prefetch([b"t/a", b"t/none"])) == {b"t/a": row, b"t/none": None}
    assert [store.named(b"t/a"), store.named(b"t/none")] == [row, None]
    assert list(store.committed([b"t/none", b"t/a"])) == [None, row]
    assert rows.asked == ["many", "many"]
    store.discard()
    assert store.named(b"t/a") == row
    assert rows.asked == ["many", "many", "one"]


def test_the_first_end_of_a_wait_is_looked_up_once() -> None:
    rows = Asked()
    store = ScheduleStore(rows)
    assert [store.first_until_ms(), store.first_until_ms()] == [None, None]
    assert rows.asked == ["scan"]
    store.keep(b"t/a", record(b"a"), PLACES[0])
    store.commit(STATE)
    rows.asked.clear()
    assert store.first_until_ms() is None
    assert not rows.asked


def test_a_row_that_is_restated_is_written_as_it_is() -> None:
    store = ScheduleStore(MemoryMap())
    store.keep(b"t/a", record(b"a"), PLACES[1])
    store.note(b"t/b", b"\1\2marker", 7)
    assert dict(store.ends.kept) == {7: [b"t/b"]}
    store.commit(STATE)
    for name in (b"t/a", b"t/b", b"t/none"):
        store.restate(name)
    assert store.changes == {b"t/a": record(b"a"), b"t/b": b"\1\2marker", b"t/none": None}
    assert store.pending_change == 0


def test_a_sealed_step_ends_with_its_manifest() -> None:
    store = ScheduleStore(MemoryMap())
    store.note(b"t/b", None)
    store.seal(STATE.manifest)
    assert list(store.changes) == [b"t/b", keys.manifest_key(3)]
    assert store.changes[keys.manifest_key(3)] == encode_manifest(STATE.manifest)
