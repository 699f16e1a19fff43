"""What a bulk job does to one schedule, and which ones fit its filter."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.job_counts import Budget
from tests.unit.engine.driver import HOUR, T0, Driver
from tests.unit.engine.test_jobs import MUCH, advance, begin, finish, job, row, with_schedules


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ({"group": "g"}, ["b", "c"]),
        ({"event_type": "t"}, ["a", "c"]),
        ({"due_from": T0 + HOUR + 1}, ["a", "b"]),
        ({"due_until": T0 + HOUR + 1}, ["c"]),
        ({"state": "PENDING"}, []),
        ({"state": "PAUSED"}, ["a", "b", "c"]),
    ],
)
def test_each_part_of_a_filter_counts(said: dict[str, Any], left: list[str]) -> None:
    driver = Driver()
    driver.ask(schedule_id="a", at=T0 + HOUR, group="g")
    driver.ask(schedule_id="b", at=T0 + HOUR, event_type="t")
    driver.ask(schedule_id="c", at=T0 + HOUR + 1)
    driver.step(T0)
    begin(driver, "CANCEL", **said)
    finish(driver)
    assert driver.run(T0 + 2 * HOUR) == left


@pytest.mark.parametrize("action", ["UPSERT", "CREATE", "BULK_STOP"])
def test_a_job_that_another_action_brings_along_is_refused(action: str) -> None:
    driver = Driver()
    driver.ask(action=action, schedule_id="a", at=T0 + HOUR, bulk=job("CANCEL"))
    assert driver.step(T0).codes == ["bad_bulk"]


def test_pause_and_resume() -> None:
    driver = with_schedules("a", "b")
    driver.ask(schedule_id="b", action="PAUSE")
    driver.step(T0)
    begin(driver, "PAUSE", "first")
    assert finish(driver) == ["PAUSED a", "UNCHANGED b"]
    assert (row(driver, "first").done, row(driver, "first").unchanged) == (1, 1)
    assert driver.run(T0 + HOUR) == []
    begin(driver, "RESUME", "second", state="PAUSED")
    assert finish(driver) == ["RESUMED a", "RESUMED b"]
    assert sorted(driver.run(T0 + HOUR)) == ["a", "b"]


@pytest.mark.parametrize("move_ms", [HOUR, -HOUR // 2, 1])
def test_a_move_changes_the_instant_and_meets_nothing_twice(move_ms: int) -> None:
    names = [f"s{number}" for number in range(5)]
    driver = with_schedules(*names)
    begin(driver, "MOVE", move_ms=move_ms)
    assert finish(driver, Budget(10, 2)) == [f"UPDATED {name}" for name in names]
    due_ms = T0 + HOUR + move_ms
    assert driver.run(due_ms - 1) == []
    assert driver.run(due_ms) == names


def test_a_move_into_the_past_fires_at_once_and_keeps_the_order() -> None:
    driver = with_schedules("b", "a")
    driver.step(T0 + 10)
    begin(driver, "MOVE", move_ms=-2 * HOUR)
    finish(driver)
    assert driver.run(T0 + 10) == ["b", "a"]


def test_a_move_gives_a_version_of_its_own() -> None:
    driver = with_schedules("a")
    begin(driver, "MOVE", move_ms=5)
    (told,) = advance(driver)
    assert (told.version, told.due_at, told.code) == (2, T0 + HOUR + 5, None)
    driver.ask(schedule_id="a", at=T0 + HOUR + 5, request_id="r")
    assert driver.step(T0 + 2_000).outcomes == ["UNCHANGED"]


def test_a_moved_delay_and_a_moved_pause_stay_what_they_are() -> None:
    driver = with_schedules("a", at=None, kind="AFTER", delay_ms=HOUR, jitter_ms=500)
    driver.ask(schedule_id="a", action="PAUSE")
    driver.step(T0)
    begin(driver, "MOVE", move_ms=HOUR)
    finish(driver)
    assert driver.run(T0 + 3 * HOUR) == []
    driver.ask(schedule_id="a", action="RESUME")
    driver.step(T0)
    assert driver.run(T0 + 2 * HOUR - 1) == []
    assert driver.run(T0 + 2 * HOUR + 500) == ["a"]


def test_what_cannot_be_moved_is_refused_and_counted() -> None:
    driver = with_schedules("a")
    driver.ask(schedule_id="b", kind="EVERY", interval_ms=HOUR)
    driver.step(T0)
    begin(driver, "MOVE", move_ms=-T0 + 5)
    told = advance(driver)
    assert [each.code for each in told] == ["instant_in_seconds", "not_movable"]
    assert [str(each.outcome) for each in told] == ["REJECTED"] * 2
    assert row(driver).refusals == {"instant_in_seconds": 1, "not_movable": 1}
    assert driver.run(T0 + HOUR) == ["a", "b"]


def test_a_trigger_fires_each_once_and_leaves_its_own_instant() -> None:
    driver = with_schedules("a", "b")
    begin(driver, "TRIGGER")
    effects = driver.engine.advance_jobs(T0 + 1_000, MUCH)
    assert [fired[1] for fired in effects.fired] == [b"a", b"b"]
    assert [each.fire_id for each in effects.lifecycle] == [i.decode() for i in effects.fire_ids]
    driver.end(T0 + 1_000)
    assert not driver.engine.jobs.under_way
    assert driver.run(T0 + HOUR) == ["a", "b"]


def test_a_trigger_waits_while_its_tenant_cannot_fire() -> None:
    driver = with_schedules("a")
    begin(driver, "TRIGGER")
    driver.tenants.hold("demo", "its topic is missing")
    assert advance(driver) == []
    driver.tenants.hold("demo", "")
    assert finish(driver) == ["TRIGGERED a"]


def test_outcomes_say_whose_they_are() -> None:
    driver = with_schedules("a")
    offset = driver.ask(action="BULK", schedule_id="j", bulk=job("PAUSE"), reason="end of season")
    driver.step(T0)
    (told,) = advance(driver)
    assert told.reason == "bulk job j: end of season"
    assert (told.source_partition, told.source_offset) == (0, offset)
    assert told.generation is not None
