"""Minute buckets follow the verbs that change schedules, and are told without a look at these."""

from __future__ import annotations

from collections import Counter

import pytest

from belfry.store.buckets import buckets, changed_buckets, differing
from belfry.store.committed import Committed
from belfry.store.layout import keys
from belfry.store.layout.buckets import (
    NEVER,
    Bucket,
    bucket_key,
    bucket_of,
    bytes_by_tenant,
    encode_bucket,
    left_by_names,
    left_from,
)
from belfry.store.layout.locations import IN_BACKLOG, IN_PAUSED, IN_TIMELINE, Location
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.layout.pending import encode_pending
from belfry.store.layout.pending_bytes import PAUSED, with_flags
from belfry.store.layout.records import encode_size
from belfry.store.ordered_map import Damaged, MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import RANGE_FROM, ScheduleStore
from tests.unit.store.test_records import ROW

MINUTE_MS = keys.MINUTE_MS
T0 = 1_800_000_000_000
MANIFEST = Manifest(1, 1, 0, T0 - 1, 4, 0, bytes(16))
STATE = StoredState(17, T0, MANIFEST)


def record(tenant: bytes, name: bytes, due_ms: int, seq: int) -> bytes:
    row = ROW._replace(tenant=tenant, schedule_id=name, due_ms=due_ms, seq=seq)
    return encode_pending(row)


class Shelf:
    """A store with tenant `t` in two minutes, and tenant `t.x` beside it."""

    def __init__(self) -> None:
        self.rows = MemoryMap()
        self.store = ScheduleStore(self.rows)
        self.keep(b"t", b"a", T0 + 9)
        self.keep(b"t", b"b", T0 + 5)
        self.keep(b"t", b"c", T0 + MINUTE_MS)
        self.keep(b"t.x", b"a", T0 + 7)
        self.store.commit(STATE)

    def keep(self, tenant: bytes, name: bytes, due_ms: int) -> None:
        at = due_ms - T0
        kept = record(tenant, name, due_ms, at)
        self.store.keep(tenant + b"/" + name, kept, Location(IN_TIMELINE, due_ms, at))

    def remove(self, name: bytes) -> None:
        row = self.store.named(name)
        assert row is not None
        self.store.remove(name, row)

    def shown(
        self, tenant: bytes = b"t", from_ms: int = 0, until_ms: int | None = None
    ) -> list[Bucket]:
        return buckets(self.rows, tenant, from_ms, until_ms, limit=100)[0]

    def waiting(self) -> list[int]:
        return [each.waiting for each in self.shown()]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_a_bucket_is_a_tenant_and_a_minute(shelf: Shelf) -> None:
    minute = T0 // MINUTE_MS
    assert shelf.shown() == [
        Bucket(b"t", minute, 2, T0 + 5, T0 + 9),
        Bucket(b"t", minute + 1, 1, T0 + MINUTE_MS, T0 + MINUTE_MS),
    ]
    assert shelf.shown(b"t.x") == [Bucket(b"t.x", minute, 1, T0 + 7, T0 + 7)]
    assert shelf.shown()[0].minute_ms == T0


def test_what_is_removed_leaves_it_and_an_empty_one_is_gone(shelf: Shelf) -> None:
    shelf.remove(b"t/a")
    shelf.remove(b"t/c")
    shelf.store.commit(STATE)
    assert shelf.shown() == [Bucket(b"t", T0 // MINUTE_MS, 1, T0 + 5, T0 + 9)]
    assert Committed(shelf.rows).waiting_of(b"t") == 1


def test_what_is_discarded_changes_none(shelf: Shelf) -> None:
    shelf.remove(b"t/a")
    shelf.keep(b"t", b"d", T0 + 1)
    shelf.store.discard()
    shelf.store.commit(STATE)
    assert shelf.waiting() == [2, 1]


def test_what_comes_and_goes_in_one_step_was_in_none(shelf: Shelf) -> None:
    shelf.keep(b"t", b"d", T0 + 1)
    shelf.remove(b"t/d")
    shelf.store.commit(STATE)
    assert shelf.shown()[0] == Bucket(b"t", T0 // MINUTE_MS, 2, T0 + 5, T0 + 9)


def test_what_moves_to_a_queue_stays_in_its_bucket(shelf: Shelf) -> None:
    rows = list(shelf.store.timeline(keys.FIRST_SORT_KEY, T0 + 5))
    shelf.store.take(rows)
    shelf.store.move(b"t/b", rows[0][1], Location(IN_BACKLOG, T0 + 5, 5))
    shelf.store.commit(STATE)
    assert shelf.waiting() == [2, 1]
    assert list(differing(shelf.rows)) == []


def test_what_is_paused_waits_in_no_minute(shelf: Shelf) -> None:
    row = shelf.store.named(b"t/a")
    assert row is not None
    kept = with_flags(shelf.store.pending_at(b"t/a", row), PAUSED)
    shelf.remove(b"t/a")
    shelf.store.keep(b"t/a", kept, Location(IN_PAUSED, T0 + 9, 9))
    shelf.store.commit(STATE)
    assert shelf.waiting() == [1, 1]
    assert Committed(shelf.rows).waiting_of(b"t") == 3
    shelf.remove(b"t/a")
    shelf.store.commit(STATE)
    assert Committed(shelf.rows).waiting_of(b"t") == 2
    assert list(differing(shelf.rows)) == []


def test_many_that_are_taken_as_a_range_are_counted(shelf: Shelf) -> None:
    for number in range(RANGE_FROM):
        shelf.keep(b"many", b"s%d" % number, T0 + 10_000 + number)
    shelf.store.commit(STATE)
    rows = list(shelf.store.timeline((T0 + 10_000, 0), T0 + 20_000))
    assert len(rows) == RANGE_FROM
    shelf.store.take(rows)
    shelf.store.commit(STATE)
    assert shelf.shown(b"many") == []
    assert Committed(shelf.rows).waiting_of(b"many") == 0


def test_a_range_gives_the_minutes_that_it_meets(shelf: Shelf) -> None:
    assert [each.waiting for each in shelf.shown(from_ms=T0 + 6, until_ms=T0 + 7)] == [2]
    assert shelf.shown(from_ms=T0 + 10, until_ms=T0 + MINUTE_MS) == []
    assert [each.waiting for each in shelf.shown(from_ms=T0 + 9, until_ms=T0 + MINUTE_MS)] == [2]
    assert [each.waiting for each in shelf.shown(until_ms=T0 + MINUTE_MS + 1)] == [2, 1]
    assert [each.waiting for each in shelf.shown(until_ms=T0 + MINUTE_MS)] == [2]
    assert shelf.shown(from_ms=0, until_ms=T0 + 5) == []
    assert shelf.shown(from_ms=10, until_ms=5) == []


def test_pages_give_each_once(shelf: Shelf) -> None:
    found, after = buckets(shelf.rows, b"t", 0, None, limit=1)
    assert [each.waiting for each in found] == [2]
    rest, end = buckets(shelf.rows, b"t", 0, None, after=after, limit=5)
    assert ([each.waiting for each in rest], end) == ([1], None)


def test_a_replay_derives_the_same(shelf: Shelf) -> None:
    changes: list[tuple[bytes, bytes | None]] = [
        (b"t/gone", record(b"t", b"gone", T0 + 3, 3)),
        (b"t/b", record(b"t", b"b", T0 + 5, 5)),
        (b"t/gone", None),
        (b"t/a", record(b"t", b"a", T0 + 9, 9)),
        (b"t/c", record(b"t", b"c", T0 + MINUTE_MS, MINUTE_MS)),
        (b"t.x/a", record(b"t.x", b"a", T0 + 7, 7)),
    ]
    rows = MemoryMap()
    store = ScheduleStore(rows)
    store.seal(MANIFEST)
    changes += store.changes.items()
    store.discard()
    replay = Replay(store)
    replay.apply(changes, range(len(changes)), T0)
    replay.finish(T0)
    assert buckets(rows, b"t", 0, None, limit=9) == buckets(shelf.rows, b"t", 0, None, limit=9)
    assert list(differing(rows)) == []


def test_a_store_that_an_older_release_wrote_on_has_its_buckets_derived_anew(shelf: Shelf) -> None:
    before = dict(shelf.rows.scan(b"", b"\xff"))
    older = {key: None if key[:1] == b"n" else row for key, row in before.items()}
    shelf.rows.write({**older, keys.META_BUCKETS: (3).to_bytes(8, "big"), b"mtenantt": None})
    assert shelf.shown() == []
    Replay(ScheduleStore(shelf.rows)).finish(T0)
    assert dict(shelf.rows.scan(b"n", b"o")) == {k: v for k, v in before.items() if k[:1] == b"n"}
    assert Committed(shelf.rows).waiting_of(b"t") == 3


def test_each_fault_of_a_bucket_is_told_in_words(shelf: Shelf) -> None:
    assert list(differing(shelf.rows)) == []
    at = b"t" + (T0 // MINUTE_MS).to_bytes(4, "big")
    other = b"x" + (T0 // MINUTE_MS).to_bytes(4, "big")
    alone = b"t.x" + (T0 // MINUTE_MS).to_bytes(4, "big")
    shelf.rows.write(
        {
            bucket_key(at): None,
            bucket_key(alone): None,
            bucket_key(other): encode_bucket(3, T0, T0),
            keys.META_TENANT + b"t": encode_size(4),
        }
    )
    assert list(differing(shelf.rows)) == [
        f"bucket {at!r} says 0, and 2 wait",
        f"bucket {alone!r} says 0, and 1 wait",
        f"bucket {other!r} says 3, and 0 wait",
        "of b't' 4 are told, and 3 wait",
    ]


def test_fewer_than_none_is_damage_that_names_the_bucket_and_the_tenant(shelf: Shelf) -> None:
    at = b"t" + (T0 // MINUTE_MS).to_bytes(4, "big")
    with pytest.raises(Damaged) as told:
        changed_buckets(shelf.rows, {}, {at: 3})
    assert str(told.value) == f"-1 schedules wait in the bucket {at!r}"
    shelf.rows.write({keys.META_TENANT + b"t": encode_size(1)})
    with pytest.raises(Damaged) as told:
        changed_buckets(shelf.rows, {}, {at: 2})
    assert str(told.value) == "-1 schedules of b't' wait"
    shelf.rows.write({bucket_key(at): b"short"})
    with pytest.raises(Damaged) as told:
        changed_buckets(shelf.rows, {}, {at: 1})
    assert str(told.value).startswith(f"the row of the bucket {at!r} cannot be read: unpack")


def test_what_was_in_the_timeline_was_in_the_buckets_of_its_keys() -> None:
    """The quick way for one minute, and the long one, count as a look at each record does."""
    places = [(b"t", T0), (b"t", T0 + 9), (b"t.x", T0 + 7), (b"t", T0 + MINUTE_MS)]
    rows = [
        (keys.timeline_key(due_ms, seq), record(tenant, b"a", due_ms, seq))
        for seq, (tenant, due_ms) in enumerate(places)
    ]
    held = record(b"t", b"b", T0 + 5, 9)
    paused = with_flags(record(b"t", b"c", T0 + 5, 9), PAUSED)
    more = [(keys.queue_key(b"b", b"t", T0 + 5, 9), held), (keys.paused_key(b"t/c"), paused)]
    for some in (rows[:3], rows, more, [*more, *rows], rows[3:], more[:1]):
        assert left_from(some) == Counter(bucket_of(each) for _, each in some)
    assert bucket_of(paused) == b"t" + NEVER
    names = [b"%b/a" % tenant for tenant, _ in places]
    for end in (3, 4):
        left = [key for key, _ in rows[:end]]
        assert left_by_names(names[:end], left) == left_from(rows[:end])
    assert left_by_names([], []) == Counter()


def test_bytes_are_counted_by_tenant(shelf: Shelf) -> None:
    some = [record(b"t", b"a", T0, 1), record(b"t.x", b"a", T0, 2), record(b"t", b"bb", T0, 3)]
    assert bytes_by_tenant(some) == {b"t": len(some[0]) + len(some[2]), b"t.x": len(some[1])}
    shelf.keep(b"t", b"new", T0)
    assert dict(shelf.store.grown_bytes()) == {b"t": len(record(b"t", b"new", T0, 0))}
    shelf.remove(b"t/a")
    gone = len(record(b"t", b"a", T0 + 9, 9))
    assert dict(shelf.store.grown_bytes()) == {b"t": len(record(b"t", b"new", T0, 0)) - gone}


def test_a_bucket_that_fires_empty_is_told_and_one_that_is_removed_empty_is_not(
    shelf: Shelf,
) -> None:
    minute = T0 // MINUTE_MS
    rows = list(shelf.store.timeline((T0 + MINUTE_MS, 0), T0 + MINUTE_MS))
    shelf.store.take(rows)
    shelf.store.end(b"t/c", b"", 0)
    shelf.keep(b"u", b"comes", T0)
    shelf.remove(b"t/a")
    shelf.store.commit(STATE)
    last = Bucket(b"t", minute + 1, 0, T0 + MINUTE_MS, T0 + MINUTE_MS)
    assert list(shelf.store.emptied) == [last]
    assert dict(shelf.store.waiting_changed) == {b"t": 1, b"u": 1}
    shelf.remove(b"t/b")
    shelf.keep(b"u", b"other", T0)
    shelf.remove(b"u/other")
    shelf.store.commit(STATE)
    assert list(shelf.store.emptied) == []
    assert dict(shelf.store.waiting_changed) == {b"t": 0}
