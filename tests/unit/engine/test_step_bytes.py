"""A step is bounded in bytes: what it takes in, and what it fires, however small the requests."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.batches import FEW
from belfry.tenants.effective import Level
from tests.unit.engine.driver import HOUR, T0, Driver

STEP = 10_000
LARGE = b"x" * 4_000


def driver(level: Level = Level.ALL) -> Driver:
    """An engine whose steps have room for three large payloads."""
    found = Driver(level)
    found.engine._step_bytes = found.engine._step.effects.room = STEP
    found.engine._parts.batches._step_bytes = STEP
    return found


def fired_bytes(step: Any) -> int:
    return sum(len(shot.value or b"") for shot in step.shots)


def take_all(found: Driver, now_ms: int) -> list[Any]:
    """Steps that take the whole source in."""
    steps = [found.step(now_ms, fire=False)]
    while found.engine.position < len(found.source):
        steps.append(found.step(now_ms, fire=False))
    return steps


@pytest.mark.parametrize("level", [Level.ALL, Level.FAILURES])
def test_what_is_due_fires_as_many_bytes_as_a_step_has_room_for(level: Level) -> None:
    found = driver(level)
    names = [f"s{n}" for n in range(10)]
    for n, name in enumerate(names):
        found.ask(schedule_id=name, at=T0 + 10 + n, payload=LARGE)
    take_all(found, T0)
    fired: list[str] = []
    while (due_ms := found.engine.next_due_ms()) is not None and due_ms < T0 + 100:
        step = found.step(T0 + 100, take=0)
        assert STEP - len(LARGE) < fired_bytes(step) <= STEP + len(LARGE) or len(fired) > 6
        fired += step.ids
    assert fired == names


def test_a_step_that_others_leave_little_room_fires_less_and_takes_as_much_in() -> None:
    found = driver()
    for n in range(6):
        found.ask(schedule_id=f"s{n}", at=T0 + 10 + n, payload=LARGE)
    take_all(found, T0)
    for _ in range(3):
        found.send(LARGE)
    engine = found.engine
    sizes = []
    for most_bytes in (1, 2 * len(LARGE), 100 * STEP):
        sizes.append(len(engine.fire_due(T0 + 100, 1_000, most_bytes=most_bytes).fired))
        effects = engine.accept(found.batch(1), T0 + 100)
        assert len(effects.rejected) == 1
        found.end(T0 + 100)
    assert sizes == [1, 2, 3], "one at least, what has room, and never more than without"


def test_what_others_leave_bounds_what_fires_and_nothing_behind_it() -> None:
    """Jobs, moves and what was set aside have the room of a whole step, as ever."""
    found = driver()
    for n in range(2):
        found.ask(schedule_id=f"s{n}", at=T0 + 10 + n, payload=LARGE)
    take_all(found, T0)
    effects = found.engine.fire_due(T0 + 100, 1_000, most_bytes=1)
    assert len(effects.fired) == 1
    assert STEP - 2 * len(LARGE) < effects.room <= STEP - len(LARGE)


def test_a_step_in_which_nothing_may_fire_leaves_the_next_one_its_room() -> None:
    """It is not committed, so the next one goes on with its effects."""
    found = driver()
    found.ask(schedule_id="s", at=T0 + 10, payload=LARGE)
    take_all(found, T0)
    found.engine._parts.due.fire = lambda *_: None  # type: ignore[method-assign]
    effects = found.engine.fire_due(T0 + 100, 1_000, most_bytes=1)
    assert effects.empty
    assert effects.room == STEP


def test_what_is_held_back_counts_as_changed() -> None:
    found = driver()
    for n in range(3):
        found.ask(schedule_id=f"s{n}", at=T0 + 10 + n)
    take_all(found, T0)
    found.note(held="wait")
    assert found.engine.changed == 0
    assert not found.engine.fire_due(T0 + 100, 2).fired
    assert found.engine.changed == 2


def test_a_backlog_fires_as_many_bytes_as_a_step_has_room_for() -> None:
    found = driver()
    names = [f"s{n}" for n in range(10)]
    for n, name in enumerate(names):
        found.ask(schedule_id=name, at=T0 + 10 + n, payload=LARGE)
    take_all(found, T0)
    found.note(held="wait")
    found.step(T0 + 50, take=0)
    found.note(held="")
    fired: list[str] = []
    while len(fired) < 10:
        step = found.step(T0 + 100, take=0)
        assert 0 < fired_bytes(step) <= STEP + len(LARGE)
        fired += step.ids
    assert fired == names


@pytest.mark.parametrize("misfire", ["FIRE_ALL", None])
def test_a_rhythm_that_is_behind_fires_as_many_bytes_as_a_step_has_room_for(
    misfire: str | None,
) -> None:
    found = driver()
    more: dict[str, Any] = {} if misfire is None else {"misfire": misfire, "max_lateness_ms": 1_000}
    found.ask(kind="EVERY", interval_ms=1_000, max_fires=30, payload=LARGE, **more)
    found.step(T0)
    fired, now_ms = 0, T0 + 30_000
    for _ in range(1_000):
        step = found.step(now_ms, take=0)
        assert fired_bytes(step) <= STEP + 2 * len(LARGE)
        fired += len(step.shots)
        now_ms += 100
    assert fired == 30


def test_small_requests_with_large_effects_are_taken_in_over_several_steps() -> None:
    found = driver()
    for n in range(8):
        found.ask(schedule_id=f"s{n}", at=T0 + HOUR, payload=LARGE)
    take_all(found, T0)
    for n in range(8):
        found.ask(schedule_id=f"s{n}", action="TRIGGER")
    steps = take_all(found, T0)
    assert [len(step.shots) for step in steps] == [3, 3, 2]
    assert [name for step in steps for name in step.ids] == [f"s{n}" for n in range(8)]
    for action in ("PAUSE", "RESUME"):
        for n in range(8):
            found.ask(schedule_id=f"s{n}", action=action)
        rows = [sum(map(len, step.effects.rows.values())) for step in take_all(found, T0)]
        assert len(rows) == 3
        assert max(rows) < STEP + 2 * len(LARGE)


def test_refused_records_are_kept_over_several_steps() -> None:
    found = driver()
    for _ in range(9):
        found.send(LARGE)
    steps = take_all(found, T0)
    assert [len(step.effects.rejected) for step in steps] == [3, 3, 3]


def test_plain_requests_around_the_one_that_fills_a_step_are_each_taken_in_once() -> None:
    found = driver(Level.FAILURES)
    found.ask(schedule_id="first", at=T0 + HOUR)
    found.step(T0)
    names = []
    for n in range(9):
        names += [f"p{n}", f"q{n}"]
        found.ask(schedule_id=f"p{n}", at=T0 + 50)
        found.ask(schedule_id=f"q{n}", at=T0 + 50)
        found.send(LARGE)
    steps = take_all(found, T0)
    assert len(steps) == 3
    assert sum(step.effects.outcomes["ACCEPTED"] for step in steps) == 18
    assert all(step.effects.tenants == {"demo"} for step in steps)
    assert found.run(T0 + 50) == names


def test_a_step_that_is_rolled_back_leaves_the_same_to_the_next() -> None:
    found = driver()
    for _ in range(7):
        found.send(LARGE)
    assert len(found.step(T0, commit=False).effects.rejected) == 3
    assert found.engine.position == 0
    assert [len(step.effects.rejected) for step in take_all(found, T0)] == [3, 3, 1]


def test_a_batch_is_not_read_anew_as_a_whole_for_each_few_that_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = driver(Level.FAILURES)
    found.ask(schedule_id="first", at=T0 + HOUR)
    found.step(T0)
    for _ in range(30):
        found.send(LARGE)
    for n in range(20 * FEW):
        found.ask(schedule_id=f"s{n}", at=T0 + HOUR)
    reads: list[Any] = []
    read = found.engine._parts.batches._reader.read

    def counted(record: Any) -> Any:
        reads.append(record)
        return read(record)

    monkeypatch.setattr(found.engine._parts.batches._reader, "read", counted)
    steps = take_all(found, T0)
    assert len(reads) < 3 * len(found.source), "not 14 times as many"
    assert len(steps) < 20, "behind what fills steps, they take more and more again"
    assert found.engine.pending == 20 * FEW + 1
