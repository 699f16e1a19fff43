"""Which fired records need not be in the transaction: a tenant's own word, and its neighbours'."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import T0, Driver


def loose_topics(driver: Driver, *tenants: str, **fields: Any) -> set[str]:
    """Topics that may go beside the transaction when these tenants fire together."""
    for tenant in tenants:
        driver.ask(tenant=tenant, at=T0 + 5, **fields)
    driver.step(T0)
    return driver.step(T0 + 6).effects.non_transactional


def follow(driver: Driver, tenant: str, guarantee: str, topic: str | None = None) -> None:
    policy = TenantPolicy(tenant, guarantee=guarantee, output_topic=topic)  # type: ignore[arg-type]
    driver.tenants.follow(EffectivePolicy(policy))


@pytest.mark.parametrize("fields", [{}, {"group": "g"}, {"max_lateness_ms": 5_000}], ids=str)
def test_it_is_the_tenants_choice(fields: dict[str, Any]) -> None:
    driver = Driver()
    follow(driver, "bulk", "AT_LEAST_ONCE")
    follow(driver, "dear", "EXACTLY_ONCE")
    assert loose_topics(driver, "bulk", "dear", "other", **fields) == {"belfry.fired.bulk"}


def test_an_occurrence_that_is_skipped_leaves_nothing_beside_the_transaction() -> None:
    driver = Driver()
    follow(driver, "bulk", "AT_LEAST_ONCE")
    driver.ask(
        tenant="bulk", kind="EVERY", interval_ms=60_000, misfire="SKIP", max_lateness_ms=5_000
    )
    driver.step(T0)
    late = driver.step(T0 + 10 * 60_000 + 59_000).effects
    assert (late.fired, late.non_transactional) == ([], set())
    assert driver.engine.pending == 1


def test_who_goes_back_is_in_the_transaction_again() -> None:
    driver = Driver()
    follow(driver, "bulk", "AT_LEAST_ONCE")
    follow(driver, "bulk", "EXACTLY_ONCE")
    assert loose_topics(driver, "bulk") == set()


@pytest.mark.parametrize("order", [("bulk", "dear"), ("dear", "bulk")])
def test_who_shares_a_topic_gets_what_one_of_them_is_promised(order: tuple[str, str]) -> None:
    driver = Driver()
    promised = {"bulk": "AT_LEAST_ONCE", "dear": "EXACTLY_ONCE"}
    for tenant in order:
        follow(driver, tenant, promised[tenant], "all")
    assert loose_topics(driver, "bulk", "dear") == set()
    follow(driver, "dear", "EXACTLY_ONCE")
    driver = Driver()
    for tenant in order:
        follow(driver, tenant, promised[tenant], "all")
    follow(driver, "dear", "EXACTLY_ONCE", "elsewhere")
    assert loose_topics(driver, "bulk", "dear") == {"all"}


def test_no_neighbour_comes_onto_the_tenants_own_topic_and_changes_its_promise() -> None:
    driver = Driver()
    follow(driver, "bulk", "AT_LEAST_ONCE")
    follow(driver, "guest", "EXACTLY_ONCE", "belfry.fired.bulk")
    assert "is reserved" in driver.tenants.of("guest").stopped
    assert loose_topics(driver, "bulk") == {"belfry.fired.bulk"}
