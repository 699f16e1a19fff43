"""The store: an overlay over committed rows that goes or stays as a whole."""

from __future__ import annotations

import pytest

from belfry.store.layout import keys
from belfry.store.layout.locations import IN_BACKLOG, IN_TIMELINE, Location
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.layout.pending import encode_pending
from belfry.store.ordered_map import Damaged, MemoryMap
from belfry.store.schedules import RANGE_FROM, ScheduleStore
from tests.unit.store.test_records import ROW

T0 = 1_800_000_000_000
FIRST = keys.FIRST_SORT_KEY
MANIFEST = Manifest(3, 2, 41, T0, 1, 0, bytes(16))
STATE = StoredState(17, T0 + 5, MANIFEST)


def record(due_ms: int, seq: int) -> bytes:
    return encode_pending(ROW._replace(due_ms=due_ms, seq=seq))


def committed(*places: tuple[int, int, int]) -> ScheduleStore:
    """A store where schedules ``demo/0``, ``demo/1`` … lie at these places."""
    store = ScheduleStore(MemoryMap())
    for number, place in enumerate(places):
        store.keep(b"demo/%d" % number, record(*place[1:]), Location(*place))
    store.commit(STATE)
    return store


def test_an_empty_store_has_no_state() -> None:
    store = ScheduleStore(MemoryMap())
    assert store.state() is None
    assert store.first_due_ms(FIRST) is None
    assert store.queue_sizes(IN_BACKLOG) == {}


def test_a_commit_keeps_overlay_and_state() -> None:
    store = committed((IN_TIMELINE, T0 + 5, 1))
    again = ScheduleStore(store._rows)
    assert again.state() == STATE
    place = again.named(b"demo/0")
    assert place is not None
    assert again.pending_at(b"demo/0", place) == record(T0 + 5, 1)
    assert again.first_due_ms(FIRST) == T0 + 5
    assert store.pending_change == 0


def test_the_overlay_is_seen_by_name_and_not_by_time() -> None:
    store = committed()
    store.keep(b"demo/a", record(T0, 1), Location(IN_TIMELINE, T0, 1))
    place = store.named(b"demo/a")
    assert place is not None
    assert store.pending_at(b"demo/a", place) == record(T0, 1)
    assert list(store.timeline(FIRST, T0)) == []
    assert store.pending_change == 1


def test_discarding_forgets_the_overlay() -> None:
    store = committed((IN_TIMELINE, T0, 1))
    place = store.named(b"demo/0")
    assert place is not None
    store.remove(b"demo/0", place)
    store.take([(keys.timeline_key(T0, 1), b"")] * RANGE_FROM)
    assert store.named(b"demo/0") is None
    store.discard()
    assert store.named(b"demo/0") == place
    assert (store.pending_change, store.changes, set(store.changed)) == (0, {}, set())
    store.commit(STATE)
    assert store.pending_at(b"demo/0", place) == record(T0, 1)


def test_an_empty_place_is_a_bug() -> None:
    store = committed((IN_TIMELINE, T0, 1))
    place = store.named(b"demo/0")
    assert place is not None
    store.remove(b"demo/0", place)
    with pytest.raises(Damaged, match="the store has a hole"):
        store.pending_at(b"demo/0", place)


def test_what_was_prefetched_gives_way_to_the_overlay() -> None:
    store = committed((IN_TIMELINE, T0, 1))
    store.prefetch([b"demo/0", b"demo/none"])
    assert store.named(b"demo/none") is None
    store.note(b"demo/none", b"\1\2")
    store.note(b"demo/0", None)
    assert (store.named(b"demo/none"), store.named(b"demo/0")) == (b"\1\2", None)
    store.commit(STATE)
    assert (store.named(b"demo/none"), store.named(b"demo/0")) == (b"\1\2", None)


def test_the_timeline_ends_with_its_instant() -> None:
    store = committed(*((IN_TIMELINE, T0 + due, seq) for seq, due in enumerate((0, 1, 1, 2))))
    found = [keys.timeline_sort_key(key)[0] for key, _ in store.timeline(FIRST, T0 + 1)]
    assert found == [T0, T0 + 1, T0 + 1]
    behind = (T0 + 1, 0)
    assert store.first_due_ms(behind) == T0 + 1
    assert next(store.timeline(behind, T0 + 1))[0] == keys.timeline_key(T0 + 1, 1)


def test_backlogs_are_counted_by_tenant() -> None:
    store = ScheduleStore(MemoryMap())
    for number, tenant in enumerate((b"a", b"a", b"a.b", b"b")):
        location = Location(IN_BACKLOG, T0 - number, number)
        row = ROW._replace(tenant=tenant, schedule_id=b"%d" % number)
        store.keep(b"%b/%d" % (tenant, number), encode_pending(row), location)
    store.commit(STATE)
    assert store.queue_sizes(IN_BACKLOG) == {b"a": 2, b"a.b": 1, b"b": 1}
    assert [keys.due_of(key) for key, _ in store.queue(IN_BACKLOG, b"a")] == [T0 - 1, T0]


@pytest.mark.parametrize("count", [1, RANGE_FROM - 1, RANGE_FROM, RANGE_FROM + 1])
def test_rows_that_are_cleared_go_and_their_neighbours_stay(count: int) -> None:
    store = committed(*((IN_TIMELINE, T0 + seq, seq) for seq in range(count + 2)))
    rows = list(store.timeline(FIRST, T0 + count + 9))
    store.take(rows[1:-1])
    assert bool(store._cleared) == (count >= RANGE_FROM)
    assert store.pending_change == -count
    store.commit(STATE)
    assert list(store.timeline(FIRST, T0 + count + 9)) == [rows[0], rows[-1]]
