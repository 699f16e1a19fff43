"""Quotas: what is one too many is refused, and what has ended makes room."""

from __future__ import annotations

from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import T0, Driver, Watched


def limited(**policy: float) -> Driver:
    driver = Driver()
    driver.tenants.follow(EffectivePolicy(TenantPolicy("demo", lifecycle="ALL", **policy)))  # type: ignore[arg-type]
    return driver


def test_a_full_tenant_may_change_and_cancel_but_not_add() -> None:
    driver = limited(max_pending=2)
    for name in "abc":
        driver.ask(schedule_id=name, at=T0 + 50)
    step = driver.step(T0)
    assert step.outcomes == ["ACCEPTED", "ACCEPTED", "REJECTED"]
    assert step.codes == ["too_many_pending"]
    driver.ask(schedule_id="a", at=T0 + 60)
    driver.ask(schedule_id="b", action="CANCEL")
    assert driver.step(T0).outcomes == ["UPDATED", "CANCELLED"]
    driver.ask(schedule_id="c", at=T0 + 50)
    assert driver.step(T0).outcomes == ["ACCEPTED"]


def test_a_fire_makes_room() -> None:
    driver = limited(max_pending=1)
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.step(T0)
    assert driver.run(T0 + 5) == ["a"]
    driver.ask(schedule_id="b", at=T0 + 50)
    assert driver.step(T0 + 6).outcomes == ["ACCEPTED"]


def test_what_was_pending_before_the_limit_counts() -> None:
    driver = Driver()
    for name in "ab":
        driver.ask(schedule_id=name, at=T0 + 50)
    driver.step(T0)
    driver.tenants.follow(EffectivePolicy(TenantPolicy("demo", lifecycle="ALL", max_pending=2)))
    driver.ask(schedule_id="c", at=T0 + 50)
    assert driver.step(T0).codes == ["too_many_pending"]


def test_paused_schedules_count_and_others_do_not() -> None:
    driver = limited(max_pending=2)
    driver.ask(schedule_id="a", at=T0 + 50)
    driver.ask(tenant="demo2", schedule_id="other", at=T0 + 50)
    driver.step(T0)
    driver.ask(schedule_id="a", action="PAUSE")
    driver.step(T0)
    for name in "bc":
        driver.ask(schedule_id=name, at=T0 + 50)
    assert driver.step(T0, commit=False).outcomes == ["ACCEPTED", "REJECTED"]
    assert driver.step(T0).outcomes == ["ACCEPTED", "REJECTED"]


def test_a_limit_costs_one_small_read_however_many_wait() -> None:
    driver = limited(max_pending=1_000)
    for number in range(200):
        driver.ask(schedule_id=f"s{number}", at=T0 + 50)
    driver.step(T0)
    watched = Watched(driver.rows)
    driver.start(watched)
    driver.ask(schedule_id="one-more", at=T0 + 50)
    watched.read = 0
    driver.engine.accept(driver.batch(), T0)
    assert watched.read == 0
    driver.end(T0)
    assert driver.engine.pending == 201


def test_a_rolled_back_step_counts_nothing() -> None:
    driver = limited(max_pending=1, max_requests_per_second=1)
    driver.ask(schedule_id="a", at=T0 + 50)
    driver.step(T0, commit=False)
    assert driver.step(T0).outcomes == ["ACCEPTED"]


def test_requests_are_counted_as_they_arrived() -> None:
    driver = limited(max_requests_per_second=2)
    for number in range(6):
        driver.ask(timestamp_ms=T0 + number, schedule_id=f"a{number}", at=T0 + 90_000)
    for number in range(4):
        at = T0 + 10_000 + number * 500
        driver.ask(timestamp_ms=at, schedule_id=f"b{number}", at=T0 + 90_000)
    step = driver.step(T0 + 20_000)
    assert step.outcomes == ["ACCEPTED"] * 2 + ["REJECTED"] * 4 + ["ACCEPTED"] * 4
    assert step.codes == ["too_many_requests"] * 4


def test_other_tenants_have_no_limit() -> None:
    driver = limited(max_pending=0, max_requests_per_second=0)
    driver.ask(tenant="other", at=T0 + 5)
    assert driver.step(T0).outcomes == ["ACCEPTED"]
