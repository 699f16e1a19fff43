"""Quotas: what is one too many is refused, and what has ended makes room."""

from __future__ import annotations

import pytest

from belfry.engine import limits
from belfry.tenants.effective import Terms
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import T0, Driver


def limited(**policy: float) -> Driver:
    driver = Driver()
    driver.tenants.follow(Terms(TenantPolicy("demo", lifecycle="ALL", **policy)))  # type: ignore[arg-type]
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
    driver.tenants.follow(Terms(TenantPolicy("demo", lifecycle="ALL", max_pending=2)))
    driver.ask(schedule_id="c", at=T0 + 50)
    assert driver.step(T0).codes == ["too_many_pending"]


def test_many_are_counted_slice_by_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes before and behind the place that the count has reached both count once."""
    monkeypatch.setattr(limits, "SLICE", 3)
    driver = Driver()
    for name in "abcdefgh":
        driver.ask(schedule_id=name, at=T0 + 50)
    driver.ask(tenant="demo2", schedule_id="other", at=T0 + 50)
    driver.step(T0)
    driver.tenants.follow(Terms(TenantPolicy("demo", lifecycle="ALL", max_pending=9)))
    for name in "ah":
        driver.ask(schedule_id=name, action="CANCEL")
    driver.ask(schedule_id="bb", at=T0 + 50)
    # Three of eight are counted by now: one that is cancelled is among them, the other is not.
    assert driver.step(T0).outcomes == ["CANCELLED", "CANCELLED", "ACCEPTED"]
    driver.ask(schedule_id="a", at=T0 + 50)
    assert driver.step(T0, commit=False).outcomes == ["ACCEPTED"]
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    for number in range(3):
        driver.ask(schedule_id=f"new{number}", at=T0 + 50)
    assert driver.step(T0).outcomes == ["ACCEPTED", "REJECTED", "REJECTED"]
    assert driver.engine.pending == 9 + 1


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
