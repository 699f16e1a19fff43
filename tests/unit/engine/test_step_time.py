"""A step ends when its time is up: some requests take long to be judged, and some fires as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from belfry.engine.firing import AT_A_TIME
from tests.unit.engine.driver import HOUR, T0, Driver
from tests.unit.engine.test_aside import SEVEN, learn, lying, send, take, two_tenants

SLOW: Final[dict[str, Any]] = {
    "kind": "RRULE",
    "rrule": "FREQ=DAILY EXRULE:FREQ=YEARLY",
    "except_cron": "0-58 * * * *",
    "start_at": T0,
}


def after(requests: int) -> Callable[[], bool]:
    """Says that the time is up once it was asked so often."""
    left = [requests]

    def is_up() -> bool:
        left[0] -= 1
        return left[0] <= 0

    return is_up


def taken_in(driver: Driver, time_is_up: Callable[[], bool]) -> list[str]:
    effects = driver.engine.accept(driver.batch(), T0, None, time_is_up)
    driver.end(T0)
    return [f"{each.schedule_id} {each.code}" for each in effects.lifecycle]


@pytest.mark.parametrize(("each", "steps"), [(1, 7), (3, 3), (7, 1), (100, 1)])
def test_each_request_has_one_verdict_however_little_time_there_is(each: int, steps: int) -> None:
    driver, told, done = Driver(), list[str](), 0
    for number in range(7):
        driver.ask(schedule_id=f"s{number}", **SLOW)
    while driver.engine.position < len(driver.source):
        told += taken_in(driver, after(each))
        done += 1
    assert told == [f"s{number} never_fires" for number in range(7)]
    assert done == steps


def test_what_was_set_aside_is_taken_in_by_as_many_steps_as_it_takes() -> None:
    driver = two_tenants()
    for number in range(5):
        send(driver, "slow", SEVEN, schedule_id=f"s{number}", request_id=f"r{number}")
    take(driver)
    learn(driver)
    told, left = list[str](), list[int]()
    while driver.engine.aside.any:
        effects = driver.engine.take_aside(T0, {}, after(2))
        told += [each.schedule_id for each in effects.lifecycle]
        driver.end(T0)
        left.append(lying(driver))
    assert told == [f"s{number}" for number in range(5)]
    assert left == [3, 1, 0]


def test_others_fire_between_two_steps() -> None:
    driver = Driver()
    driver.ask(tenant="other", schedule_id="due", at=T0 + 5)
    driver.step(T0)
    for number in range(3):
        driver.ask(schedule_id=f"s{number}", **SLOW)
    assert taken_in(driver, after(1)) == ["s0 never_fires"]
    assert driver.step(T0 + 5, take=0).ids == ["due"]
    assert taken_in(driver, after(1)) == ["s1 never_fires"]


def test_what_was_rolled_back_is_taken_in_again() -> None:
    driver = Driver()
    for number in range(3):
        driver.ask(schedule_id=f"s{number}", **SLOW)
    driver.engine.accept(driver.batch(), T0, None, after(2))
    driver.end(T0, commit=False)
    assert driver.engine.position == 0
    assert taken_in(driver, after(2)) == ["s0 never_fires", "s1 never_fires"]


def due(ways: int, tenants: int = 1) -> Driver:
    """Two hundred events of so many tenants are due, at so many instants."""
    driver = Driver()
    for number in range(200):
        tenant, at = f"t{number % tenants}", T0 + 1 + number % ways
        driver.ask(tenant=tenant, schedule_id=f"{number % ways:03} {number:03}", at=at)
    driver.step(T0)
    return driver


def fired(driver: Driver, now_ms: int, time_is_up: Callable[[], bool]) -> list[str]:
    effects = driver.engine.fire_due(now_ms, 1_000, time_is_up)
    found = [dict(each[4])["belfry-schedule-id"] or b"" for each in effects.fired]
    driver.end(now_ms)
    return [each.decode() for each in found]


@pytest.mark.parametrize("tenants", [1, 100], ids=["one", "gathered"])
@pytest.mark.parametrize("ways", [1, 7, 200])
def test_what_is_due_fires_once_however_little_time_there_is(ways: int, tenants: int) -> None:
    driver = due(ways, tenants)
    steps = list[list[str]]()
    while driver.engine.next_due_ms() is not None:
        steps.append(fired(driver, T0 + HOUR, after(1)))
    assert len(steps) > 1
    assert all(steps)
    ids = [one for step in steps for one in step]
    assert sorted(ids) == sorted(f"{number % ways:03} {number:03}" for number in range(200))
    if tenants == 1:
        assert ids == sorted(ids)


def test_a_step_without_time_is_one_that_fires_fewer() -> None:
    """So who plays the log again needs to know no more of it than how much fired."""
    slow, small = due(7), due(7)
    assert len(fired(slow, T0 + HOUR, after(1))) == AT_A_TIME
    small.engine.fire_due(T0 + HOUR, AT_A_TIME)
    small.end(T0 + HOUR)
    assert slow.changelog == small.changelog


def test_a_backlog_leaves_in_order_however_little_time_there_is() -> None:
    driver = due(7)
    driver.tenants.hold("t0", "its topic is missing")
    while driver.engine.next_due_ms() is not None:
        assert fired(driver, T0 + HOUR, after(1)) == []
    driver.tenants.hold("t0", "")
    steps = [fired(driver, T0 + 2 * HOUR, after(1)) for _ in range(20)]
    assert max(map(len, steps)) < 100
    ids = [one for step in steps for one in step]
    assert ids == sorted(f"{number % 7:03} {number:03}" for number in range(200))


def test_what_catches_up_goes_on_in_the_next_step() -> None:
    driver = Driver()
    for number in range(3):
        every: dict[str, Any] = {
            "interval_ms": 600_000,
            "misfire": "FIRE_ALL",
            "max_lateness_ms": 0,
        }
        driver.ask(kind="EVERY", schedule_id=f"s{number}", start_at=T0, max_fires=6, **every)
    driver.step(T0 - 1)
    late_ms, ids = T0 + 10 * HOUR, list[str]()
    for _ in range(40):
        ids += fired(driver, late_ms, after(1))
        late_ms += 1_000
    assert sorted(ids) == sorted(["s0", "s1", "s2"] * 6)
