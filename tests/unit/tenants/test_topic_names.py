"""Topics that no policy may have a tenant's events go to."""

from __future__ import annotations

import pytest

from belfry.kafka.wanted_topics import CONFIGS, HOMES_TOPIC
from belfry.schedules.rejections import Rejection
from belfry.tenants.canary import CANARY, canary_policy
from belfry.tenants.deliveries import RETRIES, retry_policy
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.topic_names import INTERNAL, TopicNames, taken_topics

NAMES = TopicNames("belfry.")
RESERVED = [
    *(f"belfry.{name}" for name in sorted(INTERNAL)),
    "belfry.fired.b",
    "belfry.fired.a.b",
    "belfry.schedules.a",
    "belfry_tenants",
    "belfry_fired_b",
    "belfry.fired_b",
    "__consumer_offsets",
    "__transaction_state",
]
FREE = [None, "belfry.fired.a", "payments.reminders", "belfry.reminders", "belfry", "fired.b"]


@pytest.mark.parametrize("topic", RESERVED)
def test_what_belongs_to_others_is_reserved(topic: str) -> None:
    problem = NAMES.problem("a", topic) or ""
    assert problem.startswith(f"output_topic {topic!r} is reserved: ")
    assert "belfry.fired.a" in problem


@pytest.mark.parametrize(
    ("topic", "whose"),
    [
        ("__offsets", "names that begin with __ are Kafka's own"),
        ("belfry.tenants",
         "belfry keeps it for itself or for another tenant (prefix belfry.)"),
    ],
)  # fmt: skip
def test_it_is_told_whose_a_topic_is(topic: str, whose: str) -> None:
    assert NAMES.whose("a", topic) == whose


@pytest.mark.parametrize("topic", FREE)
def test_what_is_nobodys_or_the_tenants_own_is_free(topic: str | None) -> None:
    assert NAMES.problem("a", topic) is None


def test_every_topic_that_belfry_makes_is_reserved() -> None:
    assert {*CONFIGS, HOMES_TOPIC} <= INTERNAL


def test_another_belfrys_prefix_is_not_ours() -> None:
    assert TopicNames("second.").problem("a", "second.tenants") is not None
    assert TopicNames("second.").problem("a", "second.orders") is None


def test_retries_alone_go_to_the_topic_of_deliveries() -> None:
    topic = "belfry.deliveries"
    assert NAMES.problem(RETRIES, retry_policy(topic).output_topic) is None
    assert NAMES.problem(RETRIES, "belfry.tenants") is not None
    assert NAMES.problem(RETRIES, "belfry.canary") is not None
    assert NAMES.problem(CANARY, canary_policy("belfry.canary").output_topic) is None
    assert NAMES.problem(CANARY, "belfry.slo") is not None
    assert NAMES.problem("demo", "belfry.canary") is not None


def test_no_tenant_is_ever_given_a_topic_of_others() -> None:
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    refused = Rejection("tenant_removed", "as the shell says")
    policy = TenantPolicy("a", output_topic="belfry.tenants", priority=3)
    effective = EffectivePolicy(policy, refused, "", (b"s",))
    found = tenants.follow(effective)
    assert found.topic == tenants.topic_of(effective) == "belfry.fired.a"
    assert "is reserved" in found.stopped
    assert found.effective.policy.priority == 3
    assert (found.effective.refused, found.accepted) == (refused, (b"s",))
    assert "belfry.tenants" not in tenants.moved_topics()
    assert not tenants.follow(EffectivePolicy(TenantPolicy("a"))).stopped


def test_the_topic_of_another_tenants_policy_is_taken() -> None:
    before = {"b": TenantPolicy("b", output_topic="theirs")}
    asked = (TenantPolicy("c"), TenantPolicy("a", output_topic="theirs"))
    (problem,) = taken_topics(before, asked)
    assert problem == (
        "a: output_topic 'theirs' is that of tenant b: name another topic, or say that they are to"
        " share it (`belfry tenant set --share-topic`, over HTTP `?share_topic=true`)."
    )
    together = (TenantPolicy("a", output_topic="new"), TenantPolicy("c", output_topic="new"))
    assert len(list(taken_topics(before, together))) == 2


def test_who_has_a_topic_already_keeps_it() -> None:
    shared = {name: TenantPolicy(name, output_topic="theirs") for name in "ab"}
    assert not list(taken_topics(shared, (TenantPolicy("a", output_topic="theirs", paused=True),)))
    moved = (TenantPolicy("a", output_topic="other"), TenantPolicy("b"))
    assert not list(taken_topics(shared, moved))


def test_of_what_a_step_fires_the_topics_of_others_are_told_with_their_reason() -> None:
    uses = [("a", "belfry.fired.a"), ("a", "payments"), ("b", "belfry.tenants")]
    assert NAMES.reserved(uses) == {"belfry.tenants": NAMES.problem("b", "belfry.tenants")}


@pytest.mark.parametrize("whose", ["a", "b"])
def test_no_policy_and_no_target_names_a_topic_of_dead_letters(whose: str) -> None:
    topic = f"{NAMES.letters}{whose}"
    assert topic == f"belfry.dead-letters.{whose}"
    for name in (topic, topic.replace(".", "_")):
        assert NAMES.problem("a", name) is not None
        assert NAMES.target_problem("a", name) is not None
