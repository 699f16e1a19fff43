"""What policies must not say beside those that stand, told without a cluster."""

from __future__ import annotations

from belfry.client.policy_fields import conflicts, removal_problem
from belfry.tenants.policy import TenantPolicy

BAD_REF = "env:HOME"


def test_two_names_that_are_one_in_metrics_are_refused() -> None:
    before = {"shop.eu": TenantPolicy("shop.eu")}
    (told,) = conflicts(before, (TenantPolicy("shop_eu"),))
    assert "shop_eu: tenant 'shop.eu' exists" in told
    assert not list(conflicts(before, (TenantPolicy("shop.eu", paused=True),)))


def test_two_new_names_are_compared_with_each_other_as_well() -> None:
    assert len(list(conflicts({}, (TenantPolicy("a.b"), TenantPolicy("a_b"))))) == 1


def test_a_reference_that_no_worker_follows_is_refused_where_it_is_new() -> None:
    wrong = TenantPolicy("shop", signing_secret_ref=BAD_REF)
    assert len(list(conflicts({}, (wrong,)))) == 1
    # It stands already, and does not keep anything else from being changed.
    after = TenantPolicy("shop", signing_secret_ref=BAD_REF, paused=True)
    assert not list(conflicts({"shop": wrong}, (after,)))


def test_a_policy_that_says_where_schedules_live_is_not_forgotten() -> None:
    assert removal_problem(TenantPolicy("shop")) is None
    assert "former_spreads [2]" in (
        removal_problem(TenantPolicy("shop", former_spreads=(2,))) or ""
    )
