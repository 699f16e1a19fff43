"""Rows of a step that was rolled back, which a stranger copies behind the last manifest.

Nobody may fold them: they are no state.  The next owner leaves them, and its first commit writes
what is state once more, so that everybody who reads the changelog later folds that behind them.
"""

from __future__ import annotations

import pytest

from belfry.store.net import Change
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import HoleInChangelog, Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import HOUR, T0, Driver


def read(changes: list[Change]) -> tuple[Replay, MemoryMap]:
    rows = MemoryMap()
    found = Replay(ScheduleStore(rows))
    found.apply(changes, range(len(changes)), T0)
    return found, rows


def state(changes: list[Change]) -> dict[bytes, bytes]:
    """What a replay of a changelog comes to, but for where it ends."""
    replay, rows = read(changes)
    replay.finish(T0)
    return {
        key: row for key, row in rows.scan(b"", b"\xff") if key[:1] != b"m" and b"\0m" not in key
    }


def with_copies() -> tuple[Driver, list[Change]]:
    """A partition in which `a` waits and `b` has fired, and copies of a step that was not kept."""
    driver = Driver()
    driver.ask(schedule_id="a", at=T0 + HOUR)
    driver.ask(schedule_id="b", at=T0 + 5)
    driver.step(T0)
    driver.step(T0 + 5)
    driver.ask(schedule_id="a", action="CANCEL")
    driver.ask(schedule_id="b", at=T0 + HOUR)
    driver.ask(schedule_id="c", at=T0 + HOUR, request_id="asked-once")
    lost = driver.step(T0 + 6, commit=False).effects.rows
    copies = [(key, row) for key, row in lost.items() if not key.startswith(b"\0m")]
    assert len(copies) == 4
    return driver, copies


def test_they_stop_a_take_over_that_does_not_know_whose_they_are() -> None:
    driver, copies = with_copies()
    replay, _ = read([*driver.changelog, *copies])
    assert len(replay.unclosed) == 4
    with pytest.raises(HoleInChangelog):
        replay.check()


def test_the_next_owner_overwrites_them() -> None:
    driver, copies = with_copies()
    replay, rows = read([*driver.changelog, *copies])
    unclosed_rows = replay.leave_unclosed()
    assert sorted(unclosed_rows) == sorted(key for key, _ in copies)
    replay.finish(T0)
    before = list(driver.changelog)
    driver.start(rows)
    effects = driver.engine.claim(None, unclosed_rows=unclosed_rows)
    assert set(unclosed_rows) <= effects.rows.keys()
    driver.end(T0 + 7)
    claimed = driver.changelog[len(before) :]
    assert state([*before, *copies, *claimed]) == state([*before, *claimed])


def test_what_was_folded_in_part_is_not_left() -> None:
    driver, _ = with_copies()
    replay, _ = read(driver.changelog)
    replay._unclosed = 1
    assert replay.unclosed == ()
