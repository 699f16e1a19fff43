"""What the directory of tenants is asked besides: by bytes, by topic, and how often it asks."""

from __future__ import annotations

import pytest

from belfry.tenants.canary import CANARY, canary_policy
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level, Signing, Tenant
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.step_tenants import StepTenants

HOUR = 3_600_000
DAY = 86_400_000


@pytest.fixture
def tenants() -> Tenants:
    return Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)


def follow(tenants: Tenants, policy: TenantPolicy) -> Tenant:
    return tenants.follow(EffectivePolicy(policy))


def names(found: list[Tenant]) -> list[str]:
    return [each.name for each in found]


def test_the_shell_is_asked_once_for_the_policy_of_a_tenant(tenants: Tenants) -> None:
    asked: list[str] = []
    tenants.effective_of = asked.append
    tenants.signing = Signing(everybody=True, requests=(b"key",))
    for _ in range(2):
        tenants.of("shop")
        tenants.of_bytes(b"shop")
        assert tenants.secret_of("shop") == b"key"
    tenants.of_bytes(b"other")
    tenants.of("other")
    assert asked == ["shop", "other"]


def test_events_of_a_topic_are_those_of_the_tenants_that_lead_there(tenants: Tenants) -> None:
    follow(tenants, TenantPolicy("b", output_topic="payments"))
    follow(tenants, TenantPolicy("a", output_topic="payments"))
    follow(tenants, TenantPolicy("moved", output_topic="payments"))
    follow(tenants, TenantPolicy("moved", output_topic="reminders"))
    assert names(tenants.on("payments")) == ["a", "b"]
    assert names(tenants.on("reminders")) == ["moved"]
    # Nobody has met the tenant of the first, and the one of the second has its events elsewhere.
    assert names(tenants.on("belfry.fired.new")) == ["new"]
    assert names(tenants.on("belfry.fired.a")) == []
    assert names(tenants.on("nobodys")) == []


def test_those_that_share_a_topic_learn_how_large_its_records_may_be(tenants: Tenants) -> None:
    for name in ("a", "b"):
        follow(tenants, TenantPolicy(name, output="SHARED", priority=3))
    own = tenants.of("own")
    tenants.note_shared(5_000)
    shared = tenants.on("belfry.fired")
    assert [(each.name, each.max_record_bytes) for each in shared] == [("a", 5_000), ("b", 5_000)]
    assert [each.effective.policy.priority for each in shared] == [3, 3]
    assert tenants.of("own") is own
    # Whoever joins them later finds it as it is.
    assert follow(tenants, TenantPolicy("own", output="SHARED")).max_record_bytes == 5_000
    as_it_is = tenants.snapshot
    tenants.note_shared(5_000)
    assert tenants.snapshot is as_it_is


def test_a_target_names_no_topic_of_another_tenants_policy(tenants: Tenants) -> None:
    for name in ("shop", "b", "a"):
        follow(tenants, TenantPolicy(name, output_topic="payments" if name != "shop" else "mine"))
    assert tenants.target_problem("shop", "payments") == (
        "Topic 'payments' of a target is that of tenant a: name another one."
    )
    assert tenants.target_problem("shop", "mine") is None
    assert tenants.target_problem("shop", "nobodys") is None
    # Its own default is free to it, and to nobody else.
    assert tenants.target_problem("shop", "belfry.fired.shop") is None
    reserved = tenants.target_problem("other", "belfry.fired.shop") or ""
    assert reserved.startswith("Topic 'belfry.fired.shop' of a target is reserved: belfry keeps it")


def test_who_has_a_policy_is_told_from_who_made_a_name_up(tenants: Tenants) -> None:
    tenants.note_policies(["known"])
    tenants.note_topics(["belfry.fired.there"])
    moved = follow(tenants, TenantPolicy("moved", output_topic="payments"))
    has_policy = tenants.topics.has_policy
    assert has_policy(moved)
    assert has_policy(tenants.of("known"))
    # A topic alone is no policy, nor is a name that is the same in Kafka's metrics.
    assert not has_policy(tenants.of("there"))
    tenants.note_policies(["a.b"])
    assert not has_policy(tenants.of("a_b"))


def test_a_step_remembers_ends_as_the_tenant_of_a_schedule_says(tenants: Tenants) -> None:
    follow(tenants, TenantPolicy("shop", remember_ms=HOUR))
    step = StepTenants(tenants)
    assert step.remember_ms(b"shop/orders/7") == HOUR
    assert step.remember_ms(b"stranger/7") == DAY
    assert tenants.known(b"stranger") is None


def test_a_step_knows_topics_of_dead_letters_by_the_room_of_their_records(tenants: Tenants) -> None:
    tenants.topics.letters = {"belfry.dead-letters.shop": 9_000}
    step = StepTenants(tenants)
    assert step.letters_of("shop") == ("belfry.dead-letters.shop", 9_000)
    assert step.letters_of("other") == ("belfry.dead-letters.other", 0)


def test_probes_lead_everywhere_and_their_outcomes_are_told_for_an_hour(tenants: Tenants) -> None:
    canary = follow(tenants, canary_policy("belfry.canary"))
    assert (canary.name, canary.topic, canary.stopped) == (CANARY, "belfry.canary", "")
    assert (canary.level, canary.effective.policy.history_ms) == (Level.OUTCOMES, HOUR)
    # No policy of a topic may spread so widely: there it would be refused.
    assert canary.spread == 16_384
