"""Policies by their time: which are in effect, which may be gone, and who is treated by none."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.playback.treatment import HELD, STORE_AWAY, PolicyAt, Treatment, said_in
from belfry.store.layout.records import encode_text
from belfry.tenants.effective import Delivery, Level, Signing
from belfry.tenants.policy import TenantPolicy


def policy(priority: int, tenant: str = "shop", **more: Any) -> TenantPolicy:
    return TenantPolicy(tenant, priority=priority, **more)


CHANGES: Final = [
    PolicyAt(30, "shop", None),
    PolicyAt(10, "shop", policy(1)),
    PolicyAt(20, "shop", policy(2)),
    PolicyAt(20, "pay", policy(5, "pay")),
    PolicyAt(40, "shop", policy(4)),
]


def treatment(changes: list[PolicyAt] = CHANGES, **more: Any) -> Treatment:
    found = Treatment(changes, "belfry.", **more)
    found.begin({})
    return found


def test_policies_come_into_effect_in_the_order_of_their_instants() -> None:
    found = treatment()
    seen = []
    for at_ms in (9, 10, 19, 20, 29, 30, 39, 40, 99):
        found.reach(found.due(at_ms))
        seen.append(found.tenants.of("shop").effective.policy.priority)
    assert seen == [0, 1, 1, 2, 2, 0, 0, 4, 4]
    assert found.tenants.of("pay").effective.policy.priority == 5


def test_one_may_go_back_to_fewer_policies() -> None:
    found = treatment()
    found.reach(5)
    found.reach(2)
    assert found.reached == 2
    assert [each.priority for each in found.in_effect] == [2]
    assert found.tenants.of("shop").effective.policy.priority == 2
    assert found.tenants.of("pay").effective.policy.priority == 0
    found.reach(4)
    assert [each.tenant for each in found.in_effect] == ["pay"]


def test_the_next_policy_is_the_one_behind_those_that_are_reached() -> None:
    found = treatment()
    instants = []
    for count in range(6):
        found.reach(count)
        instants.append(found.next_ms())
    assert instants == [10, 20, 20, 30, 40, None]
    assert treatment([]).next_ms() is None


def test_only_of_a_compacted_topic_may_policies_be_gone_and_only_before_its_last_one() -> None:
    assert [treatment(compacted=True).lacks_policies_at(at_ms) for at_ms in (5, 40, 41)] == [
        True, True, False
    ]  # fmt: skip
    assert not treatment().lacks_policies_at(5)
    assert treatment([], compacted=True).lacks_policies_at(5)


def test_policies_that_hold_from_the_beginning_go_before_the_topics() -> None:
    found = treatment(always={"shop": policy(9)})
    found.reach(5)
    assert found.tenants.of("shop").effective.policy.priority == 9
    assert [each.priority for each in found.in_effect] == [5, 4, 9]


def test_large_payloads_lie_elsewhere_where_some_policy_says_so() -> None:
    assert not treatment(always={"shop": policy(0)}).keeps_elsewhere
    found = treatment(always={"shop": policy(0, claim_check_over_bytes=0), "pay": policy(0, "pay")})
    assert found.keeps_elsewhere
    found.keep_large(away=True)
    assert found.tenants.store_problem == STORE_AWAY
    found.keep_large(away=False)
    assert found.tenants.store_problem == ""


def test_those_who_are_held_wait_and_no_others() -> None:
    found = treatment()
    found.hold(["shop", "pay"])
    found.hold(["pay", "new"])
    assert [found.tenants.of(name).held for name in ("shop", "pay", "new")] == ["", HELD, HELD]
    assert found.held == {"pay", "new"}
    found.begin({})
    assert found.held == frozenset()
    assert found.tenants.of("pay").held == ""


@pytest.mark.parametrize("known", [False, True])
def test_a_closed_registration_refuses_who_has_no_policy(known: bool) -> None:
    found = treatment(always={"shop": policy(0)} if known else None)
    found.begin({"unknown_tenants": "closed"})
    tenant = found.tenants.of("shop")
    refused = tenant.effective.refused
    assert (refused is None) == known
    if refused is not None:
        said = (refused.code, refused.reason, tenant.stopped)
        blocked = "it has no policy, and unknown tenants are not served"
        assert said == ("unknown_tenant", "Tenant 'shop' has no policy.", blocked)
    assert treatment().tenants.of("shop").effective.refused is None
    # Belfry's own are served in any case.
    assert found.tenants.of("belfry-deliveries").topic == "belfry.deliveries"
    assert found.tenants.of("belfry-canary").topic == "belfry.canary"


def test_a_tenant_that_was_removed_is_refused() -> None:
    tenant = treatment(always={"shop": policy(0, removed=True)}).tenants.of("shop")
    refused = tenant.effective.refused
    assert refused is not None
    said = (refused.code, refused.reason, tenant.stopped)
    assert said == ("tenant_removed", "Tenant 'shop' was removed.", "it was removed")


@pytest.mark.parametrize("wrong", [{"spread": 0}, {"output_topic": "belfry.tenants"}])
def test_a_policy_that_cannot_be_meant_is_not_carried_out(wrong: dict[str, Any]) -> None:
    found = treatment(always={"shop": policy(7, **wrong)})
    tenant = found.tenants.of("shop")
    assert tenant.stopped
    assert tenant.topic == "belfry.fired.shop"
    # Events wait under the defaults: nothing else of such a policy counts either.
    assert tenant.effective.policy.priority == 0


def test_a_policy_may_name_the_topic_that_is_its_tenants_anyway() -> None:
    found = treatment(always={"shop": policy(7, output_topic="belfry.fired.shop")})
    tenant = found.tenants.of("shop")
    assert (tenant.stopped, tenant.effective.policy.priority) == ("", 7)


def test_a_policy_keeps_its_tenants_name_from_others_while_it_is_there() -> None:
    """In Kafka's metrics a dot and an underscore are the same."""
    changes = [PolicyAt(10, "a.b", policy(1, "a.b")), PolicyAt(20, "a.b", None)]
    found = treatment(changes)
    rivals = []
    for count in (0, 1, 2, 1, 0):
        found.reach(count)
        rivals.append(found.tenants.of("a_b").collides_with)
    assert rivals == [None, "a.b", None, "a.b", None]


def test_settings_that_workers_share_are_those_of_the_directory() -> None:
    found = treatment(signing=Signing(requests=(b"key",)))
    assert not found.tenants.of("shop").signs
    found.begin({"claims": "signed", "default_delivery": "ENVELOPE", "lifecycle": "ALL"})
    tenant = found.tenants.of("shop")
    assert (tenant.signs, tenant.accepted) == (True, (b"key",))
    assert (tenant.delivery, tenant.level) == (Delivery.ENVELOPE, Level.ALL)
    assert found.enveloped("belfry.fired.shop")
    found.begin({})
    tenant = found.tenants.of("shop")
    assert (tenant.signs, tenant.delivery, tenant.level) == (
        False,
        Delivery.PAYLOAD,
        Level.FAILURES,
    )
    assert not found.enveloped("belfry.fired.shop")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (None, {}),
        (encode_text('{"lifecycle":"ALL"}'), {"lifecycle": "ALL"}),
        (encode_text("[1]"), {}),
        (encode_text("{"), {}),
    ],
)
def test_a_statement_says_settings_or_nothing(
    statement: bytes | None, said: dict[str, Any]
) -> None:
    assert said_in(statement) == said
