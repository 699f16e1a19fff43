"""Each figure of a tenant: pending, fires, lateness, refusals, and what it waits for since when."""

from __future__ import annotations

import pytest

from belfry.engine import tenant_figures
from belfry.engine.partition import PartitionEngine
from belfry.engine.tenant_figures import REST, TenantFigures, merged
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.waits import Wait, Why
from tests.unit.engine.acknowledging import ack, fires, serial
from tests.unit.engine.driver import T0, Driver

HELD = Why("tenant_blocked", "output_topic", "its topic is missing")


def figures(driver: Driver, tenant: str = "demo") -> TenantFigures:
    return driver.engine.tenants()[tenant.encode()]


def wait_of(driver: Driver, tenant: str = "demo") -> Wait:
    found = driver.engine.wait_of(tenant.encode())
    assert found is not None
    return found


def test_pending_fires_and_lateness_are_counted_by_tenant() -> None:
    driver = Driver()
    for tenant in ("a", "b"):
        driver.ask(tenant=tenant, schedule_id="once", at=T0)
        driver.ask(tenant=tenant, schedule_id="later", at=T0 + 9_000)
    driver.ask(tenant="b", schedule_id="again", kind="EVERY", interval_ms=60_000, start_at=T0)
    driver.step(T0 - 1)
    assert [figures(driver, each).pending for each in ("a", "b")] == [2, 3]
    driver.step(T0 + 40)
    assert figures(driver, "a")[:4] == (1, 1, 40, 0)
    assert figures(driver, "b")[:4] == (2, 2, 80, 0)
    assert [figures(driver, each).accepted for each in ("a", "b")] == [2, 3]


def test_a_step_that_is_rolled_back_has_counted_nothing() -> None:
    driver = Driver()
    driver.ask(at=T0)
    driver.step(T0 - 1)
    driver.step(T0, commit=False)
    assert figures(driver)[:3] == (1, 0, 0)
    driver.step(T0)
    assert figures(driver)[:3] == (0, 1, 0)


def test_refusals_are_counted_by_the_tenant_that_is_known() -> None:
    driver = Driver()
    driver.ask(tenant="a", at=T0 + 9_000)
    driver.ask(tenant="a", at=-(10**15))
    driver.ask(tenant="no such/name", at=T0)
    driver.send(b"poison")
    driver.step(T0)
    assert figures(driver, "a").rejected == 1
    assert driver.engine.tenants()[REST].rejected == 2


def test_names_that_are_made_up_share_their_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_figures, "MOST", 3)
    driver = Driver()
    for number in range(5):
        driver.ask(tenant=f"t{number}", at=T0)
    driver.step(T0 - 1)
    driver.step(T0)
    found = driver.engine.tenants()
    assert sum(each.fired for each in found.values()) == 5
    assert found[REST].fired == 3


def test_names_that_are_refused_alone_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_figures, "MOST_BY_REFUSALS", 2)
    driver = Driver()
    for number in range(5):
        driver.ask(tenant=f"made-up-{number}", at=-(10**15))
    driver.step(T0 - 1)
    driver.ask(tenant="real", at=T0)
    driver.ask(tenant="real", at=-(10**15))
    driver.step(T0 - 1)
    driver.step(T0)
    assert figures(driver, "real") == TenantFigures(fired=1, rejected=1, accepted=1)
    assert driver.engine.tenants()[REST].rejected == 3


def test_a_new_owner_knows_what_is_pending() -> None:
    driver = Driver()
    for tenant in ("a", "a-b", "b"):
        for number in range(4):
            driver.ask(tenant=tenant, schedule_id=f"{number}", at=T0 + 9_000)
    driver.ask(tenant="b", schedule_id="0", action="PAUSE")
    driver.ask(tenant="b", schedule_id="1", action="CANCEL")
    driver.step(T0)
    engine: PartitionEngine = driver.start(driver.rows)
    driver.ask(tenant="a", schedule_id="one more", at=T0 + 9_000)
    driver.step(T0)
    found = {name: each.pending for name, each in engine.tenants().items() if name}
    assert found == {b"a": 5, b"a-b": 4, b"b": 3}


def test_a_blocked_tenant_is_told_of_before_anything_is_due_and_until_it_is_not_blocked() -> None:
    driver = Driver()
    driver.ask(at=T0 + 500)
    driver.step(T0)
    driver.note(held="its topic is missing")
    driver.sweep(T0 + 1)
    assert wait_of(driver) == (
        ("tenant_blocked", "output_topic", "its topic is missing"),
        T0 + 1,
        0,
        None,
    )
    driver.step(T0 + 600)
    driver.sweep(T0 + 700)
    assert wait_of(driver)[1:] == (T0 + 1, 1, T0 + 500)
    driver.note(held="")
    driver.step(T0 + 800)
    driver.sweep(T0 + 801)
    assert driver.engine.wait_of(b"demo") is None


def test_a_paused_tenant_and_one_that_is_not_served_are_told_apart() -> None:
    driver = Driver()
    driver.ask(tenant="a", at=T0)
    driver.ask(tenant="b", at=T0)
    driver.step(T0 - 1)
    driver.apply("a", paused=True)
    driver.tenants.follow(EffectivePolicy(TenantPolicy("b"), blocked="it has no policy"))
    driver.step(T0)
    driver.sweep(T0)
    assert wait_of(driver, "a").why[1:] == ("paused", "its policy pauses it")
    assert wait_of(driver, "b").why[1:] == ("not_served", "it has no policy")


def test_a_tenant_behind_an_ack_lock_is_told_of_with_the_fire_and_its_instant() -> None:
    driver = Driver()
    for number, name in enumerate("abc"):
        serial(driver, name, T0 + number)
    driver.step(T0 - 1)
    (first,) = fires(driver, T0 + 10)
    driver.sweep(T0 + 20)
    found = wait_of(driver)
    assert found[1:] == (T0 + 10, 2, T0 + 1)
    assert found.why.cause == "ack_lock"
    assert "'a'" in found.why.reason
    assert (first.header("belfry-fire-id") or b"?").decode() in found.why.reason
    ack(driver, first, T0 + 30)
    driver.run(T0 + 30)
    driver.sweep(T0 + 31)
    assert "'b'" in wait_of(driver).why.reason


def test_a_tenant_over_its_rate_is_told_of_with_the_rate_and_how_many_are_due() -> None:
    driver = Driver()
    driver.apply(max_fires_per_second=1)
    for number in range(3):
        driver.ask(schedule_id=f"a{number}", at=T0 + number)
    driver.ask(schedule_id="later", at=T0 + 90_000)
    driver.step(T0 - 1)
    driver.step(T0 + 10)
    driver.sweep(T0 + 10)
    found = wait_of(driver)
    assert found.why[1] == "rate"
    assert "1 fires a second" in found.why[2]
    assert found[1:] == (T0 + 10, 2, T0 + 1)


def test_figures_of_several_partitions_are_added_up_and_the_oldest_wait_counts() -> None:
    """One that knows of nothing due comes behind all that do; of two, who has waited longer."""
    unknown, later, late = Wait(HELD, 1, 3), Wait(HELD, 5, 4, 60), Wait(HELD, 7, 5, 50)
    found = merged(
        [
            TenantFigures(1, 2, 3, 4, unknown, accepted=5, delivered=6),
            TenantFigures(10, 20, 30, 40, later, accepted=50, delivered=60),
            TenantFigures(100, 200, 300, 400, late, accepted=500, delivered=600),
            TenantFigures(),
        ]
    )
    wait = Wait(HELD, 7, 3 + 4 + 5, 50)
    assert found == TenantFigures(111, 222, 333, 444, wait, accepted=555, delivered=666)
    assert merged([TenantFigures(), TenantFigures(1)]) == TenantFigures(1)
    assert merged([TenantFigures(wait=unknown)]).wait == unknown
    same = [TenantFigures(wait=Wait(HELD, since_ms, 1, 50)) for since_ms in (9, 8)]
    assert merged(same).wait == Wait(HELD, 8, 2, 50)
