"""Lists and counts by due instant cost a tenant its own rows, and show what waits for other things.

names      a  b  b/1  b/2  c        (in windows of `examine`)
minute     0  1  2    3    4        (other tenants' rows lie between)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from belfry.store.buckets import buckets
from belfry.store.committed import Committed
from belfry.store.due_lookup import due_page
from belfry.store.layout import keys
from belfry.store.layout.locations import BEHIND_LOCK, IN_CATCH_UP, IN_PAUSED, Location
from belfry.store.layout.pending_bytes import PAUSED, with_flags
from belfry.store.layout.records import LOCKS_GROUP, LOCKS_OWN, Awaited, encode_awaited
from belfry.store.lock_lookup import locks
from belfry.store.lookup import Wanted
from belfry.store.ordered_map import MemoryMap
from tests.unit.store.test_lookup import MINUTE_MS, NOW_MS, STATE, Shelf, pending

EXAMINE = 10_000


class DueShelf(Shelf):
    """A store that is filled and then asked for what is due."""

    def put(
        self,
        tenant: str,
        schedule_id: str,
        due_ms: int,
        where: int,
        gate: bytes = b"",
        payload: bytes = b"p",
    ) -> None:
        """One more that waits there."""
        self._seq += 1
        record = pending(tenant, schedule_id, due_ms, self._seq, payload=payload)
        if where == IN_PAUSED:
            record = with_flags(record, PAUSED)
        name = keys.schedule_key(tenant, schedule_id)
        self._store.keep(name, record, Location(where, due_ms, self._seq, gate))
        self._store.commit(STATE)

    def lock(self, tenant: str, fire_id: str, closes: int) -> None:
        """A fire that is to be acknowledged."""
        awaited = Awaited(closes, NOW_MS, NOW_MS + 1, NOW_MS - 1, 3, b"x", b"g")
        key = keys.awaited_key(tenant.encode(), fire_id.encode())
        self._store.await_ack(key, encode_awaited(awaited))
        self._store.commit(STATE)

    def drop(self, tenant: str, schedule_id: str) -> None:
        """One fewer."""
        name = keys.schedule_key(tenant, schedule_id)
        place = self._store.named(name)
        assert place is not None
        self._store.remove(name, place)
        self._store.commit(STATE)

    def due(self, wanted: Wanted, limit: int, examine: int, between: Any = None) -> list[str]:
        """The ids of all pages, one after the other; `between` is called after the first one."""
        found: list[str] = []
        after: bytes | None = None
        while True:
            page = due_page(self.rows, wanted, after, NOW_MS, limit=limit, examine=examine)
            assert len(page.found) <= limit
            assert page.examined <= 2 * examine
            found += [standing.name.decode().partition("/")[2] for standing in page.found]
            if page.after is None:
                return found
            after = page.after
            if between is not None:
                between, call = None, between
                call()


@pytest.fixture
def shelf() -> DueShelf:
    """Three tenants whose rows lie between one another, the last names first due."""
    shelf = DueShelf()
    for number, name in enumerate(["c", "b/2", "b/1", "b", "a"]):
        shelf.add("t", name, NOW_MS + number * MINUTE_MS, group=b"g" if number % 2 else b"")
        shelf.add("t.x", name, NOW_MS + number * MINUTE_MS + 1)
        shelf.add("tt", name, NOW_MS + number * MINUTE_MS - 1)
    return shelf


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("examine", [1, 3, 1000])
def test_all_pages_give_each_once(shelf: DueShelf, limit: int, examine: int) -> None:
    wanted = Wanted(b"t", due_from_ms=NOW_MS + MINUTE_MS, due_until_ms=NOW_MS + 3 * MINUTE_MS)
    assert sorted(shelf.due(wanted, limit, examine)) == ["b/1", "b/2"]
    assert sorted(shelf.due(Wanted(b"t", due_from_ms=0), limit, examine)) == sorted(
        ["c", "b/2", "b/1", "b", "a"]
    )


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_who_has_fewer_names_than_a_window_has_a_list_in_due_order(
    shelf: DueShelf, limit: int
) -> None:
    assert shelf.due(Wanted(b"t", due_from_ms=0), limit, 10) == ["c", "b/2", "b/1", "b", "a"]
    assert shelf.due(Wanted(b"t", due_from_ms=0, group=b"g"), limit, 10) == ["b/2", "b"]
    assert shelf.due(Wanted(b"t", prefix=b"b/", due_from_ms=0), limit, 10) == ["b/2", "b/1"]


def test_each_window_is_in_due_order(shelf: DueShelf) -> None:
    assert shelf.due(Wanted(b"t", due_from_ms=0), 1, 3) == ["b/1", "b", "a", "c", "b/2"]


def test_what_others_have_due_costs_nothing_and_is_not_told(shelf: DueShelf) -> None:
    for number in range(200):
        shelf.add("crowd", f"x{number}", NOW_MS)
    page = due_page(shelf.rows, Wanted(b"t", due_from_ms=0), None, NOW_MS, limit=9, examine=50)
    assert (page.examined, len(page.found), page.after) == (5, 5, None)
    found, after = buckets(shelf.rows, b"t", 0, None, limit=50)
    assert (len(found), after) == (5, None)


def test_a_page_of_a_tenant_with_a_long_queue_is_bounded(shelf: DueShelf) -> None:
    for number in range(100):
        shelf.add("crowd", f"x{number:03}", NOW_MS - 1, held=True)
    wanted = Wanted(b"crowd", due_until_ms=NOW_MS - 10)
    page = due_page(shelf.rows, wanted, None, NOW_MS, limit=10, examine=30)
    assert (page.examined, page.found) == (30, [])
    assert page.after is not None
    assert shelf.due(wanted, 10, 30) == []


def test_what_waits_for_something_else_is_listed_and_counted(shelf: DueShelf) -> None:
    shelf.add("w", "queue", NOW_MS - 4 * MINUTE_MS, held=True)
    shelf.put("w", "late", NOW_MS - 3 * MINUTE_MS, IN_CATCH_UP)
    shelf.put("w", "locked", NOW_MS - 2 * MINUTE_MS, BEHIND_LOCK, b"gg")
    shelf.put("w", "paused", NOW_MS - MINUTE_MS, IN_PAUSED)
    wanted = Wanted(b"w", due_until_ms=NOW_MS)
    assert shelf.due(wanted, 2, EXAMINE) == ["queue", "late", "locked"]
    counted, _ = buckets(shelf.rows, b"w", 0, NOW_MS, limit=EXAMINE)
    assert [each.waiting for each in counted] == [1, 1, 1]
    assert Committed(shelf.rows).waiting_of(b"w") == 4


@pytest.mark.parametrize("limit", [1, 2])
def test_what_waits_in_a_queue_is_not_lost_behind_the_timeline(shelf: DueShelf, limit: int) -> None:
    shelf.add("v", "late", NOW_MS + 60 * MINUTE_MS)
    shelf.add("v", "soon", NOW_MS + MINUTE_MS, held=True)
    assert shelf.due(Wanted(b"v", due_from_ms=0), limit, EXAMINE) == ["soon", "late"]


def test_names_that_leave_a_window_take_no_others_with_them(shelf: DueShelf) -> None:
    """`a`, `b`, `b/1` are the first window; without `b`, `b/2` is none of it, though due first."""
    wanted = Wanted(b"t", due_from_ms=0)
    found = shelf.due(wanted, 1, 3, between=lambda: shelf.drop("t", "b"))
    assert found == ["b/1", "a", "c", "b/2"]


def test_names_that_join_a_window_push_no_others_out(shelf: DueShelf) -> None:
    wanted = Wanted(b"t", due_from_ms=0)
    found = shelf.due(wanted, 1, 3, between=lambda: shelf.add("t", "aa", NOW_MS + 9 * MINUTE_MS))
    assert found == ["b/1", "b", "a", "aa", "c", "b/2"]


@pytest.mark.parametrize("after", [b"", b"short", b"\xff" * 18, b"\0" * 40, b"ktt/" * 20])
def test_a_cursor_that_somebody_made_up_leads_to_no_others(shelf: DueShelf, after: bytes) -> None:
    page = due_page(shelf.rows, Wanted(b"t", due_from_ms=0), after, NOW_MS, limit=9, examine=9)
    assert all(standing.name.startswith(b"t/") for standing in page.found)


def test_locks_of_one_tenant_page_by_page(shelf: DueShelf) -> None:
    for tenant in ("t", "tt", "t.x"):
        for number in range(3):
            shelf.lock(tenant, f"f{number}", LOCKS_GROUP if number else LOCKS_OWN)
    found: list[bytes] = []
    after: bytes | None = None
    while True:
        some, after = locks(shelf.rows, b"t", after, limit=2)
        found += [each.fire_id for each in some]
        assert all(each.awaited.schedule_id == b"x" for each in some)
        if after is None:
            break
    assert found == [b"f0", b"f1", b"f2"]


def test_the_next_lock_is_the_one_right_behind_the_last(shelf: DueShelf) -> None:
    for fire_id in ("a", "a!", "aa", "b"):
        shelf.lock("next", fire_id, LOCKS_OWN)
    found, after = [], None
    while True:
        some, after = locks(shelf.rows, b"next", after, limit=1)
        found += [each.fire_id for each in some]
        if after is None:
            break
    assert found == [b"a", b"a!", b"aa", b"b"]
    assert locks(shelf.rows, b"next", b"k", limit=9)[0][0].fire_id == b"a"


class Stale(MemoryMap):
    """A map in which a scan tells rows under names that have changed since."""

    def __init__(self, rows: MemoryMap, told: dict[bytes, bytes]) -> None:
        super().__init__()
        self.write(dict(rows.scan(b"", b"\xff")))
        self._told = told

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The same rows, as they were."""
        return iter([(key, self._told.get(key, row)) for key, row in super().scan(start, end)])


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    ("later_ms", "shown"), [(0, True), (MINUTE_MS - 1, True), (MINUTE_MS, None), (None, False)]
)
def test_one_that_moved_since_it_was_seen_is_judged_as_it_is_now(
    held: bool, later_ms: int | None, shown: bool | None
) -> None:
    """What lay in the timeline is due when its location says; elsewhere rows may tell another."""
    shelf = DueShelf()
    shelf.add("t", "moves", NOW_MS, held=held)
    key = keys.named_key(b"t/moves")
    before = {key: shelf.rows.get(key) or b""}
    shelf.drop("t", "moves")
    if later_ms is None:
        shelf.over("t", "moves", NOW_MS)
    else:
        shelf.add("t", "moves", NOW_MS + later_ms)
    wanted = Wanted(b"t", due_from_ms=NOW_MS, due_until_ms=NOW_MS + MINUTE_MS)
    found = due_page(Stale(shelf.rows, before), wanted, None, NOW_MS, limit=9, examine=9).found
    names = [b"t/moves"] if shown or (shown is None and held) else []
    assert [each.name for each in found] == names
