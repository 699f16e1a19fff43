"""How one snapshot of tenants follows another, and what those that share a topic are promised."""

from __future__ import annotations

import pytest

from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy

PAYMENTS = "payments"


@pytest.fixture
def tenants() -> Tenants:
    return Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)


def policy(name: str, topic: str | None = None, *, loose: bool = True) -> EffectivePolicy:
    """A policy of at least once, or of exactly once."""
    if not loose:
        return EffectivePolicy(TenantPolicy(name, output_topic=topic))
    return EffectivePolicy(TenantPolicy(name, output_topic=topic, guarantee="AT_LEAST_ONCE"))


def loose(tenants: Tenants, *names: str) -> list[bool]:
    """Whose events leave beside transactions."""
    return [tenants.of(name).non_transactional for name in names]


def test_tenants_of_one_topic_are_fired_exactly_once_where_one_of_them_is(tenants: Tenants) -> None:
    tenants.follow(policy("a", PAYMENTS))
    assert loose(tenants, "a") == [True]
    tenants.follow(policy("b", PAYMENTS, loose=False))
    assert loose(tenants, "a", "b") == [False, False]
    tenants.follow(policy("b", PAYMENTS))
    assert loose(tenants, "a", "b") == [True, True]


@pytest.mark.parametrize("leads_to", [None, "reminders"])
def test_who_leaves_a_topic_takes_its_promise_along(tenants: Tenants, leads_to: str | None) -> None:
    tenants.follow(policy("a", PAYMENTS))
    tenants.follow(policy("b", PAYMENTS, loose=False))
    tenants.follow(policy("b", leads_to, loose=False))
    assert loose(tenants, "a", "b") == [True, False]


def test_who_comes_to_share_one_topic_for_all_takes_its_promise_along(tenants: Tenants) -> None:
    tenants.follow(policy("a", PAYMENTS))
    tenants.follow(policy("b", PAYMENTS, loose=False))
    tenants.follow(EffectivePolicy(TenantPolicy("b", output="SHARED", guarantee="AT_LEAST_ONCE")))
    assert loose(tenants, "a", "b") == [True, False]


@pytest.mark.parametrize("there", [False, True], ids=["no topic is shared", "some are"])
def test_to_meet_a_tenant_copies_no_directory(tenants: Tenants, there: bool) -> None:
    if there:
        tenants.follow(policy("a", PAYMENTS))
    as_it_is = tenants.snapshot
    met = tenants.of("new")
    assert tenants.snapshot is as_it_is
    assert tenants.known(b"new") is met


def test_who_is_met_and_changes_what_others_are_promised_makes_another_snapshot(
    tenants: Tenants,
) -> None:
    """A step that began before goes on as it began."""
    tenants.follow(policy("a", PAYMENTS))
    began = tenants.snapshot
    tenants.effective_of = {"b": policy("b", PAYMENTS, loose=False)}.get
    assert not tenants.of("b").non_transactional
    assert began.by_name["a"].non_transactional
    assert loose(tenants, "a", "b") == [False, False]
