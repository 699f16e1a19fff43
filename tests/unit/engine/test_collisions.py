"""No request takes a name away from a tenant, and none that is refused says anything about it."""

from __future__ import annotations

import pytest

from belfry.schedules.rejections import Rejection
from belfry.tenants.effective import EffectivePolicy, Level, Signing
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import FIRED, HOUR, T0, Driver

UNKNOWN = Rejection("unknown_tenant", "as the shell says")


@pytest.mark.parametrize("claims", ["trusted", "signed"])
def test_a_refused_request_locks_nobody_out(claims: str) -> None:
    """One tenant is known, the other name is a stranger's, who comes first and is refused."""
    driver = Driver()
    driver.tenants.signing = Signing(everybody=claims == "signed")
    known = {"pay.eu": EffectivePolicy(TenantPolicy("pay.eu", lifecycle="ALL"))}
    driver.tenants.effective_of = lambda name: known.get(
        name, driver.tenants.defaults(name)._replace(refused=UNKNOWN, blocked="unknown")
    )
    driver.ask(tenant="pay_eu", schedule_id="forged", at=T0 + HOUR)
    assert driver.step(T0).codes == ["unsigned" if claims == "signed" else "unknown_tenant"]
    driver.tenants.signing = Signing()
    driver.ask(tenant="pay.eu", at=T0 + HOUR)
    assert driver.step(T0).outcomes == ["ACCEPTED"]


@pytest.mark.parametrize("refused", [UNKNOWN, None])
def test_who_may_not_ask_at_all_is_told_that_and_no_other_tenants_name(
    refused: Rejection | None,
) -> None:
    driver = Driver()
    driver.tenants.note_topics([FIRED + "pay.eu"])
    driver.tenants.effective_of = lambda name: driver.tenants.defaults(name)._replace(
        refused=refused
    )
    driver.ask(tenant="pay_eu", at=T0 + HOUR)
    code = "tenant_collides" if refused is None else "unknown_tenant"
    assert driver.step(T0).codes == [code]


@pytest.mark.parametrize("level", [Level.FAILURES, Level.ALL])
def test_a_topic_that_appears_ends_what_its_rival_is_allowed(level: Level) -> None:
    """Also for plain requests of a tenant that is known and had its home."""
    driver = Driver(level)
    for number in range(3):
        driver.ask(tenant="a_b", schedule_id=f"{number}", at=T0 + HOUR)
    assert driver.step(T0).codes == []
    driver.tenants.note_topics([FIRED + "a.b"])
    driver.ask(tenant="a_b", schedule_id="late", at=T0 + HOUR)
    driver.ask(tenant="a.b", at=T0 + HOUR)
    assert driver.step(T0).codes == ["tenant_collides"]
    assert driver.engine.pending == 4


def test_a_restarted_worker_decides_alike() -> None:
    first, second = Driver(), Driver()
    for driver, order in ((first, ("a.b", "a_b")), (second, ("a_b", "a.b"))):
        driver.tenants.note_policies(["a.b"])
        for tenant in order:
            driver.ask(tenant=tenant, schedule_id=tenant, at=T0 + HOUR)
        told = {each.tenant: str(each.outcome) for each in driver.step(T0).effects.lifecycle}
        assert told == {"a.b": "ACCEPTED", "a_b": "REJECTED"}
