"""What a bulk job does to one schedule, and which ones fit its filter."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.job_counts import Budget
from belfry.store.layout.pending import MOST_NUMBER, decode_pending, encode_pending
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


@pytest.mark.parametrize(("move_ms", "delay_ms"), [(HOUR, 2 * HOUR), (-2 * HOUR, 0)])
def test_a_moved_delay_is_the_one_that_a_request_with_the_longer_delay_asks_for(
    move_ms: int, delay_ms: int
) -> None:
    delay: dict[str, Any] = {"at": None, "kind": "AFTER"}
    driver = with_schedules("a", **delay, delay_ms=HOUR)
    begin(driver, "MOVE", move_ms=move_ms)
    assert finish(driver) == ["UPDATED a"]
    driver.ask(schedule_id="a", kind="AFTER", delay_ms=delay_ms, request_id="r")
    assert driver.step(T0, fire=False).outcomes == ["UNCHANGED"]


def test_a_schedule_that_is_not_moved_is_told_with_its_version_and_why() -> None:
    driver = with_schedules("a")
    driver.ask(schedule_id="b", kind="EVERY", interval_ms=HOUR)
    driver.ask(schedule_id="c", kind="AFTER_ACK", after_ack="x", latest_at=T0 + HOUR)
    driver.ask(schedule_id="a", at=T0 + HOUR, payload=b"second")
    assert "REJECTED" not in driver.step(T0).outcomes
    begin(driver, "MOVE", move_ms=-T0 + 5)
    told = {each.schedule_id: each for each in advance(driver)}
    said = "bulk job job. "
    assert {name: (each.version, each.code) for name, each in told.items()} == {
        "a": (2, "instant_in_seconds"),
        "b": (1, "not_movable"),
        "c": (1, "not_movable"),
    }
    assert told["b"].reason == (
        said + "It recurs, and its rule says when it is due: update the rule instead."
    )
    assert told["c"].reason == (
        said + "It waits for an acknowledgement, and has no instant yet: update it instead."
    )


def test_a_schedule_of_the_last_version_is_not_moved() -> None:
    driver = with_schedules("a")
    name, store = b"demo/a", driver.engine._store
    place = store.named(name)
    assert place is not None
    row = decode_pending(store.pending_at(name, place))._replace(version=MOST_NUMBER)
    store.remove(name, place)
    store.keep_in_timeline(name, encode_pending(row), row.due_ms, row.seq)
    driver.engine.claim(None)
    driver.end(T0)
    begin(driver, "MOVE", move_ms=5)
    (told,) = advance(driver)
    assert (told.version, told.code) == (MOST_NUMBER, "version_used_up")
    assert told.reason == (
        "bulk job job. Its version is the largest there is: cancel it, and create it anew."
    )
    assert driver.run(T0 + HOUR) == ["a"]


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
