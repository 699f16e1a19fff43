"""A tenant that was removed: what is pending is cancelled, each with an outcome, nothing fires."""

from __future__ import annotations

from belfry.engine.maintenance import MORE
from belfry.engine.stale import LOOKS
from belfry.schedules.outcomes import Outcome
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.acknowledging import WAIT, serial
from tests.unit.engine.driver import T0, Driver
from tests.unit.engine.test_rollback import CountingMap


def removed(count: int) -> Driver:
    """A tenant with schedules in the timeline and in the backlog, and a neighbour."""
    driver = Driver()
    for number in range(count):
        driver.ask(tenant="gone", schedule_id=f"g{number}", at=T0 + 5 + number)
    driver.ask(tenant="goner", schedule_id="n", at=T0 + 500)
    driver.step(T0)
    driver.tenants.hold("gone", "its topic is missing")
    driver.run(T0 + 5)
    policy = TenantPolicy("gone", lifecycle="ALL", removed=True)
    driver.tenants.follow(EffectivePolicy(policy, blocked="it was removed"))
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


def test_each_cancel_says_why_and_which_schedule_it_ended() -> None:
    driver = removed(2)
    told = driver.sweep(T0 + 6).lifecycle
    assert [(each.schedule_id, each.version, each.at, each.due_at) for each in told] == [
        *(("g0", 1, T0 + 6, T0 + 5), ("g1", 1, T0 + 6, T0 + 6)),
    ]
    assert {each.reason for each in told} == {"the tenant was removed"}


def test_a_tenant_that_has_nothing_left_is_not_walked_through_again() -> None:
    driver, rows = Driver(), CountingMap()
    driver.start(rows)
    for number in range(30):
        driver.ask(tenant="gone", schedule_id=f"g{number:04}", at=T0 + 1)
    driver.ask(tenant="gone", schedule_id="left", at=T0 + 1_000)
    driver.step(T0)
    driver.run(T0 + 1)
    policy = TenantPolicy("gone", removed=True)
    driver.tenants.follow(EffectivePolicy(policy, blocked="it was removed"))
    for _ in range(3):
        driver.sweep(T0 + 6)
    assert driver.engine.pending == 0
    rows.scanned = 0
    driver.sweep(T0 + 6)
    assert rows.scanned < 30


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
    driver.tenants.follow(EffectivePolicy(TenantPolicy("gone")))
    driver.tenants.hold("gone", "")
    driver.ask(tenant="gone", schedule_id="g0", at=T0 + 50)
    driver.step(T0 + 7)
    assert driver.engine.pending == 2
    assert "g0" in driver.run(T0 + 50)


def test_a_sweep_reads_no_more_names_than_it_may_and_the_next_one_goes_on() -> None:
    driver, rows = Driver(), CountingMap()
    driver.start(rows)
    for number in range(2_000):
        at = T0 + 1_000_000 if number % 400 == 399 else T0 + 1
        driver.ask(tenant="gone", schedule_id=f"g{number:04}", at=at)
    driver.step(T0)
    driver.run(T0 + 1, at_most=5_000)
    assert driver.engine.pending == 5
    driver.tenants.follow(
        EffectivePolicy(TenantPolicy("gone", removed=True), blocked="it was removed")
    )
    swept = 0
    read: list[int] = []
    while not read or read[-1] > 5:
        rows.scanned = 0
        effects = driver.sweep(T0 + 6, at_most=5)
        swept += effects.outcomes[Outcome.CANCELLED]
        read.append(rows.scanned)
    assert swept == 5
    assert driver.engine.pending == 0
    # The other 5, and 1 or 2, are what a sweep for markers and a commit look at.
    assert max(read[1:]) <= 5 * MORE + 5 + 2
    # Once a second it looks for schedules that are stale as well.
    assert read[0] <= 5 * MORE + 5 + 2 + LOOKS
    assert len(read) < 2 * 2_000 / (5 * MORE) + 5


def test_what_was_accepted_in_the_step_of_its_removal_is_cancelled() -> None:
    driver = Driver()
    driver.ask(tenant="gone", schedule_id="g", at=T0 + 1_000)
    driver.engine.accept(driver.batch(), T0)
    driver.tenants.follow(
        EffectivePolicy(TenantPolicy("gone", removed=True), blocked="it was removed")
    )
    driver.sweep(T0)
    assert driver.engine.pending == 1
    driver.sweep(T0 + 1)
    driver.sweep(T0 + 2)
    assert driver.engine.pending == 0


def test_a_roll_back_begins_where_the_step_began() -> None:
    driver = removed(25)
    driver.sweep(T0 + 6, at_most=10)
    driver.engine.sweep(T0 + 7, 10)
    driver.end(T0 + 7, commit=False)
    told = [driver.sweep(T0 + 8, at_most=10).outcomes[Outcome.CANCELLED] for _ in range(3)]
    assert told == [10, 5, 0]
    assert driver.engine.pending == 1


def test_sweeps_are_awaited_until_nothing_of_it_is_left() -> None:
    driver, awaited = removed(25), list[tuple[bool, int]]()
    for _ in range(6):
        awaited.append((driver.engine.sweeps_awaited, driver.engine.pending))
        driver.sweep(T0 + 6, at_most=10)
    # The last ones are walks that meet nobody any more.
    assert awaited == [(False, 26), (True, 16), (True, 6), (True, 1), (True, 1), (False, 1)]


def test_what_changed_in_the_step_that_passed_it_over_is_cancelled_by_the_next_walk() -> None:
    """A time-out lets the second one go in the same step, so the sweep leaves it alone."""
    driver = Driver()
    for number in range(2):
        serial(driver, f"s{number}", T0 + 1 + number)
    driver.step(T0)
    assert driver.run(T0 + 2) == ["s0"]
    driver.tenants.follow(
        EffectivePolicy(TenantPolicy("demo", removed=True), blocked="it was removed")
    )
    now_ms = T0 + 2 + WAIT
    driver.engine.fire_due(now_ms, 100)
    assert driver.engine.changed
    driver.sweep(now_ms)
    assert driver.engine.pending == 1
    for later_ms in range(3):
        driver.sweep(now_ms + later_ms)
    assert driver.engine.pending == 0
