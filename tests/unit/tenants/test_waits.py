"""Why a tenant's events wait, in words: the reason, the cause within it, and the sentence."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.tenants import waits
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level, Tenant
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.waits import CAUSES, REASONS, Why, why, why_locked, why_not_firing


def tenant(held: str = "", blocked: str = "", **fields: Any) -> Tenant:
    directory = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
    directory.follow(EffectivePolicy(TenantPolicy("shop", **fields), blocked=blocked))
    directory.hold("shop", held)
    return directory.of("shop")


@pytest.mark.parametrize(
    ("given", "cause", "said"),
    [
        ({"held": "its topic is missing"}, "output_topic", "its topic is missing"),
        ({"paused": True}, "paused", "its policy pauses it"),
        ({"blocked": "of a later release"}, "not_served", "of a later release"),
        ({"blocked": "later", "paused": True}, "not_served", "later"),
        ({"held": "no topic", "paused": True, "blocked": "b"}, "output_topic", "no topic"),
    ],
)
def test_what_blocks_a_tenant_is_told_by_whom_it_takes_to_end_it(
    given: dict[str, Any], cause: str, said: str
) -> None:
    assert why("tenant_blocked", tenant(**given)) == Why("tenant_blocked", cause, said)


@pytest.mark.parametrize(
    ("given", "cause", "said"),
    [
        (
            {"max_fires_per_second": 2.5, "priority": -1},
            "rate",
            "its policy allows 2.5 fires a second and partition (max_fires_per_second)",
        ),
        ({"max_fires_per_second": 0}, "rate",
         "its policy allows 0 fires a second and partition (max_fires_per_second)"),
        ({"priority": -3}, "priority", "others go before its priority -3"),
        ({"priority": 0}, "queue",
         "it is due, and others of its tenant's queue leave before it"),
    ],
)  # fmt: skip
def test_a_tenants_queue_waits_for_its_rate_its_priority_or_its_turn(
    given: dict[str, Any], cause: str, said: str
) -> None:
    assert why("tenant_queue", tenant(**given)) == Why("tenant_queue", cause, said)


@pytest.mark.parametrize("reason", [each for each in REASONS if not each.startswith("tenant_")])
def test_every_other_reason_is_its_own_cause_and_has_a_sentence(reason: str) -> None:
    found = why(reason, tenant())
    assert (found.waiting_for, found.cause) == (reason, reason)
    assert " " in found.reason


def test_a_lock_names_the_fire_and_its_schedule() -> None:
    said = "the fire f1 of schedule 'a/b' is not acknowledged"
    assert why_locked("a/b", "f1") == Why("ack_lock", "ack_lock", said)


def test_a_partition_that_does_not_fire_says_so_before_the_clock_does() -> None:
    assert why_not_firing() is None
    assert why_not_firing(clock="it is 9 s ahead") == Why(
        "firing", "clock", "firing is paused: it is 9 s ahead"
    )
    assert why_not_firing(clock="c", partition="it recovers") == Why(
        "firing", "partition", "its partition does not fire yet: it recovers"
    )


def test_causes_that_block_come_first() -> None:
    assert CAUSES[: len(waits.BLOCKING)] == waits.BLOCKING
    assert len(set(CAUSES)) == len(CAUSES)
