"""A log comes out again where payloads went into day files and came back, in time or late."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.engine.day_files import Gathered, Place, PutAside
from belfry.playback.filed_payloads import file_as_logged
from belfry.store.layout.day_files import (
    Entry,
    may_go,
    payload_in,
    reference_to,
    without_payload,
)
from belfry.store.layout.day_reference import DAY_MS, DayFile
from belfry.store.layout.pending import decode_pending
from tests.unit.engine.driver import T0
from tests.unit.playback.rows import over
from tests.unit.playback.trail import Leaving, play

FAR: Final = T0 + 30 * DAY_MS
PAYLOAD: Final = b"a payload that is worth a file " * 5
FILE: Final = DayFile(FAR // DAY_MS, 0, b"12345678")


def asked(trail: Leaving, *names: str, now_ms: int = T0) -> None:
    for name in names:
        trail.ask(now_ms, schedule_id=name, at=FAR, payload=name.encode() + PAYLOAD)
    trail.step(now_ms)


def gone(trail: Leaving, now_ms: int) -> list[Entry]:
    """Put everything aside that may go."""
    found, rows, entries = Gathered(), list[PutAside](), list[Entry]()
    trail.engine.day_files.gather(Place(), (0, 0), found, 1_000)
    for offset, (name, record) in enumerate(found.rows):
        assert may_go(record)
        payload = payload_in(record)
        rows.append(PutAside(name, record, reference_to(FILE, offset, payload)))
        entries.append(Entry(name, offset, payload))
    trail.engine.put_aside(now_ms, rows)
    trail.end(now_ms)
    return entries


def back(trail: Leaving, entries: list[Entry], now_ms: int) -> None:
    trail.engine.put_back(now_ms, FILE, entries)
    trail.end(now_ms)


@pytest.mark.parametrize("late_ms", [-DAY_MS, 500])
@pytest.mark.parametrize("cold", [True, False])
def test_a_log_comes_out_again(late_ms: int, cold: bool) -> None:
    trail = Leaving()
    asked(trail, "a", "b", "c", "d")
    entries = gone(trail, T0 + 10)
    trail.ask(T0 + 20, action="CANCEL", schedule_id="b")
    trail.ask(T0 + 20, action="PAUSE", schedule_id="d")
    asked(trail, "c", now_ms=T0 + 20)
    trail.own(T0 + 30, cold=cold)
    if late_ms < 0:
        back(trail, entries, FAR + late_ms)
    trail.run(FAR)
    if late_ms > 0:
        assert trail.events == []
        back(trail, entries, FAR + late_ms)
        trail.run(FAR + late_ms)
    assert sorted(fired[3] or b"" for _, fired in trail.events) == [b"a" + PAYLOAD, b"c" + PAYLOAD]
    outcome = play(trail)
    assert outcome.differs is None, outcome.differs
    assert outcome.events == 2


def test_a_row_that_refers_to_something_else_is_a_difference() -> None:
    trail = Leaving()
    asked(trail, "a")
    found = Gathered()
    trail.engine.day_files.gather(Place(), (0, 0), found, 1_000)
    ((name, record),) = found.rows
    trail.engine.put_aside(T0 + 10, [PutAside(name, record, reference_to(FILE, 0, b"other"))])
    trail.end(T0 + 10)
    assert decode_pending(record).name == name
    outcome = play(trail)
    assert outcome.differs is not None
    assert outcome.differs.what == "row"


def test_rows_that_no_file_concerns_hinder_none_of_the_others() -> None:
    trail = Leaving()
    asked(trail, "a", "b")
    gathered = Gathered()
    trail.engine.day_files.gather(Place(), (0, 0), gathered, 1_000)
    kept = dict(gathered.rows)
    stands = reference_to(FILE, 0, payload_in(kept[b"demo/b"]))
    referring = without_payload(kept[b"demo/b"], stands)
    partition = play(trail).player._branches[0].partition
    assert partition.engine is not None
    logged = {
        b"demo/gone": None,
        b"demo/over": over(T0),
        b"demo/nobodys": kept[b"demo/a"],
        b"demo/a": kept[b"demo/a"],
        b"demo/b": referring,
    }
    file_as_logged(partition.engine, partition.store, logged, T0 + 10)
    effects = partition.engine.claim(None)
    assert (effects.rows, effects.now_ms) == ({b"demo/b": referring}, T0 + 10)
