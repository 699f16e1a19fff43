"""Policies from fields: what is given, what is kept, and what is refused in words."""

from __future__ import annotations

import re

import pytest

from belfry.client.policy_fields import BadPolicy, changed, policy_from
from belfry.schedules.targets import HttpTarget
from belfry.tenants.policy import TenantPolicy, problems
from belfry.tenants.policy_references import secret_ref_problem


def test_fields_that_are_not_given_stay() -> None:
    before = TenantPolicy("demo", max_pending=5, delivery="ENVELOPE")
    after = changed(before, {"paused": True, "max_pending": None}, used=True)
    assert after == TenantPolicy("demo", delivery="ENVELOPE", paused=True)


def test_a_spread_that_changes_remembers_what_it_was() -> None:
    first = changed(TenantPolicy("demo"), {"spread": 4}, used=True)
    second = changed(first, {"spread": 8}, used=True)
    assert second.former_spreads == (1, 4)
    assert changed(second, {"spread": 8}, used=True).former_spreads == (1, 4)
    assert changed(second, {"paused": True}, used=True).former_spreads == (1, 4)


def test_a_tenant_that_was_never_used_has_no_former_spread() -> None:
    assert changed(TenantPolicy("new"), {"spread": 4}, used=False).former_spreads == ()


def test_a_spread_that_comes_back_is_refused_unless_the_former_ones_go() -> None:
    back = changed(TenantPolicy("demo", spread=4, former_spreads=(1,)), {"spread": 1}, used=True)
    assert any("comes back" in why for why in problems(back))
    clean = changed(back, {"spread": 1, "former_spreads": []}, used=True)
    assert problems(clean) == []


def test_nested_records_are_read() -> None:
    policy = policy_from({"tenant": "demo", "http_targets": [{"url": "https://example.com/x"}]})
    assert policy.http_targets == (HttpTarget("https://example.com/x"),)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_pendin": 1}, "Did you mean max_pending?"),
        ({"delivery": "WRAPPED"}, "delivery is 'WRAPPED'"),
        ({"spread": "many"}, "spread is 'many'"),
        ({"max_pending": "all"}, "max_pending is 'all'"),
        ({"nothing_like_it": 1}, "There are: output_topic, delivery, "),
        ({"paused": "maybe"}, "paused is 'maybe': give true or false."),
        ({"spread": "x"}, "spread is 'x': give a whole number."),
        (
            {"delivery": "ENVELOP"},
            "give one of PAYLOAD, ENVELOPE; did you mean ENVELOPE?",
        ),
    ],
)
def test_a_wrong_field_is_named(given: dict[str, object], says: str) -> None:
    with pytest.raises(BadPolicy, match=re.escape(says)):
        policy_from({"tenant": "demo", **given})


@pytest.mark.parametrize("ref", ["hunter2", "env:", "env:a b", "vault:x"])
def test_a_secret_that_is_no_reference_is_refused(ref: str) -> None:
    (why,) = problems(TenantPolicy("demo", signing_secret_ref=ref))
    assert "env:NAME or file:PATH" in why
    assert not ref[4:] or ref not in why


@pytest.mark.parametrize("ref", ["env:HOME", "env:BELFRY_HTTP_WORKER_SECRET", "env:BELFRY_SECRET_"])
def test_a_variable_that_no_worker_reads_secrets_from_cannot_be_set(ref: str) -> None:
    assert "begins with BELFRY_SECRET_" in (secret_ref_problem(ref) or "")
    # A policy that stands already is carried out: its tenant's events go on.
    assert ref.endswith("_") or problems(TenantPolicy("demo", signing_secret_ref=ref)) == []


@pytest.mark.parametrize("ref", [None, "env:BELFRY_SECRET_MAIL", "file:/etc/belfry/mail.secret"])
def test_places_that_a_worker_reads_may_be_set(ref: str | None) -> None:
    assert secret_ref_problem(ref) is None
