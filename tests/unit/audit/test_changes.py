"""What a change of a policy is told as: names, values, and no credentials."""

from __future__ import annotations

from dataclasses import replace

from belfry.audit.changes import changes_of
from belfry.schedules.targets import HttpTarget
from belfry.tenants.policy import TenantPolicy
from belfry.wire.audit import PolicyChange

BEFORE = TenantPolicy("demo", max_pending=10, paused=True)


def test_only_what_changed_is_told_in_the_schemas_order() -> None:
    after = replace(BEFORE, paused=False, delivery="ENVELOPE", allowed_hosts=("a.example",))
    assert changes_of(BEFORE, after) == (
        PolicyChange("delivery", '"PAYLOAD"', '"ENVELOPE"'),
        PolicyChange("paused", "true", "false"),
        PolicyChange("allowed_hosts", "[]", '["a.example"]'),
    )
    assert changes_of(BEFORE, BEFORE) == ()


def test_a_policy_that_begins_or_ends_tells_what_differs_from_the_defaults() -> None:
    assert changes_of(None, BEFORE) == (
        PolicyChange("max_pending", None, "10"),
        PolicyChange("paused", None, "true"),
    )
    assert changes_of(BEFORE, None) == (
        PolicyChange("max_pending", "10", None),
        PolicyChange("paused", "true", None),
    )
    assert changes_of(None, None) == ()


def test_what_no_field_can_hold_is_told_as_well() -> None:
    (change,) = changes_of(BEFORE, replace(BEFORE, max_pending=2**80))
    assert change.after == str(2**80)


def test_credentials_of_targets_are_masked() -> None:
    target = HttpTarget(
        "https://a.example/x?token=t0p", headers=(("authorization", "Bearer s3cret"),)
    )
    (change,) = changes_of(BEFORE, replace(BEFORE, http_targets=(target,)))
    assert change.field == "http_targets"
    told = f"{change.before} {change.after}"
    assert "a.example" in told
    assert "authorization" in told
    assert "s3cret" not in told
    assert "t0p" not in told
