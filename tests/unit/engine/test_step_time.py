"""A step stops amid its batch when its time is up: some requests take long to be judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.unit.engine.driver import T0, Driver

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
