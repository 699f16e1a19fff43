"""W3C trace contexts: what is one, and what is to be traced."""

from __future__ import annotations

import pytest

from belfry.wire.trace_context import TraceContext, context_of, sampled_in

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"  # pragma: allowlist secret


@pytest.mark.parametrize(
    ("given", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"00-{TRACE}-{SPAN}-02", False),
        (f"00-{TRACE}-{SPAN}-0b", True),
        (f"00-{TRACE}-{SPAN}-10", False),
        (f"00-{TRACE}-{SPAN}-1f", True),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-adds", True),
    ],
)
def test_a_context_says_whether_it_is_sampled(given: str, sampled: bool) -> None:
    assert context_of(given, "a=1") == TraceContext(TRACE, SPAN, sampled, "a=1")


@pytest.mark.parametrize(
    "given",
    [
        "",
        "00-1",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01 ",
    ],
)
def test_what_is_not_well_formed_is_no_context(given: str) -> None:
    assert context_of(given) is None
    assert sampled_in([("traceparent", given.encode())]) is None


def test_headers_lead_back_to_their_context() -> None:
    context = TraceContext(TRACE, SPAN, True, "a=1")
    assert sampled_in([("other", b"x"), *context.headers()]) == context
    assert sampled_in(context._replace(sampled=False).headers()) is None


def test_of_several_the_first_counts_and_odd_bytes_are_none() -> None:
    first, second = TraceContext(TRACE, SPAN), TraceContext(TRACE, SPAN[::-1])
    assert sampled_in([*first.headers(), *second.headers()]) == first
    assert sampled_in([("traceparent", None)]) is None
    assert sampled_in([("traceparent", b"\xff\x00")]) is None
    assert sampled_in([*first.headers(), ("tracestate", b"x" * 600)]) == first


def test_a_context_becomes_two_headers() -> None:
    parent = f"00-{TRACE}-{SPAN}-"
    assert TraceContext(TRACE, SPAN).headers() == [("traceparent", f"{parent}01".encode())]
    assert TraceContext(TRACE, SPAN, False, "a=é").headers() == [
        ("traceparent", f"{parent}00".encode()),
        ("tracestate", b"a=\xe9"),
    ]


@pytest.mark.parametrize(
    ("given", "kept"),
    [("a=1,b=2", True), ("x" * 512, True), ("x" * 513, False), ("a=\n", False), ("", True)],
)
def test_a_state_is_passed_on_as_far_as_it_may_be(given: str, kept: bool) -> None:
    parent = f"00-{TRACE}-{SPAN}-01"
    expected = TraceContext(TRACE, SPAN, True, given if kept else "")
    assert context_of(parent, given) == expected
    headers = [("tracestate", given.encode()), ("traceparent", parent.encode())]
    assert sampled_in([*headers, ("tracestate", b"later=1"), ("traceparent", b"")]) == expected
    assert context_of(parent) == TraceContext(TRACE, SPAN, True, "")


def test_a_state_alone_and_one_without_a_value_are_nothing() -> None:
    assert sampled_in([]) is sampled_in([("tracestate", b"a=1")]) is None
    parent = ("traceparent", f"00-{TRACE}-{SPAN}-01".encode())
    assert sampled_in([parent, ("tracestate", None)]) == TraceContext(TRACE, SPAN)
    assert sampled_in([parent, ("tracestate", b"a=\xe9")]) == TraceContext(TRACE, SPAN, True, "a=é")
