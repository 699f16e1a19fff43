"""Pause, resume and the kill switch: nothing fires meanwhile, and nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import paused
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import HOUR, T0, Driver

NAME = b"demo/a"


def paused_at(due_ms: int, **fields: Any) -> Driver:
    """A partition whose schedule `a` was paused at T0 + 1."""
    driver = Driver()
    driver.ask(at=due_ms, **fields)
    driver.step(T0)
    driver.ask(action="PAUSE")
    assert driver.step(T0 + 1).outcomes == ["PAUSED"]
    return driver


def resume(driver: Driver, now_ms: int) -> None:
    driver.ask(action="RESUME")
    assert driver.step(now_ms).outcomes == ["RESUMED"]


def test_what_is_paused_does_not_fire_and_wakes_nobody() -> None:
    # T0   1       5     1h
    # a@5  PAUSE   ·     RESUME ► fires
    driver = paused_at(T0 + 5)
    assert driver.engine.next_due_ms() is None
    assert driver.run(T0 + HOUR) == []
    assert driver.engine.pending == 1
    resume(driver, T0 + HOUR)
    assert driver.run(T0 + HOUR) == ["a"]


def test_what_is_resumed_in_time_fires_at_its_instant() -> None:
    driver = paused_at(T0 + 5)
    resume(driver, T0 + 2)
    assert driver.engine.next_due_ms() == T0 + 5
    (shot,) = driver.step(T0 + 5).shots
    assert shot.header("belfry-scheduled-at") == b"2027-01-15T08:00:00.005Z"


def test_pause_and_resume_leave_version_and_definition_alone() -> None:
    driver = paused_at(T0 + HOUR, payload=b"p", group="g")
    row = driver.step(T0 + 2).effects.rows.get(NAME) or dict(driver.changelog)[NAME]
    assert row is not None
    assert paused(row)
    assert decode_pending(row).version == 1
    resume(driver, T0 + 2)
    after = dict(driver.changelog)[NAME]
    assert after is not None
    assert not paused(after)
    assert decode_pending(after) == decode_pending(row)


def test_a_resumed_one_whose_neighbour_has_fired_is_not_forgotten() -> None:
    # a and b are due together; the chunk ends between them, and the paused one comes first.
    driver = Driver()
    for name in "abc":
        driver.ask(schedule_id=name, at=T0 + 5)
    driver.step(T0)
    driver.ask(schedule_id="a", action="PAUSE")
    driver.step(T0 + 1)
    driver.ask(schedule_id="a", action="RESUME")
    assert driver.step(T0 + 5, at_most=1).ids == ["b"]
    assert sorted(driver.run(T0 + 5)) == ["a", "c"]


def test_another_payload_keeps_the_pause_and_another_instant_does_not() -> None:
    driver = paused_at(T0 + 5)
    driver.ask(at=T0 + 5, payload=b"new")
    assert driver.step(T0 + 2).outcomes == ["UPDATED"]
    assert driver.run(T0 + 5) == []
    driver.ask(at=T0 + 9, payload=b"new")
    assert driver.step(T0 + 6).outcomes == ["UPDATED"]
    assert driver.run(T0 + 9) == ["a"]


def test_a_late_one_can_be_paused_while_its_tenant_is_held() -> None:
    driver = Driver()
    driver.tenants.hold("demo", "its topic is missing")
    driver.ask(at=T0 + 5)
    driver.step(T0)
    driver.step(T0 + 6)
    driver.ask(action="PAUSE")
    driver.step(T0 + 7)
    driver.tenants.hold("demo", "")
    assert driver.run(T0 + 8) == []
    assert driver.engine.pending == 1
    resume(driver, T0 + 9)
    assert driver.run(T0 + 9) == ["a"]


def test_a_pause_survives_the_owner() -> None:
    driver = paused_at(T0 + 5)
    replay = Replay(ScheduleStore(rows := type(driver.rows)()))
    log = driver.changelog
    replay.apply(log, range(len(log)), T0 + 2)
    replay.finish(T0 + 2)
    driver.start(rows)
    assert driver.run(T0 + HOUR) == []
    assert driver.engine.pending == 1
    resume(driver, T0 + HOUR)
    assert driver.run(T0 + HOUR) == ["a"]


@pytest.mark.parametrize("late", [False, True])
def test_the_kill_switch_holds_a_tenant_and_nobody_else(late: bool) -> None:
    driver = Driver()
    for tenant in ("demo", "other"):
        driver.ask(tenant=tenant, schedule_id=tenant, at=T0 + 5)
    driver.step(T0)
    driver.apply(paused=True)
    assert driver.run(T0 + 6) == ["other"]
    driver.ask(schedule_id="demo", action="TRIGGER")
    step = driver.step(T0 + 6)
    assert (step.outcomes, step.codes) == (["REJECTED"], ["tenant_held"])
    if late:
        assert driver.run(T0 + 25 * HOUR) == []
    assert driver.engine.pending == 1
    driver.apply(paused=False)
    assert driver.run(T0 + 26 * HOUR) == ["demo"]
