"""What a store says to those who only look: one schedule, and pages by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from belfry.store import lookup
from belfry.store.layout import keys
from belfry.store.layout.kept_fires import packed_fire
from belfry.store.layout.locations import IN_BACKLOG, IN_TIMELINE, Location, decode_location
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.layout.pending import KIND_CODES, Away, Pending, decode_pending, encode_pending
from belfry.store.layout.pending_bytes import next_record
from belfry.store.layout.records import ENDED_FIRED, MARKER_MS, Marker, encode_marker
from belfry.store.lookup import Moving, ScheduleStatus, Wanted
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000
STATE = StoredState(1, NOW_MS, Manifest(1, 1, 1, 0, 0, 0, bytes(16)))


def pending(tenant: str, schedule_id: str, due_ms: int, seq: int, **more: Any) -> bytes:
    """The record of a schedule that waits."""
    given = {"group": b"", "event_type": b"", "payload": b"p", "extra": b"", "kind": "AT", **more}
    return encode_pending(
        Pending(
            due_ms, due_ms, NOW_MS, seq, seq, 1, 0, KIND_CODES[given["kind"]], due_ms, 0,
            tenant.encode(), schedule_id.encode(), given["group"], given["event_type"],
            None, b"", given["extra"], given["payload"],
        )
    )  # fmt: skip


class Shelf:
    """A store that is filled and then looked at."""

    def __init__(self) -> None:
        self.rows = MemoryMap()
        self._store = ScheduleStore(self.rows)
        self._seq = 0

    def add(self, tenant: str, schedule_id: str, due_ms: int, **more: Any) -> None:
        """One more that waits, in the timeline or (`held`) in the backlog."""
        self._seq += 1
        where = IN_BACKLOG if more.pop("held", False) else IN_TIMELINE
        record = pending(tenant, schedule_id, due_ms, self._seq, **more)
        name = keys.schedule_key(tenant, schedule_id)
        self._store.keep(name, record, Location(where, due_ms, self._seq))
        self._store.commit(STATE)

    def fire(self, tenant: str, schedule_id: str, at_ms: int, late_ms: int) -> None:
        """One that recurs has fired then."""
        name = keys.schedule_key(tenant, schedule_id)
        row = self._store.named(name) or b""
        record, place = self._store.pending_at(name, row), decode_location(row)
        fired = packed_fire(at_ms, decode_pending(record).version, late_ms, 0)
        self._store.remove(name, row)
        self._store.keep(name, next_record(record, place.due_ms, place.due_ms, 1, fired), place)
        self._store.commit(STATE)

    def over(self, tenant: str, schedule_id: str, ended_ms: int) -> None:
        """One that fired."""
        marker = encode_marker(Marker(ENDED_FIRED, ended_ms, ended_ms, 1, 3, 1))
        self._store.note(keys.schedule_key(tenant, schedule_id), marker)
        self._store.commit(STATE)

    def find(self, tenant: str, schedule_id: str) -> ScheduleStatus | None:
        """One by name, which is the same with others."""
        name = keys.schedule_key(tenant, schedule_id)
        found = lookup.standing_of(self.rows, name, NOW_MS)
        names = [b"t/none", name, name]
        assert lookup.standings_of(self.rows, names, NOW_MS) == [None, found, found]
        return found

    def ids(self, wanted: Wanted, limit: int = 2, examine: int = 3) -> list[str]:
        """The ids of all pages, one after the other."""
        found: list[str] = []
        after: bytes | None = None
        while True:
            page = lookup.page(self.rows, wanted, after, NOW_MS, limit=limit, examine=examine)
            assert len(page.found) <= limit
            assert page.examined <= examine
            found += [standing.name.decode().partition("/")[2] for standing in page.found]
            if page.after is None:
                return found
            after = page.after


@pytest.fixture
def shelf() -> Shelf:
    """Two tenants; the second one's rows lie between those of the first."""
    shelf = Shelf()
    for number, name in enumerate(["a", "b", "b/1", "b/2", "c"]):
        shelf.add("t", name, NOW_MS + number * MINUTE_MS, group=b"g" if number % 2 else b"")
        shelf.add("t.x", name, NOW_MS + number * MINUTE_MS + 1)
        shelf.add("tt", name, NOW_MS + number * MINUTE_MS - 1)
    return shelf


def test_one_by_name(shelf: Shelf) -> None:
    found = shelf.find("t", "b/1")
    assert found is not None
    assert (found.state, found.payload_bytes) == ("PENDING", 1)
    assert found.pending is not None
    assert found.pending.payload == b"p"
    assert shelf.find("t", "nothing") is None
    assert shelf.find("nobody", "a") is None


def test_what_is_over_shows_for_a_day(shelf: Shelf) -> None:
    shelf.over("t", "done", NOW_MS - MARKER_MS + 1)
    shelf.over("t", "gone", NOW_MS - MARKER_MS)
    found = shelf.find("t", "done")
    assert found is not None
    assert (found.state, found.pending) == ("FIRED", None)
    assert found.marker is not None
    assert found.marker.version == 3
    assert shelf.find("t", "gone") is None
    assert shelf.ids(Wanted(b"t", state="FIRED")) == ["done"]


def test_by_name_all_pages_give_each_once(shelf: Shelf) -> None:
    assert shelf.ids(Wanted(b"t")) == ["a", "b", "b/1", "b/2", "c"]
    assert shelf.ids(Wanted(b"t", prefix=b"b/")) == ["b/1", "b/2"]
    assert shelf.ids(Wanted(b"t", group=b"g")) == ["b", "b/2"]
    assert shelf.ids(Wanted(b"nobody")) == []


def test_a_list_leaves_payloads_out(shelf: Shelf) -> None:
    page = lookup.page(shelf.rows, Wanted(b"t"), None, NOW_MS, limit=10, examine=10)
    assert {standing.payload_bytes for standing in page.found} == {1}
    assert not any(standing.pending and standing.pending.payload for standing in page.found)


def test_a_cursor_of_another_range_shows_nothing_more(shelf: Shelf) -> None:
    page = lookup.page(shelf.rows, Wanted(b"tt"), b"kt/", NOW_MS, limit=10, examine=10)
    assert {standing.name[:3] for standing in page.found} == {b"tt/"}
    page = lookup.page(shelf.rows, Wanted(b"t"), b"ktt/", NOW_MS, limit=10, examine=10)
    assert page.found == []


class Racing(MemoryMap):
    """A map in which a row moves away each time that its place has been read."""

    moves = 3

    def get(self, key: bytes) -> bytes | None:
        """Nothing lies where the place says, for a while."""
        if key.startswith(keys.TIMELINE_PREFIX) and self.moves:
            self.moves -= 1
            return None
        return super().get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The same, of several rows."""
        return [self.get(key) for key in keys]


def alone(rows: MemoryMap) -> ScheduleStatus | None:
    """Looks one up."""
    return lookup.standing_of(rows, b"t/a", NOW_MS)


def together(rows: MemoryMap) -> ScheduleStatus | None:
    """Looks it up with another one."""
    return lookup.standings_of(rows, [b"t/none", b"t/a"], NOW_MS)[1]


@pytest.mark.parametrize("look", [alone, together])
@pytest.mark.parametrize(("moves", "found"), [(3, True), (100, False)])
def test_a_schedule_that_moves_is_looked_up_again(
    look: Callable[[MemoryMap], ScheduleStatus | None], moves: int, found: bool
) -> None:
    shelf = Shelf()
    racing = Racing()
    racing.moves = moves
    shelf.rows = racing
    shelf._store = ScheduleStore(racing)
    shelf.add("t", "a", NOW_MS)
    if found:
        assert look(racing) is not None
    else:
        with pytest.raises(Moving):
            look(racing)


def test_a_payload_that_is_away_is_told_as_such_in_a_list(shelf: Shelf) -> None:
    """Where it lies is nobody's business there, only that it exists."""
    shelf.add("t", "away", NOW_MS, payload=Away(b"somewhere"))
    shelf.add("t", "null", NOW_MS, payload=None)
    found = shelf.find("t", "away")
    assert found is not None
    assert found.pending is not None
    assert type(found.pending.payload) is Away
    assert (found.place, found.record) != (b"", b"")
    shown = {}
    for name in ("a", "away", "null"):
        standing = shelf.find("t", name)
        assert standing is not None
        shown[name] = standing.without_payload()
    payloads = [each.pending.payload for each in shown.values() if each.pending is not None]
    assert [type(each) for each in payloads] == [type(None), Away, type(None)]
    assert payloads[1] == b""
    assert {each.record for each in shown.values()} == {b""}
    assert shown["a"].place == shelf.rows.get(keys.named_key(b"t/a"))


def test_what_ended_in_a_way_of_a_later_release_shows_as_fired(shelf: Shelf) -> None:
    for how, state in {**lookup.ENDS, 99: "FIRED"}.items():
        row = encode_marker(Marker(how, NOW_MS, NOW_MS, 1, 3, 1))
        shelf.rows.write({keys.named_key(b"t/over"): row})
        found = shelf.find("t", "over")
        assert found is not None
        assert found.state == state
        assert found.without_payload() == found


def test_what_is_no_schedule_is_not_found_in_a_list(shelf: Shelf) -> None:
    """Rows that a later release keeps under a schedule's name are passed over."""
    shelf.rows.write({keys.named_key(b"t/b0"): b"\1\x63what"})
    assert shelf.ids(Wanted(b"t")) == ["a", "b", "b/1", "b/2", "c"]
    rows = [(b"kt/b0", b"\1\x63what"), (b"kt/none", None)]
    found = list(lookup.read_rows(shelf.rows, rows, NOW_MS))
    assert found == [(b"kt/b0", None), (b"kt/none", None)]


@pytest.mark.parametrize(
    ("from_ms", "until_ms", "within"),
    [(None, None, [9, 10, 11]), (10, None, [10, 11]), (None, 10, [9]), (10, 11, [10])],
)
def test_a_due_range_begins_with_its_first_instant(
    from_ms: int | None, until_ms: int | None, within: list[int]
) -> None:
    wanted = Wanted(b"t", due_from_ms=from_ms, due_until_ms=until_ms)
    assert [each for each in (9, 10, 11) if wanted.in_range(each)] == within
    assert wanted.by_due == ((from_ms, until_ms) != (None, None))


@pytest.mark.parametrize(
    ("state", "waits", "is_paused"),
    [
        (None, True, True),
        ("PENDING", True, False),
        ("PAUSED", False, True),
        ("FIRED", False, False),
    ],
)
def test_what_waits_is_pending_or_paused(state: str | None, waits: bool, is_paused: bool) -> None:
    wanted = Wanted(b"t", state=state)
    assert lookup.in_state(wanted, is_paused=False) == waits
    assert lookup.in_state(wanted, is_paused=True) == is_paused


def test_what_is_over_has_no_group_and_no_type(shelf: Shelf) -> None:
    shelf.over("t", "done", NOW_MS)
    assert shelf.ids(Wanted(b"t", prefix=b"d")) == ["done"]
    assert shelf.ids(Wanted(b"t", prefix=b"d", group=b"g")) == []
    assert shelf.ids(Wanted(b"t", prefix=b"d", event_type=b"e")) == []
    assert shelf.ids(Wanted(b"t", state="PENDING")) == ["a", "b", "b/1", "b/2", "c"]
    assert shelf.ids(Wanted(b"t", group=b"g", event_type=b"e")) == []
