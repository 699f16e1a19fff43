"""Who sets which field of a policy: each stands in the table, and in the docs as there."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from belfry.tenants.policy import TenantPolicy
from belfry.tenants.policy_rights import PLATFORMS, SET_BY, TENANTS, platform_changes

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
