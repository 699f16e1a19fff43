"""The sweep ends markers after a day and verdicts after an hour, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import pytest

from belfry.engine.effects import Effects
from belfry.engine.retention import Retention
from belfry.engine.step import PartitionStatus, Step
from belfry.engine.undo import UndoLog
from belfry.store.layout import keys
from belfry.store.layout.ends import decode_ends
from belfry.store.layout.locations import IN_TIMELINE, Location
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.layout.pending import encode_pending
from belfry.store.layout.records import ENDED_FIRED, MARKER_MS, Marker, encode_marker
from belfry.store.layout.verdicts import REQUEST_ID_MS, VerdictRow, encode_verdict
from belfry.store.ordered_map import Damaged, MemoryMap
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import Watched
from tests.unit.store.test_records import ROW

T0 = 1_800_000_000_000
STATE = StoredState(1, T0, Manifest(1, 1, 1, T0, 0, 0, bytes(16)))
MARKER = encode_marker(Marker(ENDED_FIRED, T0, T0, 1, 1, 1))
VERDICT = encode_verdict(VerdictRow("ACCEPTED", T0, None, None, ""))


def at(now_ms: int, heard_ms: int) -> Step:
    step = Step(PartitionStatus(heard_ms=heard_ms), Effects())
    step.now_ms = now_ms
    return step


OFFSETS = count(2)


def commit(store: ScheduleStore, now_ms: int = T0) -> None:
    """Commit the step behind all those before it."""
    store.commit(STATE._replace(changelog_offset=next(OFFSETS), written_ms=now_ms))


def new_store(rows: MemoryMap | None = None) -> ScheduleStore:
    """An empty store, of an owner that leads to all that it ends."""
    store = ScheduleStore(MemoryMap() if rows is None else rows)
    store.ends.whole = True
    return store


def swept(store: ScheduleStore, sweep: Retention, now_ms: int, at_most: int) -> set[bytes]:
    sweep.sweep(at(now_ms, now_ms), at_most)
    ended = store.changes
    assert set(ended.values()) <= {None}
    commit(store, now_ms)
    return set(ended)


def filled() -> ScheduleStore:
    store = new_store()
    store.end(b"demo/over", MARKER, MARKER_MS)
    store.note(keys.request_key("demo", "r"), VERDICT, REQUEST_ID_MS)
    store.note(keys.SETTINGS_KEY, b'{"partitions": 4}')
    waits = encode_pending(ROW._replace(due_ms=T0 + 10**12, seq=1))
    store.keep(b"demo/waits", waits, Location(IN_TIMELINE, T0 + 10**12, 1))
    commit(store)
    return store


@pytest.mark.parametrize(
    ("after_ms", "ended"),
    [
        (REQUEST_ID_MS - 1, set()),
        (REQUEST_ID_MS, {keys.request_key("demo", "r")}),
        (MARKER_MS - 1, {keys.request_key("demo", "r")}),
        (MARKER_MS, {keys.request_key("demo", "r"), b"demo/over"}),
        (10**12, {keys.request_key("demo", "r"), b"demo/over"}),
    ],
)
@pytest.mark.parametrize("told", [True, False])
def test_what_is_over_ends(after_ms: int, ended: set[bytes], *, told: bool) -> None:
    store = filled() if told else reopened(filled())
    assert swept(store, Retention(store, UndoLog()), T0 + after_ms, 100) == ended
    left = {key[1:] for key, _ in store._rows.scan(b"k", b"l")}
    assert (
        left
        == {b"demo/over", b"demo/waits", keys.SETTINGS_KEY, keys.request_key("demo", "r")} - ended
    )


@pytest.mark.parametrize(("heard_ms", "ends"), [(REQUEST_ID_MS - 1, False), (REQUEST_ID_MS, True)])
def test_a_verdict_stays_until_a_request_of_an_hour_later_was_read(
    heard_ms: int, ends: bool
) -> None:
    store = filled()
    Retention(store, UndoLog()).sweep(at(T0 + 10**12, T0 + heard_ms), 100)
    assert (keys.request_key("demo", "r") in store.changes) == ends
    assert b"demo/over" not in store.changes


@pytest.mark.parametrize(("heard_ms", "ends"), [(MARKER_MS - 1, False), (MARKER_MS, True)])
def test_a_marker_stays_until_a_request_of_a_day_later_was_read(heard_ms: int, ends: bool) -> None:
    store = filled()
    Retention(store, UndoLog()).sweep(at(T0 + 10**12, T0 + heard_ms), 100)
    assert (b"demo/over" in store.changes) == ends


def reopened(store: ScheduleStore) -> ScheduleStore:
    """The same rows, as a replay or an older release leaves them: nothing says what ends when."""
    rows = MemoryMap()
    rows.write({key: row for key, row in store._rows.scan(b"", b"\xff") if key[:1] != b"e"})
    rows.write({keys.META_ENDS: None})
    return ScheduleStore(rows)


def ended(store: ScheduleStore, names: Iterable[bytes], now_ms: int = T0) -> None:
    """A step in which these schedules end."""
    for name in names:
        store.end(name, marker(now_ms), MARKER_MS)
    commit(store, now_ms)


def marker(now_ms: int) -> bytes:
    return encode_marker(Marker(ENDED_FIRED, now_ms, now_ms, 1, 1, 1))


def led_to(store: ScheduleStore) -> list[bytes]:
    """Names that the store leads to, once for each time that it does."""
    return [name for _, row in store._rows.scan(b"e", b"f") for name in decode_ends(row).names]


@pytest.mark.parametrize("told", [True, False])
def test_a_few_rows_at_a_time_come_to_all(*, told: bool) -> None:
    store = new_store()
    ended(store, [b"demo/%d" % number for number in range(10)])
    store = store if told else reopened(store)
    sweep = Retention(store, UndoLog())
    counts = [len(swept(store, sweep, T0 + MARKER_MS, 4)) for _ in range(3)]
    assert counts == [4, 4, 2]
    ended(store, [b"demo/0"])
    assert swept(store, sweep, T0 + MARKER_MS, 4) == {b"demo/0"}
    assert (led_to(store), sweep.behind) == ([], False)


@pytest.mark.parametrize("told", [True, False])
def test_after_a_roll_back_the_sweep_begins_again(*, told: bool) -> None:
    store = filled() if told else reopened(filled())
    undo = UndoLog()
    sweep = Retention(store, undo)
    for at_most in (1, 100):
        sweep.sweep(at(T0 + MARKER_MS, T0 + MARKER_MS), at_most)
        store.discard()
        undo.roll_back()
    assert b"demo/over" in swept(store, sweep, T0 + MARKER_MS, 100)


def test_what_the_step_changes_is_left_to_it() -> None:
    store = filled()
    store.note(b"demo/over", MARKER)
    Retention(store, UndoLog()).sweep(at(T0 + MARKER_MS, T0 + MARKER_MS), 100)
    assert store.changes[b"demo/over"] == MARKER


def test_what_is_over_goes_as_quickly_as_it_comes() -> None:
    """Markers come at a steady rate for ten days, far more than one look at a time covers."""
    store = new_store()
    sweep = Retention(store, UndoLog())
    a_time, looks, most = 120, 20, 0
    for number in range(100):
        now_ms = T0 + number * MARKER_MS // 10
        ended(store, [b"demo/%d-%d" % (each, number) for each in range(a_time)], now_ms)
        sweep.wrote(a_time)
        for _ in range(2 * a_time // looks):
            swept(store, sweep, now_ms, looks)
        most = max(most, len(list(store._rows.scan(b"k", b"l"))))
    live = 10 * a_time
    assert most <= live + a_time
    assert len(led_to(store)) == live


def test_a_sweep_reads_nothing_of_what_waits_or_is_not_over() -> None:
    rows = Watched(MemoryMap())
    store = new_store(rows)
    for number in range(200):
        waits = encode_pending(ROW._replace(due_ms=T0 + 10**12, seq=number))
        store.keep(b"demo/w%d" % number, waits, Location(IN_TIMELINE, T0 + 10**12, number))
        store.end(b"demo/o%d" % number, MARKER, MARKER_MS)
    commit(store)
    sweep, rows.read = Retention(store, UndoLog()), 0
    for _ in range(10):
        assert swept(store, sweep, T0 + MARKER_MS - 1, 100) == set()
    assert rows.read == 0
    sweep.sweep(at(T0 + MARKER_MS, T0 + MARKER_MS), 1_000)
    assert (len(store.changes), rows.read) == (200, 1)


def test_a_sweep_is_bounded_and_says_that_there_is_more() -> None:
    store = new_store()
    ended(store, [b"demo/%d" % number for number in range(1_000)])
    sweep = Retention(store, UndoLog())
    sweep.wrote(10**6)
    assert len(swept(store, sweep, T0 + MARKER_MS, 10)) == 40
    assert sweep.behind
    assert len(swept(store, sweep, T0 + MARKER_MS, 10)) == 10


def test_a_name_that_began_anew_is_left_alone() -> None:
    store = new_store()
    ended(store, [b"demo/a", b"demo/b"])
    waits = encode_pending(ROW._replace(due_ms=T0 + 10**12, seq=1))
    store.keep(b"demo/a", waits, Location(IN_TIMELINE, T0 + 10**12, 1))
    commit(store)
    assert swept(store, Retention(store, UndoLog()), T0 + MARKER_MS, 100) == {b"demo/b"}


def test_an_id_that_ends_all_day_long_is_led_to_no_more_often_than_it_ended_in_a_day() -> None:
    store = new_store()
    sweep = Retention(store, UndoLog())
    a_day = 96
    for number in range(3 * a_day):
        now_ms = T0 + number * MARKER_MS // a_day
        ended(store, [b"demo/a"], now_ms)
        assert swept(store, sweep, now_ms, 100) == set()
    assert len(led_to(store)) <= a_day
    assert swept(store, sweep, now_ms + MARKER_MS, 100) == {b"demo/a"}
    assert led_to(store) == []


def test_what_a_policy_remembers_for_longer_now_is_forgotten_then() -> None:
    hour = MARKER_MS // 24
    store = new_store()
    store.end(b"demo/a", MARKER, hour)
    commit(store)
    sweep = Retention(store, UndoLog(), lambda _: 3 * hour)
    assert swept(store, sweep, T0 + 3 * hour - 1, 100) == set()
    assert swept(store, sweep, T0 + 4 * hour, 100) == {b"demo/a"}
    assert led_to(store) == []


def test_an_owner_after_a_replay_looks_at_each_name_once() -> None:
    """Half of what is left is over when it comes by; the rest is led to from then on."""
    store = new_store()
    ended(store, [b"demo/old%d" % number for number in range(30)])
    ended(store, [b"demo/new%d" % number for number in range(30)], T0 + MARKER_MS // 2)
    store = reopened(store)
    sweep = Retention(store, UndoLog())
    gone: set[bytes] = set()
    for _ in range(4):
        assert not store.ends.whole
        gone |= swept(store, sweep, T0 + MARKER_MS, 19)
    assert len(gone) == 30
    assert store.ends.whole
    assert len(led_to(store)) == 30
    again = Retention(ScheduleStore(store._rows), UndoLog())
    assert again._store.ends.whole
    rows = [swept(again._store, again, T0 + 2 * MARKER_MS, 19) for _ in range(2)]
    assert sum(map(len, rows)) == 30


def test_an_owner_that_was_one_before_leads_to_each_name_once() -> None:
    """Its store followed another owner meanwhile; what ended before the first sweep is met too."""
    store = new_store()
    ended(store, [b"demo/%d" % number for number in range(5)])
    store._rows.write({keys.META_ENDS: None})
    store = ScheduleStore(store._rows)
    sweep = Retention(store, UndoLog())
    ended(store, [b"demo/own"])
    for _ in range(2):
        swept(store, sweep, T0 + 1_000, 4)
    ended(store, [b"demo/later"], T0 + 2_000)
    assert store.ends.whole
    assert sorted(led_to(store)) == sorted(
        [*(b"demo/%d" % n for n in range(5)), b"demo/own", b"demo/later"]
    )


def test_a_walk_keeps_pace_with_what_is_written_meanwhile() -> None:
    store = reopened(filled())
    sweep = Retention(store, UndoLog())
    sweep.wrote(10_000)
    assert sweep.behind
    swept(store, sweep, T0, 100)
    assert not sweep.behind


def test_names_that_cannot_be_read_are_damage() -> None:
    store = filled()
    ((key, _),) = [row for row in store._rows.scan(b"e", b"f") if b"over" in row[1]]
    store._rows.write({key: b"\1"})
    with pytest.raises(Damaged, match="cannot be read"):
        Retention(store, UndoLog()).sweep(at(T0 + MARKER_MS, T0 + MARKER_MS), 100)
