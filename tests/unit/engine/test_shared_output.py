"""Events on the topic that tenants share: whose each is, and the order of each tenant."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import T0, Driver

SHARED = "belfry.fired"


def share(driver: Driver, tenant: str, **fields: Any) -> None:
    """Put a policy into effect by which this tenant shares an output."""
    driver.tenants.follow(EffectivePolicy(TenantPolicy(tenant, output="SHARED", **fields)))


@pytest.mark.parametrize(
    ("fields", "key", "group"),
    [
        ({}, b"a", None),
        ({"key": b"k/1"}, b"k/1", None),
        ({"key": b""}, b"", None),
        ({"group": "g"}, b"g", b"g"),
        ({"group": "g", "key": b"\xff"}, b"\xff", b"g"),
    ],
    ids=str,
)
def test_key_and_group_are_each_tenants_own(
    fields: dict[str, Any], key: bytes, group: bytes | None
) -> None:
    """Tenants that name the same key or group neither compact one another nor share an order."""
    driver = Driver()
    for tenant in ("shop", "mail"):
        share(driver, tenant)
        driver.ask(tenant=tenant, at=T0 + 5, **fields)
    driver.step(T0)
    shots = driver.step(T0 + 6).shots
    assert sorted((shot.topic, shot.key, shot.group) for shot in shots) == [
        (SHARED, b"%b/%b" % (tenant, key), group and b"%b/%b" % (tenant, group))
        for tenant in (b"mail", b"shop")
    ]
    assert {shot.header("belfry-schedule-tenant") for shot in shots} == {b"mail", b"shop"}


def test_no_schedule_says_that_it_is_another_tenants() -> None:
    driver = Driver()
    share(driver, "shop")
    driver.ask(
        tenant="shop", at=T0 + 5, headers=[{"name": "belfry-schedule-tenant", "value": b"mail"}]
    )
    driver.step(T0)
    (shot,) = driver.step(T0 + 6).shots
    said = [value for name, value in shot.headers if name == "belfry-schedule-tenant"]
    assert said == [b"shop"]


def test_what_is_shared_is_in_the_transaction_whatever_a_tenant_asks_for() -> None:
    driver = Driver()
    share(driver, "bulk", guarantee="AT_LEAST_ONCE")
    driver.ask(tenant="bulk", at=T0 + 5)
    driver.step(T0)
    assert driver.step(T0 + 6).effects.non_transactional == set()


def test_a_move_there_and_back_loses_nothing_and_keeps_the_order() -> None:
    """Where an event goes is decided when it fires: before the move, while it holds, and after."""
    driver = Driver()
    for number in range(9):
        driver.ask(schedule_id=f"{number}", at=T0 + 10 * number, group="g")
    driver.step(T0 - 1)
    came = []
    for number in range(9):
        if number == 3:
            share(driver, "demo")
        if number == 6:
            driver.tenants.follow(EffectivePolicy(TenantPolicy("demo")))
        came += [(shot.topic, shot.id) for shot in driver.step(T0 + 10 * number).shots]
    own = "belfry.fired.demo"
    topics = [own] * 3 + [SHARED] * 3 + [own] * 3
    assert came == list(zip(topics, "012345678", strict=True))


def test_an_event_fits_with_all_that_its_form_says_twice() -> None:
    """What was accepted by its size is no larger when it fires, with a tenant before its key."""
    driver = Driver()
    name = "t" * 100
    share(driver, name, cloudevents=True, delivery="ENVELOPE")
    driver.note(name, max_record_bytes=4_000)
    fields: dict[str, Any] = {"tenant": name, "group": "g" * 255, "event_type": "e" * 255}
    for number in range(500, 4_000, 7):
        driver.ask(schedule_id=f"{number:0255}", at=T0 + 5, payload=bytes(number), **fields)
    outcomes = driver.step(T0).outcomes
    assert "REJECTED" in outcomes
    shots = driver.step(T0 + 6).shots
    assert shots
    sizes = [
        len(shot.key)
        + len(shot.value or b"")
        + sum(len(n) + len(v or b"") for n, v in shot.headers)
        for shot in shots
    ]
    assert 3_500 < max(sizes) <= 4_000
