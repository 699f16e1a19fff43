"""A tenant whose topic cannot be written to waits; the others do not notice."""

from __future__ import annotations

from belfry.schedules.jitter import jitter_ms
from belfry.tenants.effective import Level
from tests.unit.engine.driver import HOUR, T0, Driver


def held(*due: tuple[str, str, int], level: Level = Level.ALL) -> Driver:
    """A partition where `bad` is held, and these (tenant, id, due after T0) wait."""
    driver = Driver(level)
    for tenant, schedule_id, after_ms in due:
        driver.ask(tenant=tenant, schedule_id=schedule_id, at=T0 + after_ms)
    driver.step(T0)
    driver.tenants.hold("bad", "its topic is missing")
    return driver


def test_held_events_wait_and_others_fire_on_time() -> None:
    #  T0    1      2      3
    #        bad/a  ok/b   bad/c
    driver = held(("bad", "a", 1), ("ok", "b", 2), ("bad", "c", 3))
    assert driver.step(T0 + 5).ids == ["b"]
    assert driver.engine.pending == 2
    assert driver.engine.next_due_ms() is None


def test_a_step_that_only_moves_events_aside_is_committed() -> None:
    driver = held(("bad", "a", 1))
    step = driver.step(T0 + 5)
    assert not step.effects.empty
    assert step.effects.rows.keys() == {*step.effects.rows} - {b"bad/a"}
    assert driver.engine.manifest.watermark_ms == T0 + 5


def test_released_events_leave_in_due_order_before_newer_ones() -> None:
    driver = held(("bad", "c", 3), ("bad", "a", 1), ("bad", "b", 2), ("bad", "d", 9))
    driver.step(T0 + 5)
    driver.tenants.hold("bad", "")
    assert driver.engine.next_due_ms() == T0 + 5
    assert driver.run(T0 + 9, at_most=2) == ["a", "b", "c", "d"]


def test_a_backlog_that_may_fire_drains_and_one_that_is_held_does_not() -> None:
    driver = held(*(("bad", f"{number}", number) for number in range(1, 4)))
    driver.step(T0 + 5)
    drains = [driver.engine.drains]
    driver.tenants.hold("bad", "")
    driver.step(T0 + 5, at_most=1)
    drains.append(driver.engine.drains)
    driver.run(T0 + 5)
    assert [*drains, driver.engine.drains] == [False, True, False]


def test_what_comes_due_behind_a_backlog_joins_it() -> None:
    due = [("bad", f"{number}", number) for number in range(1, 9)]
    driver = held(*due)
    driver.step(T0 + 4)
    driver.tenants.hold("bad", "")
    assert driver.run(T0 + 8, at_most=3) == [schedule_id for _, schedule_id, _ in due]


def test_held_events_can_be_cancelled_and_replaced() -> None:
    driver = held(("bad", "a", 1), ("bad", "b", 1))
    driver.step(T0 + 5)
    driver.ask(tenant="bad", schedule_id="a", action="CANCEL")
    driver.ask(tenant="bad", schedule_id="b", at=T0 + HOUR)
    assert driver.step(T0 + 5).outcomes == ["CANCELLED", "UPDATED"]
    driver.tenants.hold("bad", "")
    assert driver.run(T0 + 6) == []
    assert driver.run(T0 + HOUR) == ["b"]


def test_held_events_survive_a_restart() -> None:
    driver = held(("bad", "a", 1), ("bad", "b", 2))
    driver.step(T0 + 5)
    driver.start(driver.rows)
    assert driver.engine.next_due_ms() is None
    driver.tenants.hold("bad", "")
    assert driver.run(T0 + 5) == ["a", "b"]


def test_an_extra_fire_of_a_held_tenant_is_refused() -> None:
    driver = held(("bad", "a", HOUR))
    driver.ask(tenant="bad", action="TRIGGER")
    step = driver.step(T0 + 5)
    assert step.shots == []
    assert step.codes == ["tenant_held"]
    assert driver.engine.pending == 1


def test_requests_of_a_held_tenant_are_accepted() -> None:
    driver = held()
    driver.ask(tenant="bad", at=T0 + 3)
    driver.ask(tenant="bad", schedule_id="late", at=T0 - 3)
    assert driver.step(T0).outcomes == ["ACCEPTED", "ACCEPTED"]
    assert driver.run(T0 + 5) == []
    driver.tenants.hold("bad", "")
    assert driver.run(T0 + 5) == ["late", "a"]


def test_an_occurrence_that_is_due_when_the_last_one_was_is_not_lost() -> None:
    """By its jitter the next one takes the very place of the one that fires."""
    name, interval_ms, most_ms = "a13079", 1_000, 5_000
    first, second = (
        T0 + n * interval_ms + jitter_ms(b"demo/" + name.encode(), T0 + n * interval_ms, most_ms)
        for n in (1, 2)
    )
    assert first == second
    driver = Driver()
    driver.ask(
        schedule_id=name, kind="EVERY", interval_ms=interval_ms, jitter_ms=most_ms, group="g",
        max_fires=4,
    )  # fmt: skip
    driver.step(T0)
    driver.tenants.hold("demo", "no topic")
    assert driver.step(first, take=0).ids == []
    driver.tenants.hold("demo", "")
    assert driver.run(T0 + 60_000) == [name] * 4
    assert driver.engine.pending == 0
