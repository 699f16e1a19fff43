"""A minute bucket ends once, when its minute is over and what was due in it has left."""

from __future__ import annotations

from belfry.engine.drained import Drained
from tests.unit.engine.driver import T0, Driver

MINUTE = 60_000


def ends(driver: Driver) -> list[Drained]:
    return list(driver.engine.drained())


def keep_going(driver: Driver, now_ms: int) -> None:
    """A step that only shows that its owner is there."""
    driver.engine.claim(None)
    driver.end(now_ms)


def test_an_end_is_told_when_the_minute_is_over() -> None:
    driver = Driver()
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.ask(schedule_id="b", at=T0 + 10)
    driver.step(T0)
    assert driver.run(T0 + 12) == ["a", "b"]
    assert ends(driver) == []
    keep_going(driver, T0 + MINUTE)
    assert ends(driver) == [Drained(b"demo", T0, T0 + 12, 2)]
    keep_going(driver, T0 + 2 * MINUTE)
    assert len(ends(driver)) == 1


def test_what_comes_into_an_emptied_minute_ends_with_it() -> None:
    driver = Driver()
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.step(T0)
    driver.run(T0 + 5)
    driver.ask(timestamp_ms=T0 + 6, schedule_id="b", at=T0 + 20)
    driver.step(T0 + 6)
    driver.run(T0 + MINUTE + 20)
    assert ends(driver) == [Drained(b"demo", T0, T0 + MINUTE + 20, MINUTE)]


def test_what_is_held_back_drains_late() -> None:
    driver = Driver()
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.step(T0)
    driver.tenants.hold("demo", "its topic is missing")
    driver.run(T0 + 10)
    keep_going(driver, T0 + 2 * MINUTE)
    assert ends(driver) == []
    driver.tenants.hold("demo", "")
    assert driver.run(T0 + 3 * MINUTE) == ["a"]
    assert ends(driver) == [Drained(b"demo", T0, T0 + 3 * MINUTE, 3 * MINUTE - 5)]


def test_cancels_and_rolled_back_steps_end_none() -> None:
    driver = Driver()
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.ask(schedule_id="b", at=T0 + MINUTE)
    driver.step(T0)
    driver.ask(schedule_id="a", action="CANCEL")
    driver.step(T0)
    driver.step(T0 + MINUTE, commit=False)
    assert ends(driver) == []
    driver.run(T0 + 2 * MINUTE)
    assert [each.minute_ms for each in ends(driver)] == [T0 + MINUTE]


def test_each_minute_looks_at_all_that_have_been_emptied() -> None:
    driver = Driver()
    for number in range(3):
        driver.ask(tenant=f"t{number}", at=T0 + number)
    driver.step(T0 - 1)
    driver.run(T0 + 5)
    driver.ask(timestamp_ms=T0 + 6, schedule_id="late", at=T0 + MINUTE + 7)
    driver.step(T0 + 6)
    driver.run(T0 + MINUTE + 7)
    assert {each.tenant for each in ends(driver)} == {b"t0", b"t1", b"t2"}
