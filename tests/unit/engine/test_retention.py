"""The sweep ends markers after a day and verdicts after an hour, and nothing else."""

from __future__ import annotations

import pytest

from belfry.engine.effects import Effects
from belfry.engine.maintenance import Retention
from belfry.engine.step import PartitionStatus, Step
from belfry.engine.undo import UndoLog
from belfry.store.layout import keys
from belfry.store.layout.locations import IN_TIMELINE, Location
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.layout.pending import encode_pending
from belfry.store.layout.records import ENDED_FIRED, MARKER_MS, Marker, encode_marker
from belfry.store.layout.verdicts import REQUEST_ID_MS, VerdictRow, encode_verdict
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from tests.unit.store.test_records import ROW

T0 = 1_800_000_000_000
STATE = StoredState(1, T0, Manifest(1, 1, 1, T0, 0, 0, bytes(16)))
MARKER = encode_marker(Marker(ENDED_FIRED, T0, T0, 1, 1, 1))
VERDICT = encode_verdict(VerdictRow("ACCEPTED", T0, None, None, ""))


def at(now_ms: int, heard_ms: int) -> Step:
    step = Step(PartitionStatus(heard_ms=heard_ms), Effects())
    step.now_ms = now_ms
    return step


def swept(store: ScheduleStore, sweep: Retention, now_ms: int, at_most: int) -> set[bytes]:
    sweep.sweep(at(now_ms, now_ms), at_most)
    ended = store.changes
    assert set(ended.values()) <= {None}
    store.commit(STATE)
    return set(ended)


def filled() -> ScheduleStore:
    store = ScheduleStore(MemoryMap())
    store.note(b"demo/over", MARKER)
    store.note(keys.request_key("demo", "r"), VERDICT)
    store.note(keys.SETTINGS_KEY, b'{"partitions": 4}')
    waits = encode_pending(ROW._replace(due_ms=T0 + 10**12, seq=1))
    store.keep(b"demo/waits", waits, Location(IN_TIMELINE, T0 + 10**12, 1))
    store.commit(STATE)
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
def test_what_is_over_ends(after_ms: int, ended: set[bytes]) -> None:
    store = filled()
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


def test_a_few_rows_at_a_time_come_round_to_all() -> None:
    store = ScheduleStore(MemoryMap())
    for number in range(10):
        store.note(b"demo/%d" % number, MARKER)
    store.commit(STATE)
    sweep = Retention(store, UndoLog())
    ended = [swept(store, sweep, T0 + MARKER_MS, 4) for _ in range(3)]
    assert [len(each) for each in ended] == [4, 4, 2]
    store.note(b"demo/0", MARKER)
    store.commit(STATE)
    assert swept(store, sweep, T0 + MARKER_MS, 4) == {b"demo/0"}


def test_after_a_roll_back_the_sweep_begins_again() -> None:
    store = filled()
    undo = UndoLog()
    sweep = Retention(store, undo)
    sweep.sweep(at(T0 + MARKER_MS, T0 + MARKER_MS), 100)
    store.discard()
    undo.roll_back()
    assert b"demo/over" in swept(store, sweep, T0 + MARKER_MS, 100)


def test_what_the_step_changes_is_left_to_it() -> None:
    store = filled()
    store.note(b"demo/over", MARKER)
    Retention(store, UndoLog()).sweep(at(T0 + MARKER_MS, T0), 100)
    assert store.changes == {b"demo/over": MARKER}


def test_what_is_over_never_outgrows_what_is_not() -> None:
    """Markers come at a steady rate for ten days, far more than one look at a time covers."""
    store = ScheduleStore(MemoryMap())
    sweep = Retention(store, UndoLog())
    a_time, looks, most = 120, 20, 0
    for number in range(100):
        now_ms = T0 + number * MARKER_MS // 10
        marker = encode_marker(Marker(ENDED_FIRED, now_ms, now_ms, 1, 1, 1))
        for each in range(a_time):
            store.note(b"demo/%d-%d" % (each, number), marker)
        store.commit(STATE)
        sweep.wrote(a_time)
        while sweep.behind:
            ended = swept(store, sweep, now_ms, looks)
            sweep.wrote(len(ended))
        most = max(most, len(list(store._rows.scan(b"k", b"l"))))
    live = 10 * a_time
    assert live < most < 2.5 * live


def test_a_store_that_was_walked_to_its_end_owes_nothing() -> None:
    store = filled()
    sweep = Retention(store, UndoLog())
    sweep.wrote(10_000)
    assert sweep.behind
    swept(store, sweep, T0, 100)
    assert not sweep.behind
