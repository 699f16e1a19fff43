"""Policies survive the wire, have the contract's defaults, and say what is wrong with them."""

from __future__ import annotations

from dataclasses import fields, replace
from math import inf, nan
from typing import Any

import pytest

from belfry.wire import catalogue
from belfry.wire.policies import (
    HttpTarget,
    TenantPolicy,
    decode_policy,
    encode_policy,
    http_target,
    problems,
    reason_header,
    reason_of,
)

RICH = TenantPolicy(
    tenant="payments.eu",
    output_topic="payments.reminders",
    delivery="ENVELOPE",
    cloudevents=True,
    guarantee="AT_LEAST_ONCE",
    spread=8,
    lifecycle="ALL",
    misfire="SKIP",
    look_back_ms=1,
    max_pending=10**9,
    max_requests_per_second=0.5,
    max_fires_per_second=1000.0,
    priority=-3,
    history_ms=0,
    paused=True,
    http_targets=(
        HttpTarget(
            url="https://example.com/hook",
            timeout_ms=2_000,
            max_attempts=3,
            secret_ref="hook",
            headers=(("x-a", "1"), ("x-a", "2")),
            strategy="ROUND_ROBIN",
        ),
        HttpTarget(url="http://second.example.com"),
    ),
    retry_max_attempts=9,
    retry_initial_ms=100,
    retry_max_ms=60_000,
    retry_max_age_ms=3_600_000,
    allowed_hosts=("example.com", "second.example.com"),
    former_spreads=(1, 4),
    removed=True,
    signing_secret_ref="env:PAYMENTS_SECRET",
)


def test_the_classes_have_the_fields_of_the_schema() -> None:
    schema = catalogue.schema("TenantPolicy")
    assert [each.name for each in fields(TenantPolicy)] == [one["name"] for one in schema["fields"]]
    targets = next(each for each in schema["fields"] if each["name"] == "http_targets")
    inner = targets["type"]["items"]["fields"]
    assert [each.name for each in fields(HttpTarget)] == [one["name"] for one in inner]


def test_round_trip_of_a_rich_policy() -> None:
    assert decode_policy(encode_policy(RICH)) == RICH


def test_the_defaults_of_class_and_schema_agree() -> None:
    assert decode_policy(catalogue.encode("TenantPolicy", {"tenant": "demo"})) == TenantPolicy(
        "demo"
    )


def test_the_defaults_of_target_class_and_schema_agree() -> None:
    record = {"tenant": "demo", "http_targets": [{"url": "https://example.com"}]}
    policy = decode_policy(catalogue.encode("TenantPolicy", record))
    assert policy.http_targets == (HttpTarget("https://example.com"),)


def test_targets_of_requests_are_the_same() -> None:
    record = {
        "tenant": "demo",
        "schedule_id": "a",
        "http_targets": [{"url": "https://example.com", "headers": [{"name": "h", "value": "v"}]}],
    }
    body = catalogue.encode("ScheduleRequest", record)
    read = catalogue.own_reader("ScheduleRequest").read(body)
    assert http_target(read["http_targets"][0]) == HttpTarget(
        "https://example.com", headers=(("h", "v"),)
    )


def test_lists_come_back_as_they_were_written() -> None:
    policy = replace(RICH, secret_refs=("env:A", "env:B"))
    assert decode_policy(encode_policy(policy)) == policy


def test_the_reason_of_a_policy_is_a_header_of_its_own() -> None:
    assert reason_header(None) == []
    assert reason_header("") == [("belfry-policy-reason", b"")]
    assert reason_header("é \ud800") == [("belfry-policy-reason", b"\xc3\xa9 ?")]
    assert reason_of([("other", b"x"), *reason_header("why"), *reason_header("more")]) == "why"
    assert reason_of([("belfry-policy-reason", b"\xff")]) == "\ufffd"
    assert reason_of([("belfry-policy-reason", None)]) is None
    assert reason_of([("other", b"x")]) is None


@pytest.mark.parametrize("policy", [RICH, TenantPolicy("demo")], ids=["rich", "default"])
def test_good_policies_have_no_problems(policy: TenantPolicy) -> None:
    assert problems(policy) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tenant": "a b"}, "Tenant 'a b'"),
        ({"output_topic": "a b"}, "output_topic 'a b'"),
        ({"output_topic": ".."}, "output_topic"),
        ({"delivery": "UNKNOWN"}, "delivery has a value"),
        ({"guarantee": "UNKNOWN"}, "guarantee has a value"),
        ({"lifecycle": "UNKNOWN"}, "lifecycle has a value"),
        ({"misfire": "UNKNOWN"}, "misfire has a value"),
        ({"spread": 0}, "spread is 0"),
        ({"spread": 5000}, "1 to 1024"),
        ({"max_pending": -1}, "max_pending is -1"),
        ({"max_fires_per_second": nan}, "max_fires_per_second is nan"),
        ({"max_requests_per_second": inf}, "max_requests_per_second is inf"),
        ({"history_ms": -5}, "history_ms is -5"),
        ({"retry_max_attempts": 0}, "retry_max_attempts is 0"),
        ({"http_targets": (HttpTarget("file:///x"),)}, "no absolute http"),
        ({"http_targets": (HttpTarget("https://a", timeout_ms=0),)}, "timeout_ms"),
        ({"http_targets": (HttpTarget("https://a", max_attempts=-1),)}, "max_attempts"),
        ({"http_targets": (HttpTarget("https://a", strategy="UNKNOWN"),)}, "strategy has a value"),
    ],
)
def test_a_bad_policy_says_what_is_wrong(change: dict[str, Any], words: str) -> None:
    found = problems(replace(TenantPolicy("demo"), **change))
    assert len(found) == 1
    assert words in found[0]
