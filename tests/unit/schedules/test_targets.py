"""HTTP targets: addresses that are taken, those that are not, and targets at rest."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.masking import masked_target, masked_url
from belfry.schedules.rule import Rule, decode_rule, encode_rule, targets_in, without_targets
from belfry.schedules.target_kinds import is_allowed, kind_of, list_problem, place_of
from belfry.schedules.target_kinds.kafka import KAFKA
from belfry.schedules.targets import (
    MAX_ATTEMPTS,
    HttpTarget,
    decode_targets,
    encode_targets,
    is_typed,
    record_of,
    records_in,
    target_of,
)
from belfry.schedules.triggers import trigger_of

GOOD = [
    "https://hooks.example.com/belfry?a=1&b=%C3%A9",
    "http://example.com",
    "http://example.com?q",
    "https://example.com:8443/",
    "http://127.0.0.1:8000/x",
    "http://[::1]:80/",
    "http://[1:2:3:4:5:6:7:8]/",
    "https://xn--bcher-kva.example/",
    "http://host_name.internal./",
]
BAD = [
    "",
    "hooks.example.com",
    "//example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:25/_MAIL",
    "HTTP://example.com/",
    "http://",
    "http:///path",
    "http://user@example.com/",
    "http://user:secret@example.com/",
    "http://example.com#@evil.example/",
    "http://example.com/#fragment",
    "http://example.com\\@evil.example/",
    "http://exam ple.com/",
    "http://example.com/a b",
    "http://example.com/\r\nHost: evil",
    "http://example.com\t/",
    "http://example.com:0/",
    "http://example.com:65536/",
    "http://example.com:80:80/",
    "http://example.com:+80/",
    "http://[::1/",
    "http://[fe80::1%25eth0]/",
    "http://[v1.x]/",
    "http://[::::]/",
    "http://[1.2.3.4]/",
    "http://[.]/",
    "http://bücher.example/",
    "http://ⓔxample.com/",
    "http://127。0。0。1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://127.0.0.1./",
    "http://0/",
    "http://-example.com/",
    "http://.example.com/",
    "http://example.com/" + "a" * 2048,
]


@pytest.mark.parametrize("url", GOOD)
def test_addresses_that_are_taken(url: str) -> None:
    assert list_problem([HttpTarget(url)]) is None
    assert place_of(HttpTarget(url))


@pytest.mark.parametrize("url", BAD)
def test_addresses_that_could_be_read_in_two_ways_are_refused(url: str) -> None:
    assert "no absolute http" in (list_problem([HttpTarget(url)]) or "")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (HttpTarget("http://h/", timeout_ms=60_001), "timeout_ms"),
        (HttpTarget("http://h/", max_attempts=1_001), "max_attempts"),
        (HttpTarget("http://h/", strategy="UNKNOWN"), "strategy"),
        (HttpTarget("http://h/", headers=(("a b", "c"),)), "Header 'a b'"),
        (HttpTarget("http://h/", headers=(("a", "b\r\nc: d"),)), "Header 'a'"),
        (HttpTarget("http://h/", headers=(("Content-Length", "0"),)), "Header 'Content-Length'"),
        (HttpTarget("http://h/", headers=(("Webhook-Signature", "x"),)), "Webhook-Signature"),
        (HttpTarget("http://h/", headers=(("a", "b"),) * 33), "33 headers"),
        (HttpTarget("http://h/", headers=(("a", "b" * 4_000),) * 6), "bytes"),
    ],
)
def test_other_problems_are_named(target: HttpTarget, words: str) -> None:
    assert words in (list_problem([target]) or "")


def test_targets_are_not_without_number() -> None:
    assert "at most 16" in (list_problem([HttpTarget("http://h/")] * 17) or "")


@pytest.mark.parametrize(
    ("host", "names", "wanted"),
    [
        ("a.example.com", (), True),
        ("a.example.com", ("a.example.com",), True),
        ("a.example.com", ("A.example.com.",), True),
        ("a.example.com", ("example.com",), False),
        ("a.example.com", ("*.example.com",), True),
        ("a.b.example.com", ("*.example.com",), True),
        ("example.com", ("*.example.com",), False),
        ("evilexample.com", ("*.example.com",), False),
        ("a.example.com.evil", ("*.example.com", "a.example.com"), False),
        ("example.com", ("Example.com.",), True),
        ("Example.com.:8443", ("example.com",), True),
        ("a b", ("*.example.com",), False),
    ],
)
def test_hosts_are_allowed_by_name(host: str, names: tuple[str, ...], wanted: bool) -> None:
    assert is_allowed(HttpTarget(f"http://{host}/"), names) is wanted


FULL = HttpTarget("https://h/é", 5, 2, "s", (("a", "b"),), "ROUND_ROBIN")
# Written once and never changed: a store of any release holds such bytes.
FROZEN = (
    '[{"url":"https://h/é","timeout_ms":5,"max_attempts":2,"secret_ref":"s",'
    '"headers":[["a","b"]],"strategy":"ROUND_ROBIN"},{"url":"http://i/"}]'
)


def test_frozen_bytes() -> None:
    both = (FULL, HttpTarget("http://i/"))
    assert encode_targets(both).decode() == FROZEN
    assert decode_targets(FROZEN.encode()) == both
    rule = encode_rule(Rule("AT", targets=b"[]", misfire="SKIP"))
    assert rule.hex(" ") == "01 00 81 00 03 5b 5d 00 02"


@pytest.mark.parametrize("rule", [Rule("AT"), Rule("CRON", when="@daily", max_fires=3)])
@pytest.mark.parametrize("size", [2, 300, 16_384])
def test_targets_lie_at_the_end_of_a_rule(rule: Rule, size: int) -> None:
    targets = b"x" * size
    encoded = encode_rule(
        Rule(rule.kind, when=rule.when, max_fires=rule.max_fires, targets=targets)
    )
    assert targets_in(encoded) == targets
    assert decode_rule(encoded).targets == targets
    assert decode_rule(without_targets(encoded)) == rule
    assert trigger_of(encoded).rule == rule


PLAIN = {
    "url": "http://i/", "timeout_ms": 10_000, "max_attempts": 0, "secret_ref": None,
    "headers": [], "strategy": "ALL",
}  # fmt: skip


def test_a_target_is_an_address_or_some_fields() -> None:
    assert record_of("http://i/") == record_of({"url": "http://i/"}) == PLAIN
    pairs = [{"name": "a", "value": "b"}, {"name": "c", "value": ""}]
    for headers in ({"a": "b", "c": ""}, [{"name": "a", "value": "b"}, {"name": "c"}]):
        given = {"url": "http://i/", "timeout_ms": 5, "headers": headers}
        assert record_of(given) == {**PLAIN, "timeout_ms": 5, "headers": pairs}
    found = target_of(record_of({"url": "http://i/", "headers": {"a": "b"}}))
    assert found == HttpTarget("http://i/", headers=(("a", "b"),))


@pytest.mark.parametrize("given", [{}, {"timeout_ms": 5}, {"url": "http://i/", "method": "GET"}])
def test_a_target_without_an_address_or_with_another_field_is_told(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="HTTP target") as told:
        record_of(given)
    assert str(told.value) == (
        f"HTTP target {given!r} needs url, and may have headers, max_attempts, secret_ref,"
        " strategy, timeout_ms"
    )


def test_targets_at_rest_are_shown_without_defaults() -> None:
    first, second = records_in(FROZEN.encode())
    assert first == {
        "url": "https://h/é", "timeout_ms": 5, "max_attempts": 2, "secret_ref": "s",
        "headers": [{"name": "a", "value": "b"}], "strategy": "ROUND_ROBIN",
    }  # fmt: skip
    assert second == {"url": "http://i/"}
    assert decode_targets(b"") == ()
    assert records_in(b"") == []


def test_credentials_of_a_target_are_masked() -> None:
    masked = [{"name": "a", "value": "***"}], [["a", "***"]]
    for headers, shown in zip(([{"name": "a", "value": "b"}], [["a", "b"]]), masked, strict=True):
        target = {"url": "http://h/x?token=abc?", "headers": headers, "timeout_ms": 5}
        expected = {"url": "http://h/x?***", "headers": shown, "timeout_ms": 5}
        assert masked_target(target) == expected
    for plain in ({"url": "http://h/x"}, {"url": "http://h/x", "headers": []}):
        assert masked_target(plain) == plain
    assert [masked_url("http://h?"), masked_url("http://h")] == ["http://h?***", "http://h"]


TOPIC = HttpTarget("kafka:audit")


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (TOPIC, []),
        (HttpTarget("kafka:audit", max_attempts=MAX_ATTEMPTS), []),
        (
            HttpTarget("kafka:audit", max_attempts=MAX_ATTEMPTS + 1),
            ["max_attempts of 'kafka:audit' is 1001; 0 to 1000 is allowed."],
        ),
        (
            HttpTarget("kafka:audit", max_attempts=-1),
            ["max_attempts of 'kafka:audit' is -1; 0 to 1000 is allowed."],
        ),
        (
            HttpTarget("kafka:a b"),
            [
                (
                    "url 'kafka:a b' of a target names no topic: write kafka: and 1-249 of A-Z a-z"
                    " 0-9 . _ -, such as kafka:payments.audit."
                )
            ],
        ),
        (
            HttpTarget("kafka:audit", 5, 0, "s", (("a", "b"),), "ROUND_ROBIN"),
            [
                (
                    "strategy of 'kafka:audit' is ROUND_ROBIN; a topic takes ALL: name it beside"
                    " the targets over HTTP, and it gets each event."
                ),
                "timeout_ms of 'kafka:audit' is for targets over HTTP; leave it out.",
                "secret_ref of 'kafka:audit' is for targets over HTTP; leave it out.",
                "headers of 'kafka:audit' is for targets over HTTP; leave it out.",
            ],
        ),
    ],
)
def test_what_a_topic_cannot_do_is_told_word_by_word(target: HttpTarget, told: list[str]) -> None:
    assert KAFKA.problems(target) == told


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://Hooks.Example.com.:8443/x", "hooks.example.com"),
        ("http://[::1]:80/", "[::1]"),
        ("http://a b/", ""),
        ("kafka:payments.audit", "kafka:payments.audit"),
        ("kafka:.", ""),
        ("kafka:..", ""),
        ("kafka:a/b", ""),
        ("payments.audit", ""),
    ],
)
def test_an_address_names_a_host_or_a_topic(url: str, place: str) -> None:
    assert place_of(HttpTarget(url)) == place


@pytest.mark.parametrize(
    "target",
    [
        HttpTarget("http://h:1/"),
        HttpTarget("http://h:65535/"),
        HttpTarget("http://h/".ljust(2_048, "a")),
        HttpTarget("http://h/", timeout_ms=1),
        HttpTarget("http://h/", timeout_ms=60_000),
        HttpTarget("http://h/", max_attempts=MAX_ATTEMPTS),
        HttpTarget("http://h/", headers=(("a", "b"),) * 32),
        HttpTarget("kafka:a", max_attempts=MAX_ATTEMPTS),
    ],
)
def test_a_target_at_its_bounds_is_allowed(target: HttpTarget) -> None:
    assert list_problem([target]) is None


def test_a_header_that_may_not_travel_is_told_word_by_word() -> None:
    assert list_problem([HttpTarget("http://h/", headers=(("a b", "c"),))]) == (
        "Header 'a b' of a target is not allowed: a name of letters, digits and - that is not"
        " belfry's or the connection's own, and a value of printable ASCII."
    )


def test_targets_of_one_host_and_port_share_what_is_sent_at_once() -> None:
    kind = kind_of(HttpTarget("http://h/"))
    assert kind.share("https://Hooks.Example.com:8443/x?y") == "hooks.example.com:8443"
    assert kind.share("https://hooks.example.com/x") == "hooks.example.com"
    assert kind_of(HttpTarget("kafka:A.b")).share("kafka:A.b") == "kafka:A.b"


FIELDS: dict[str, Any] = {"timeout_ms": 5, "max_attempts": 2, "secret_ref": "s"}


@pytest.mark.parametrize(
    ("fields", "typed"),
    [
        ({}, True),
        ({"secret_ref": None}, True),
        ({"headers": (("a", "b"),)}, True),
        ({"timeout_ms": "5"}, False),
        ({"timeout_ms": True}, False),
        ({"max_attempts": 2.0}, False),
        ({"strategy": None}, False),
        ({"secret_ref": 7}, False),
        ({"headers": (("a", 1),)}, False),
        ({"headers": (("a", "b"), ("c", None))}, False),
        ({"headers": (("a", "b", "c"),)}, False),
    ],
)
def test_json_of_somebody_else_may_hold_other_types(fields: dict[str, Any], typed: bool) -> None:
    assert is_typed(HttpTarget("http://h/", **{**FIELDS, **fields})) is typed


@pytest.mark.parametrize(
    ("place", "why"), [("kafka:orders", "orders is kept"), ("kafka:a/b", None), ("h", None)]
)
def test_whether_a_topic_is_kept_from_a_tenant_is_asked_by_its_name(
    place: str, why: str | None
) -> None:
    assert KAFKA.refused(place, lambda topic: f"{topic} is kept") == why
    assert KAFKA.allows("kafka:orders", ("kafka:orders", "h"))
    assert not KAFKA.allows("kafka:orders", ("kafka:order", "h"))
    assert not KAFKA.allows("kafka:orders", ())
