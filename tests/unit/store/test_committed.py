"""What committed rows say, in words of schedules: where each range begins and ends.

timeline, queue      T0-1   T0   T0+1       seq 0 and up
asked up to T0        ●     ●    ○          nothing of the next millisecond, not even seq 0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import error as struct_error

import pytest

from belfry.store.committed import FEW, Committed
from belfry.store.layout import keys
from belfry.store.layout.buckets import bucket_key, bucket_name
from belfry.store.layout.locations import (
    BEHIND_LOCK,
    IN_BACKLOG,
    IN_CATCH_UP,
    IN_PAUSED,
    IN_TIMELINE,
    Location,
    decode_location,
)
from belfry.store.layout.manifests import NOTHING, Manifest, Progress, StoredState
from belfry.store.layout.pending import encode_pending
from belfry.store.layout.records import Awaited, encode_awaited
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from tests.unit.store.test_records import ROW

T0 = 1_800_000_000_000
STATE = StoredState(17, T0 + 5, Manifest(3, 2, 41, T0, 1, 0, bytes(16)))


class Shelf:
    """A store that is filled with schedules `tenant/0`, `tenant/1` …"""

    def __init__(self, rows: MemoryMap | None = None) -> None:
        self.rows = MemoryMap() if rows is None else rows
        self.store = ScheduleStore(self.rows)
        self.committed = Committed(self.rows)
        self._seq = 0

    def add(
        self, where: int, due_ms: int, within: bytes = b"", tenant: bytes = b"t", name: bytes = b""
    ) -> None:
        """One more that waits there; sequences are 0, 1, 2 …"""
        seq, self._seq = self._seq, self._seq + 1
        schedule_id = name or b"%d" % seq
        row = ROW._replace(tenant=tenant, schedule_id=schedule_id, due_ms=due_ms, seq=seq)
        location = Location(where, due_ms, seq, within)
        self.store.keep(b"%b/%b" % (tenant, schedule_id), encode_pending(row), location)
        self.store.commit(STATE)


def due(rows: Iterator[tuple[bytes, bytes]]) -> list[int]:
    """Due instants of rows of a queue, beside `T0`."""
    return [keys.due_of(key) - T0 for key, _ in rows]


def test_the_timeline_ends_before_the_next_millisecond() -> None:
    shelf = Shelf()
    shelf.add(IN_TIMELINE, T0 + 1)
    shelf.add(IN_TIMELINE, T0)
    found = [keys.timeline_sort_key(key) for key, _ in shelf.committed.timeline((0, 0), T0)]
    assert found == [(T0, 1)]
    assert shelf.committed.first_due_ms((T0 + 1, 0)) == T0 + 1
    assert shelf.committed.first_due_ms((T0 + 1, 1)) is None


@pytest.mark.parametrize("queue", [IN_BACKLOG, IN_CATCH_UP])
def test_a_part_of_a_level_is_cut_to_the_millisecond(queue: int) -> None:
    shelf = Shelf()
    for later_ms in (2, 1, 0, -1):
        for level in (b"", b"\1", b"\7"):
            shelf.add(queue, T0 + later_ms, level)
    read = shelf.committed
    for level in (b"", b"\1", b"\7"):
        given = (level,) if level else ()
        assert due(read.queue(queue, b"t", *given)) == [-1, 0, 1, 2]
        assert due(read.queue_between(queue, b"t", None, T0, *given)) == [-1, 0]
        assert due(read.queue_between(queue, b"t", T0, T0 + 1, *given)) == [0, 1]
        assert due(read.queue_between(queue, b"t", T0 + 3, T0 + 9, *given)) == []
        assert read.first_of_queue_ms(queue, b"t", T0 + 1, *given) == T0 + 1
        assert read.first_of_queue_ms(queue, b"t", T0 + 3, *given) is None
    assert due(read.queue(queue, b"t", b"\2")) == []
    assert due(read.queue(queue, b"u")) == []


def test_a_part_begins_with_the_first_sequence_of_its_instant() -> None:
    """Sequence 0 of the next millisecond is behind the end, that of the first is within."""
    shelf = Shelf()
    shelf.add(IN_BACKLOG, T0)
    read = shelf.committed
    assert due(read.queue_between(IN_BACKLOG, b"t", T0, T0)) == [0]
    assert due(read.queue_between(IN_BACKLOG, b"t", None, T0 - 1)) == []
    assert read.first_of_queue_ms(IN_BACKLOG, b"t", T0) == T0


def test_levels_are_counted_by_themselves() -> None:
    shelf = Shelf()
    for tenant, level, count in (
        (b"t", b"", 1),
        (b"t", b"\1", 2),
        (b"t", b"\7", 3),
        (b"u", b"", 4),
    ):
        for _ in range(count):
            shelf.add(IN_BACKLOG, T0, level, tenant)
    shelf.add(IN_CATCH_UP, T0, b"\1")
    read = shelf.committed
    assert read.queue_sizes(IN_BACKLOG) == {b"t": 1, b"u": 4}
    assert read.level_sizes(IN_BACKLOG) == {(b"t", b"\1"): 2, (b"t", b"\7"): 3}
    assert read.queue_sizes(IN_CATCH_UP) == {}
    assert read.level_sizes(IN_CATCH_UP) == {(b"t", b"\1"): 1}


class Counting(MemoryMap):
    """A map that counts the rows which a scan gives."""

    given = 0

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The same rows."""
        for pair in super().scan(start, end):
            self.given += 1
            yield pair


LOCKS = [(b"t", b"go"), (b"t", b"gp"), (b"t", b"s1"), (b"u", b"go")]


def test_of_each_lock_a_few_rows_are_read() -> None:
    rows = Counting()
    shelf = Shelf(rows)
    for number, (tenant, lock) in enumerate(LOCKS):
        for later_ms in range(1, 40 if number != 1 else 3):
            shelf.add(BEHIND_LOCK, T0 + 10 * number + later_ms, lock, tenant)
    rows.given = 0
    assert shelf.committed.locks() == set(LOCKS)
    # Of three locks the first row and as many as a scan costs; of the one between them both rows.
    assert rows.given == 3 * (1 + FEW) + 2
    rows.given = 0
    assert list(shelf.committed.first_behind_locks()) == [
        (tenant, lock, T0 + 10 * number + 1) for number, (tenant, lock) in enumerate(LOCKS)
    ]
    assert rows.given == len(LOCKS)


def test_the_first_row_behind_a_lock_is_that_of_this_lock() -> None:
    shelf = Shelf()
    for number, (tenant, lock) in enumerate(LOCKS):
        shelf.add(BEHIND_LOCK, T0 + number, lock, tenant)
    found = [shelf.committed.first_locked_ms(*lock) for lock in LOCKS]
    assert found == [T0, T0 + 1, T0 + 2, T0 + 3]
    assert shelf.committed.first_locked_ms(b"t", b"gn") is None
    assert shelf.committed.first_locked_ms(b"u", b"s1") is None
    assert Shelf().committed.locks() == set()


def test_what_waits_for_an_acknowledgement_is_told_by_name_and_by_its_end() -> None:
    shelf = Shelf()
    said = {}
    for fire_id, until_ms in ((b"f1", T0 + 9), (b"f2", T0 + 3)):
        key = keys.awaited_key(b"t", fire_id)
        said[key] = encode_awaited(Awaited(1, T0, until_ms, T0, 3, b"x", b"g"))
        shelf.store.await_ack(key, said[key])
    assert shelf.store.first_until_ms() is None
    shelf.store.commit(STATE)
    assert dict(shelf.committed.awaited()) == said
    first, second = sorted(said)
    assert list(shelf.committed.untils()) == [(T0 + 3, second), (T0 + 9, first)]
    assert shelf.store.first_until_ms() == T0 + 3
    shelf.store.acked(second, said[second])
    shelf.store.commit(STATE)
    assert list(shelf.committed.untils()) == [(T0 + 9, first)]
    assert shelf.store.first_until_ms() == T0 + 9
    assert list(shelf.committed.awaited()) == [(first, said[first])]


def test_names_go_on_right_behind_one_of_them() -> None:
    """Also with a name that only has more bytes: it is the next one."""
    shelf = Shelf()
    for name in (b"a", b"a\1", b"aA", b"b"):
        shelf.add(IN_PAUSED, T0, name=name)
    shelf.add(IN_PAUSED, T0, tenant=b"u", name=b"a")
    mine = [b"t/a", b"t/a\1", b"t/aA", b"t/b"]
    read = shelf.committed
    for at, name in enumerate(mine):
        behind = mine[at + 1 :]
        assert [each for each, _ in read.paused(name)] == [*behind, b"u/a"]
        assert [each for each, _ in read.names(name, 9)] == [*behind, b"u/a"]
        assert [each for each, _ in read.names_of(b"t", name, 9)] == behind
    assert [each for each, _ in read.paused()] == [*mine, b"u/a"]
    assert [each for each, _ in read.names(None, 2)] == mine[:2]
    assert [each for each, _ in read.names_of(b"t", None, 9)] == mine
    assert [each for each, _ in read.all_names()] == [*mine, b"u/a"]
    assert [each for each, _ in read.between(b"t/a\1", b"t/b")] == mine[1:3]
    record = dict(read.paused())[b"t/b"]
    assert list(read.all_pending()).count(record) == 1


def test_paused_ones_are_told_from_the_first_name_on() -> None:
    shelf = Shelf()
    for tenant in (b"z", b"Z", b"0", b"A"):
        shelf.add(IN_PAUSED, T0, tenant=tenant, name=b"a")
    assert [name for name, _ in shelf.committed.paused()] == [b"0/a", b"A/a", b"Z/a", b"z/a"]


def test_all_that_waits_is_met_wherever_it_lies() -> None:
    shelf = Shelf()
    places = [IN_TIMELINE, IN_BACKLOG, IN_CATCH_UP, IN_PAUSED]
    for number, where in enumerate(places):
        shelf.add(where, T0 + number)
    shelf.add(BEHIND_LOCK, T0 + 4, b"g")
    found = sorted(shelf.committed.all_pending(), key=len)
    named = [shelf.store.named(b"t/%d" % number) or b"" for number in range(5)]
    assert len(found) == 5
    assert {shelf.store.pending_at(b"t/%d" % at, row) for at, row in enumerate(named)} == set(found)
    assert [decode_location(row).where for row in named] == [*places, BEHIND_LOCK]
    assert shelf.committed.waiting_of(b"t") == 5
    assert shelf.committed.waiting_of(b"u") == 0
    assert shelf.committed.waiting_by_tenant() == {b"t": 5}


def test_a_bucket_is_told_by_its_tenant_and_minute() -> None:
    shelf = Shelf()
    shelf.add(IN_TIMELINE, T0 + 7)
    minute = T0 // keys.MINUTE_MS
    found = shelf.committed.bucket(b"t", minute)
    assert found is not None
    assert found == (b"t", minute, 1, T0 + 7, T0 + 7)
    assert shelf.committed.bucket(b"t", minute + 1) is None
    shelf.rows.write({bucket_key(bucket_name(b"t", T0)): b"\1\1short"})
    with pytest.raises(struct_error):
        shelf.committed.bucket(b"t", minute)


@pytest.mark.parametrize("stored", [(), ("state",), ("progress",), ("state", "progress")])
def test_a_replay_begins_amid_another_one_or_at_the_state(stored: Sequence[str]) -> None:
    shelf = Shelf()
    manifest = Manifest(4, 2, 50, T0, 6, 0, bytes(16))
    progress = Progress(30, T0 + 8, 6, manifest=manifest)
    if "state" in stored:
        shelf.store.commit_settled(STATE, b"all")
        assert shelf.committed.readable_by() == b"all"
    if "progress" in stored:
        shelf.store.commit_progress(progress, b"some")
        assert shelf.committed.readable_by() == b"some"
        assert shelf.committed.state() is None
    begins = shelf.committed.replayed()
    if "progress" in stored:
        assert begins == shelf.committed.progress() == progress
    elif "state" in stored:
        assert begins == Progress(17, T0 + 5, 1, manifest=STATE.manifest)
    else:
        assert begins == NOTHING
        assert shelf.committed.readable_by() is None
