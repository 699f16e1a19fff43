"""FIRE_ALL within a group: many occurrences a step, at the rate of catching up, in due order."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.firing.rates import PER_SECOND, SAVED_MS
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import HOUR, T0, Driver, Step

SECOND = 1_000
EVERY: dict[str, Any] = {"kind": "EVERY", "interval_ms": SECOND, "misfire": "FIRE_ALL"}


def scheduled_at(steps: list[Step]) -> list[bytes | None]:
    return [shot.header("belfry-scheduled-at") for step in steps for shot in step.shots]


def back_after(hours: int, *asked: dict[str, Any], **policy: Any) -> tuple[Driver, list[Step]]:
    """Schedules of one group, a partition that is away for hours, and the steps that catch up."""
    driver = Driver()
    driver.tenants.follow(EffectivePolicy(TenantPolicy("demo", **policy)))
    for number, fields in enumerate(asked):
        driver.ask(schedule_id=f"s{number}", group="g", **{**EVERY, **fields})
    driver.step(T0)
    now_ms, steps = T0 + hours * HOUR, []
    until_ms = now_ms + 9_000
    while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= until_ms:
        now_ms = max(now_ms, due_ms)
        steps.append(driver.step(now_ms, take=0))
    return driver, steps


@pytest.mark.parametrize("policy", [{}, {"priority": -1}])
def test_an_hour_of_seconds_is_made_up_for_in_few_steps(policy: dict[str, Any]) -> None:
    driver, steps = back_after(1, {}, **policy)
    found = scheduled_at(steps)
    assert len(found) == 3_600 + 9
    assert found == sorted(found, key=lambda each: each or b"")
    assert len(steps) < 300
    assert driver.engine.pending == 1


def test_it_takes_no_more_than_the_rate() -> None:
    driver = Driver()
    driver.ask(group="g", **EVERY)
    driver.step(T0)
    for now_ms in range(T0 + HOUR, T0 + HOUR + 500):
        driver.step(now_ms, take=0)
    fired = [row for row in driver.changelog if row[0] == b"demo/a"]
    assert fired
    occurrence = int.from_bytes((fired[-1][1] or b"")[48:52], "big")
    assert occurrence <= PER_SECOND * (500 + SAVED_MS) // 1_000 + 1
    assert occurrence >= PER_SECOND * 400 // 1_000


def test_what_waits_for_the_rate_keeps_nobody_busy() -> None:
    driver = Driver()
    driver.ask(group="g", **EVERY)
    driver.ask(tenant="other", schedule_id="o", at=T0 + HOUR + 3)
    driver.step(T0)
    for _ in range(5):
        driver.step(T0 + HOUR, take=0)
    next_ms = driver.engine.next_due_ms()
    assert next_ms is not None
    assert T0 + HOUR < next_ms <= T0 + HOUR + 10
    assert "o" in driver.step(T0 + HOUR + 3, take=0).ids


@pytest.mark.parametrize("commit", [True, False])
def test_several_of_a_group_take_turns(commit: bool) -> None:
    one = {"start_at": T0 + SECOND, "end_at": T0 + 400 * SECOND}
    two = {"start_at": T0 + 1_500, "end_at": T0 + 400 * SECOND}
    driver = Driver()
    for number, fields in enumerate((one, two)):
        driver.ask(schedule_id=f"s{number}", group="g", **EVERY, **fields)
    driver.ask(schedule_id="x", group="g", at=T0 + 100_250)
    driver.step(T0)
    found: list[bytes | None] = []
    for now_ms in range(T0 + HOUR, T0 + HOUR + 1_000, 5):
        if not commit:
            driver.step(now_ms, take=0, commit=False)
        found += scheduled_at([driver.step(now_ms, take=0)])
    assert len(found) == 400 + 399 + 1
    assert found == sorted(found, key=lambda each: each or b"")
    assert driver.engine.pending == 0


def test_a_rate_of_the_tenant_holds_as_well() -> None:
    driver = Driver()
    driver.tenants.follow(EffectivePolicy(TenantPolicy("demo", max_fires_per_second=100.0)))
    driver.ask(group="g", **EVERY)
    driver.step(T0)
    fired = 0
    for now_ms in range(T0 + HOUR, T0 + HOUR + 1_000, 5):
        fired += len(driver.step(now_ms, take=0).shots)
    assert 80 <= fired <= 120


@pytest.mark.parametrize("fields", [{}, {"misfire": "SKIP"}, {"max_lateness_ms": 5_000}])
def test_an_update_of_the_payload_leaves_a_running_delay_alone(fields: dict[str, Any]) -> None:
    #  T0 ── asked for 60 s ── T0 + 30 s another payload ── T0 + 60 s fires
    driver = Driver()
    driver.ask(kind="AFTER", delay_ms=60_000, payload=b"one", **fields)
    driver.step(T0)
    driver.ask(kind="AFTER", delay_ms=60_000, payload=b"two", timestamp_ms=T0 + 30_000, **fields)
    assert driver.step(T0 + 30_000).outcomes == ["UPDATED"]
    assert driver.engine.next_due_ms() == T0 + 60_000
    driver.ask(kind="AFTER", delay_ms=60_001, payload=b"two", timestamp_ms=T0 + 40_000, **fields)
    driver.step(T0 + 40_000)
    assert driver.engine.next_due_ms() == T0 + 100_001
