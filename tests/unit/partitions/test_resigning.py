"""All rows of a partition are written once more, whatever else its steps write and take back."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.partitions import resigning
from belfry.partitions.resigning import ROWS, Resigning
from belfry.store.layout import keys
from belfry.store.ordered_map import MemoryMap
from belfry.store.recovery import changelog_rows
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Level
from tests.unit.engine.driver import T0, Driver

Rows = dict[bytes, bytes | None]


def stored(count: int) -> ScheduleStore:
    """A store of so many rows."""
    rows = MemoryMap()
    row = b"\x01\x06row"
    rows.write({keys.named_key(b"t/%06d" % each): row for each in range(count)})
    return ScheduleStore(rows)


def step(walk: Resigning, **more: Any) -> Rows:
    """What is added to a step that is committed."""
    rows: Rows = more.get("rows", {})
    walk.add(rows)
    walk.committed()
    return rows


def walked(walk: Resigning) -> list[bytes]:
    """Names that are written, step by step, until the walk is over."""
    names: list[bytes] = []
    while walk.under_way:
        names += step(walk)
    return names


def names(count: int) -> list[bytes]:
    return [b"t/%06d" % each for each in range(count)]


@pytest.mark.parametrize("count", [0, 1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 500])
def test_every_row_is_written_once(count: int) -> None:
    assert walked(Resigning(stored(count), lambda: True)) == names(count)


def test_a_step_that_is_taken_back_is_done_again() -> None:
    walk = Resigning(stored(2 * ROWS + 500), lambda: True)
    first = list(step(walk))
    for _ in range(2):
        taken_back: Rows = {}
        walk.add(taken_back)
        walk.aborted()
        assert list(taken_back) == names(2 * ROWS)[ROWS:]
    assert walk.under_way
    assert first + walked(walk) == names(2 * ROWS + 500)


def test_the_last_step_taken_back_does_not_end_the_walk() -> None:
    asked: list[int] = []

    def done() -> bool:
        asked.append(1)
        return True

    walk = Resigning(stored(10), done)
    walk.add({})
    walk.aborted()
    assert (walk.under_way, asked) == (True, [])
    assert walked(walk) == names(10)
    assert (walk.under_way, asked) == (False, [1])


def test_what_the_step_itself_writes_wins() -> None:
    rows: Rows = {b"t/000001": b"new", b"t/000002": None}
    step(Resigning(stored(4), lambda: True), rows=rows)
    assert (rows[b"t/000001"], rows[b"t/000002"]) == (b"new", None)
    assert sorted(rows) == names(4)


def test_a_row_that_went_in_between_does_not_come_back() -> None:
    """Locally it is written at the commit, and by the overlay before."""
    store = stored(4)
    store.note(b"t/000002", None)
    store.note(b"t/000003", b"newer")
    rows: Rows = {}
    step(Resigning(store, lambda: True), rows=rows)
    assert b"t/000002" not in rows
    assert rows[b"t/000003"] == b"newer"


def test_done_is_asked_until_it_says_so() -> None:
    answers = [False, False, True]
    walk = Resigning(stored(3), lambda: answers.pop(0))
    assert list(step(walk)) == names(3)
    assert walk.under_way
    assert step(walk) == {}
    assert walk.under_way
    assert step(walk) == {}
    assert (walk.under_way, answers) == (False, [])


def test_large_rows_are_spread_over_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resigning, "BYTES", 10)
    walk = Resigning(stored(9), lambda: True)
    first = list(step(walk))
    assert len(first) < 9
    assert first + walked(walk) == names(9)


@pytest.mark.parametrize(("count", "steps"), [(0, 1), (ROWS - 1, 1), (ROWS, 2)])
def test_a_part_that_is_not_full_is_the_last(count: int, steps: int) -> None:
    walk, taken = Resigning(stored(count), lambda: True), 0
    while walk.under_way:
        step(walk)
        taken += 1
    assert taken == steps


def test_a_step_is_full_with_the_row_that_goes_beyond_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows of 5 bytes: two fit 10 bytes to the last one, and the third one is written yet."""
    monkeypatch.setattr(resigning, "BYTES", 10)
    assert len(step(Resigning(stored(9), lambda: True))) == 3


def test_an_end_that_was_taken_back_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = Resigning(stored(9), lambda: True)
    walk.add({})
    walk.aborted()
    monkeypatch.setattr(resigning, "BYTES", 10)
    first = list(step(walk))
    assert walk.under_way
    assert first + walked(walk) == names(9)


def test_what_is_written_is_what_the_changelog_holds() -> None:
    """Schedules that wait, markers of those that are over, verdicts, and the rest."""
    driver = Driver(Level.ALL)
    driver.ask(schedule_id="a", request_id="1", at=T0 + 10**9)
    driver.ask(schedule_id="b", request_id="2", at=T0 + 10**9)
    driver.ask(schedule_id="b", request_id="3", action="CANCEL")
    driver.step(T0)
    store = ScheduleStore(driver.rows)
    rows: Rows = {}
    step(Resigning(store, lambda: True), rows=rows)
    rows.pop(keys.IDENTITY_KEY, None)
    assert rows == dict(changelog_rows(store))
    assert len(rows) >= 4
