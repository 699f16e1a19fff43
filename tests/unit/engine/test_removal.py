"""A tenant that was removed: what is pending is cancelled, each with an outcome, nothing fires."""

from __future__ import annotations

from belfry.schedules.outcomes import Outcome
from belfry.schedules.policy import TenantPolicy
from belfry.schedules.tenant import Terms
from tests.unit.engine.driver import T0, Driver


def removed(count: int) -> Driver:
    """A tenant with schedules in the timeline and in the backlog, and a neighbour."""
    driver = Driver()
    for number in range(count):
        driver.ask(tenant="gone", schedule_id=f"g{number}", at=T0 + 5 + number)
    driver.ask(tenant="goner", schedule_id="n", at=T0 + 500)
    driver.step(T0)
    driver.tenants.of("gone").hold("its topic is missing")
    driver.run(T0 + 5)
    policy = TenantPolicy("gone", lifecycle="ALL", removed=True)
    driver.tenants.follow(Terms(policy, barred="it was removed"))
    return driver


def test_everything_that_is_pending_is_cancelled_once() -> None:
    driver = removed(25)
    told = []
    for _ in range(5):
        effects = driver.sweep(T0 + 6, at_most=10)
        told += [event.schedule_id for event in effects.lifecycle]
        assert set(effects.outcomes) <= {Outcome.CANCELLED}
    assert sorted(told) == sorted(f"g{number}" for number in range(25))
    assert driver.engine.pending == 1
    assert driver.run(T0 + 1_000) == ["n"]


def test_a_rolled_back_sweep_is_done_again() -> None:
    driver = removed(3)
    driver.engine.sweep(T0 + 6, 10)
    driver.end(T0 + 6, commit=False)
    driver.sweep(T0 + 6)
    assert driver.engine.pending == 1


def test_who_comes_back_begins_anew() -> None:
    driver = removed(2)
    driver.sweep(T0 + 6)
    driver.sweep(T0 + 6)
    driver.tenants.follow(Terms(TenantPolicy("gone")))
    driver.tenants.of("gone").hold("")
    driver.ask(tenant="gone", schedule_id="g0", at=T0 + 50)
    driver.step(T0 + 7)
    assert driver.engine.pending == 2
    assert "g0" in driver.run(T0 + 50)
