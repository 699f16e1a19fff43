"""The oldest due event is told of whatever it waits for, and what that is."""

from __future__ import annotations

from typing import Any

from belfry.engine import oldest
from belfry.engine.oldest import FIRING, LOOKS, PASSED, REASONS, Oldest
from belfry.telemetry.families import FAMILIES
from belfry.tenants.effective import Tenant
from belfry.tenants.waits import (
    ACK_LOCK,
    CATCH_UP,
    TENANT_BLOCKED,
    TENANT_QUEUE,
)
from tests.unit.engine.acknowledging import ack, fires, serial
from tests.unit.engine.driver import HOUR, T0, Driver


def test_the_first_of_the_timeline() -> None:
    driver = Driver()
    driver.ask(schedule_id="later", at=T0 + 1_000)
    driver.step(T0 - 1)
    driver.sweep(T0)
    assert driver.engine.oldest_due_ms() == {FIRING: T0 + 1_000}


def test_what_waits_behind_an_ack_lock() -> None:
    driver = Driver()
    serial(driver, "a", T0)
    serial(driver, "b", T0 + 5)
    driver.ask(schedule_id="later", at=T0 + 90_000)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 10)
    driver.sweep(T0 + 10)
    assert driver.engine.oldest_due_ms() == {ACK_LOCK: T0 + 5, FIRING: T0 + 90_000}
    ack(driver, first, T0 + 20)
    fires(driver, T0 + 20)
    driver.sweep(T0 + 20)
    assert driver.engine.oldest_due_ms() == {FIRING: T0 + 90_000}


def test_what_waits_for_a_blocked_tenant() -> None:
    driver = Driver()
    driver.note(held="its topic is missing")
    driver.ask(schedule_id="a", at=T0)
    driver.step(T0 - 1)
    driver.step(T0 + 10)
    driver.sweep(T0 + 10)
    assert driver.engine.oldest_due_ms() == {TENANT_BLOCKED: T0}


def test_what_waits_in_an_isolated_queue() -> None:
    driver = Driver()
    driver.apply(max_fires_per_second=1)
    for number in range(3):
        driver.ask(schedule_id=f"a{number}", at=T0 + number)
    driver.step(T0 - 1)
    driver.step(T0 + 10)
    driver.sweep(T0 + 10)
    found = driver.engine.oldest_due_ms()
    assert list(found) == [TENANT_QUEUE]
    assert T0 < found[TENANT_QUEUE] <= T0 + 2


def test_what_is_caught_up_on_is_found_in_each_priority() -> None:
    driver = Driver()
    for name, priority, first_ms in (("high", 3, T0 + 5), ("low", -3, T0)):
        every: dict[str, Any] = {"kind": "EVERY", "interval_ms": 600_000, "misfire": "FIRE_ALL"}
        driver.ask(schedule_id=name, priority=priority, start_at=first_ms, **every)
    driver.step(T0 - 1)
    driver.step(T0 + HOUR, 2)
    driver.sweep(T0 + HOUR)
    assert driver.engine.oldest_due_ms().get(CATCH_UP) == T0


def test_a_look_is_bounded_and_a_round_tells_of_all() -> None:
    driver = Driver()
    tenants = [f"t{number}" for number in range(LOOKS + 50)]
    for number, tenant in enumerate(tenants):
        driver.note(tenant, held="its topic is missing")
        driver.ask(tenant=tenant, schedule_id="a", at=T0 - number)
    driver.step(T0 - 1_000)
    driver.step(T0 + 1)
    driver.sweep(T0 + 1)
    assert driver.engine.oldest_due_ms() == {}
    driver.sweep(T0 + 1)
    assert driver.engine.oldest_due_ms() == {TENANT_BLOCKED: T0 - len(tenants) + 1}


def test_the_metric_names_each_reason() -> None:
    (about,) = (each.meaning for each in FAMILIES if each.name == "belfry_waiting_seconds")
    assert all(reason in about for reason in REASONS)
    assert oldest.REASONS is REASONS


def test_a_look_passes_over_so_many_tenants_at_most() -> None:
    driver = Driver()
    seen: list[bytes] = []

    class Calm:
        def of_bytes(self, name: bytes) -> Tenant:
            seen.append(name)
            return driver.tenants.of("demo")

    names = [b"t%d" % number for number in range(2 * LOOKS * PASSED)]
    calm: Any = Calm()
    round_ = Oldest(driver.engine._store, calm, driver.engine._parts.waiting, lambda: names)
    round_.look(T0)
    assert 0 < len(seen) <= LOOKS * PASSED
    for _ in range(2):
        round_.look(T0)
    assert seen == names
