"""Who sets which field of a policy: each stands in the table, and in the docs as there."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from belfry.schedules.rejections import Rejection
from belfry.schedules.targets import record_of
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.policy_references import NO_TARGETS
from belfry.tenants.policy_rights import (
    PLATFORMS,
    SET_BY,
    TENANTS,
    platform_changes,
    reach_of_targets_problem,
)

PAGE = Path(__file__).parents[3] / "docs" / "tenants.md"


def test_every_field_says_who_sets_it() -> None:
    assert list(SET_BY) == [each.name for each in fields(TenantPolicy) if each.name != "tenant"]


def test_the_page_says_the_same() -> None:
    said = re.search(r"sets alone:(.*?)\n\n", PAGE.read_text("utf-8"), re.DOTALL)
    assert said is not None
    assert set(re.findall(r"`(\w+)`", said[1])) == set(PLATFORMS)


def test_a_tenant_does_not_choose_to_share_an_output() -> None:
    """Its events would be read by whoever may read those of the others, and theirs by it."""
    own, shared = TenantPolicy("a"), TenantPolicy("a", output="SHARED")
    assert platform_changes(own, shared) == platform_changes(shared, own) == ["output"]


def test_changes_of_the_platforms_fields_are_told_by_name() -> None:
    before = TenantPolicy("a", paused=True)
    assert not platform_changes(before, TenantPolicy("a", delivery="ENVELOPE"))
    changed = TenantPolicy("a", spread=2, former_spreads=(1,), output_topic="x")
    assert platform_changes(before, changed) == ["output_topic", "spread", "former_spreads"]
    assert not set(TENANTS) & set(PLATFORMS)


def refused(*targets: str | dict[str, Any], **fields: Any) -> str | None:
    """Why tenant `shop` may not have these targets; its topic `payments` is of another one."""

    def judge(topic: str) -> str | None:
        return "it is another tenant's" if topic == "payments" else None

    policy = TenantPolicy("shop", **fields)
    found = reach_of_targets_problem([record_of(each) for each in targets], policy, judge)
    assert found is None or found == Rejection("target_not_allowed", found.reason)
    return None if found is None else found.reason


def test_a_tenant_reaches_the_hosts_that_its_policy_lists() -> None:
    listed = ("a.example", "*.c.example", "kafka:audit", "kafka:payments")
    assert refused("https://b.example/") is None
    assert refused("https://a.example/", "kafka:audit", allowed_hosts=listed) is None
    assert refused("https://a.example/", "https://b.example/", allowed_hosts=listed[:2]) == (
        "Host 'b.example' of a target is none that the policy of tenant shop allows (a.example,"
        " *.c.example): use one of those, or ask for it in allowed_hosts."
    )
    # Of another tenant's topic no list makes a target.
    assert refused("kafka:payments", allowed_hosts=listed) == "it is another tenant's"


def test_of_a_long_list_of_hosts_the_beginning_is_shown() -> None:
    said = refused("https://b.example/", allowed_hosts=("a" * 63 + ".example",) * 9) or ""
    assert said.partition("(")[2].index("): use") == 200


def test_a_tenant_sends_only_secrets_that_its_policy_lists() -> None:
    headers = [{"name": "key", "value": "${env:BELFRY_SECRET_HEADER_A}"}]
    target = {"url": "https://a.example/", "headers": headers}
    hosts, named = ("a.example",), ("env:BELFRY_SECRET_HEADER_A",)
    assert refused(target, allowed_hosts=hosts, secret_refs=named) is None
    assert "is none of secret_refs" in (refused(target, allowed_hosts=hosts) or "")
    assert "has no allowed_hosts" in (refused(target, secret_refs=named) or "")


def test_payloads_that_are_encrypted_at_rest_go_to_no_target() -> None:
    keys = "env:BELFRY_SECRET_A"
    assert refused("https://a.example/", payload_key_ref=keys) == NO_TARGETS
    assert refused(payload_key_ref=keys) is None
