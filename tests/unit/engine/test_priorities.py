"""Priorities of schedules: among what is held back of a tenant, higher ones leave first."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.tenants.effective import Level
from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import HOUR, T0, Driver

WHY = "its topic is missing"


def held(*priorities: int | None, **fields: Any) -> Driver:
    """A driver with schedules s0, s1, …, due one after the other, all of them held back by now."""
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(T0)
    for number, priority in enumerate(priorities):
        asked = {"at": T0 + number, **fields}
        driver.ask(schedule_id=f"s{number}", priority=priority, **asked)
    driver.tenants.hold("demo", WHY)
    driver.step(T0)
    assert driver.run(T0 + 1_000) == []
    return driver


def released(driver: Driver, at_most: int = 1_000, now_ms: int = T0 + 2_000) -> list[str]:
    """What fires, in its order, once nothing holds the tenant back."""
    driver.tenants.hold("demo", "")
    return driver.run(now_ms, at_most)


@pytest.mark.parametrize("at_most", [1, 2, 1_000])
def test_of_a_tenant_that_comes_back_higher_ones_leave_first(at_most: int) -> None:
    driver = held(None, -9, 3, 0, 9, 3, -1)
    assert released(driver, at_most) == ["s4", "s2", "s5", "s0", "s3", "s6", "s1"]
    assert driver.engine.pending == 0


@pytest.mark.parametrize("lost", [False, True], ids=["from disk", "from the changelog"])
def test_the_next_owner_knows_the_priorities(lost: bool) -> None:
    driver = held(None, -9, 3, 0, 9, 3, -1)
    if lost:
        rebuilt(driver, T0 + 1_500)
    else:
        driver.start(driver.rows)
    assert released(driver, 2) == ["s4", "s2", "s5", "s0", "s3", "s6", "s1"]


def test_a_step_that_is_rolled_back_is_done_again_in_the_same_order() -> None:
    driver = held(0, 5, -5, 9)
    driver.tenants.hold("demo", "")
    first = driver.step(T0 + 2_000, 2, commit=False).ids
    assert driver.step(T0 + 2_000, 2).ids == first == ["s3", "s1"]
    assert driver.run(T0 + 2_000) == ["s0", "s2"]


def test_under_a_rate_what_is_higher_goes_first_and_what_is_low_waits() -> None:
    driver = Driver()
    driver.apply(max_fires_per_second=1.0)
    for number in range(4):
        driver.ask(schedule_id=f"low{number}", at=T0 + 1, priority=-1)
    driver.step(T0)
    found = []
    for second in range(1, 9):
        now_ms = T0 + second * 1_000
        if second <= 4:
            driver.ask(schedule_id=f"high{second}", at=now_ms, priority=1, timestamp_ms=now_ms)
        driver.step(now_ms, fire=False)
        found += driver.run(now_ms + 500 + second)
    assert found == [f"high{n}" for n in range(1, 5)] + [f"low{n}" for n in range(4)]


def test_an_hour_without_a_worker_is_made_up_for_by_priority() -> None:
    driver = Driver(level=Level.FAILURES)
    for number in range(300):
        high = number % 10 == 9
        driver.ask(schedule_id=f"{'h' if high else 'n'}{number}", at=T0 + number, priority=high * 5)
    driver.step(T0 - 1)
    found = driver.run(T0 + HOUR, 20)
    assert len(found) == len(set(found)) == 300
    last = max(place for place, name in enumerate(found) if name[0] == "h")
    # In due order it would be the last of all: so the scan is ahead of what fires.
    assert last < 100


def test_a_step_moves_a_few_times_as_many_as_it_may_fire() -> None:
    driver = Driver(level=Level.FAILURES)
    for number in range(400):
        driver.ask(schedule_id=f"s{number}", at=T0 + number, priority=1)
    driver.step(T0 - 1)
    before = 0
    for _ in range(4):
        fired = driver.step(T0 + HOUR, 20, take=0).ids
        now = driver.engine._parts.waiting.backlog.get(b"demo", 0)
        assert now + len(fired) - before <= 60
        before = now
    # The scan is ahead of what fires all the same.
    assert before > 80


def test_where_a_step_has_room_for_all_nothing_is_moved() -> None:
    driver = Driver()
    for number in range(20):
        driver.ask(schedule_id=f"s{number}", at=T0 + number, priority=number % 3)
    driver.step(T0 - 1)
    assert driver.step(T0 + 100, 100).ids == [f"s{number}" for number in range(20)]


def test_what_recurs_carries_its_priority_from_fire_to_fire() -> None:
    driver = Driver()
    for name, priority in (("a", None), ("b", 7)):
        every: dict[str, Any] = {"kind": "EVERY", "interval_ms": 60_000, "start_at": T0}
        driver.ask(schedule_id=name, priority=priority, **every)
    driver.step(T0 - 1)
    for minute in range(3):
        now_ms = T0 + minute * 60_000
        driver.tenants.hold("demo", WHY)
        driver.run(now_ms + 10)
        assert released(driver, 1, now_ms + 20) == ["b", "a"]


def test_each_late_occurrence_fires_by_priority() -> None:
    driver = Driver()
    for name, priority in (("low", -3), ("usual", None), ("high", 3)):
        every: dict[str, Any] = {"kind": "EVERY", "interval_ms": 60_000, "misfire": "FIRE_ALL"}
        driver.ask(schedule_id=name, priority=priority, start_at=T0, max_fires=5, **every)
    driver.step(T0 - 1)
    driver.step(T0 + HOUR)
    found = [name for n in range(1, 9) for name in driver.step(T0 + HOUR + 20 * n, 4).ids]
    assert found == ["high"] * 5 + ["usual"] * 5 + ["low"] * 5


def test_an_update_gives_what_is_held_another_priority() -> None:
    driver = held(0, 0, 0)
    driver.ask(schedule_id="s2", at=T0 + 2, priority=4)
    assert driver.step(T0 + 1_100).outcomes == ["UPDATED"]
    driver.ask(schedule_id="s2", at=T0 + 2, priority=4)
    assert driver.step(T0 + 1_100).outcomes == ["UNCHANGED"]
    assert released(driver, 1) == ["s2", "s0", "s1"]


def test_what_is_held_can_be_cancelled_and_paused() -> None:
    driver = held(1, 2, 3)
    driver.ask(action="CANCEL", schedule_id="s2")
    driver.ask(action="PAUSE", schedule_id="s1")
    assert driver.step(T0 + 1_100).outcomes == ["CANCELLED", "PAUSED"]
    assert released(driver) == ["s0"]
    driver.ask(action="RESUME", schedule_id="s1")
    driver.step(T0 + 3_000)
    assert driver.run(T0 + 3_000) == ["s1"]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"priority": 10}, "priority 10 is not allowed: -9 to 9, where higher ones go first"),
        ({"priority": -10}, "priority -10 is not allowed: -9 to 9"),
        ({"priority": 1, "group": "g"}, "overtake others of group 'g', and those keep their due"),
    ],
)
def test_a_priority_that_cannot_be_is_refused(asked: dict[str, Any], reason: str) -> None:
    driver = Driver()
    driver.ask(at=T0, **asked)
    step = driver.step(T0)
    assert step.codes == ["bad_priority"]
    told = dict(step.effects.rejected[0].headers)["belfry-error-reason"] or b""
    assert reason in told.decode()


def test_a_group_may_say_that_its_priority_is_the_usual_one() -> None:
    driver = Driver()
    driver.ask(at=T0, group="g", priority=0)
    assert driver.step(T0 - 1).outcomes == ["ACCEPTED"]
