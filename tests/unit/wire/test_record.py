"""Where a request was first received travels with it, and nobody else can make it up."""

from __future__ import annotations

import pytest

from belfry.wire.record import Headers, Origin, SourceRecord, origin_headers, origin_of, size_of

T0 = 1_800_000_000_000
FIRST = Origin("belfry.schedules", 3, 41, T0, rerouted=False)


def record(headers: Headers | None, timestamp_ms: int = T0 + 7) -> SourceRecord:
    return (5, timestamp_ms, b"key", b"value", headers)


def test_a_record_that_was_not_re_routed_is_its_own_origin() -> None:
    expected = Origin("belfry.schedules", 0, 5, T0 + 7, rerouted=False)
    for headers in (None, [], [("mine", b"1"), ("null", None)]):
        assert origin_of(record(headers), "belfry.schedules", 0) == expected


def test_a_re_routed_record_says_where_it_came_from() -> None:
    carried: Headers = [("mine", b"1"), *origin_headers(FIRST)]
    assert origin_of(record(carried), "belfry.schedules", 0) == FIRST._replace(rerouted=True)


@pytest.mark.parametrize("left_out", range(4))
def test_half_of_the_headers_are_none(left_out: int) -> None:
    carried = origin_headers(FIRST)
    del carried[left_out]
    assert not origin_of(record(carried), "t", 0).rerouted


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("topic", b"\xff"),
        ("topic", b"t" * 250),
        ("partition", b"x"),
        ("partition", b"-1"),
        ("partition", b"2147483648"),
        ("offset", None),
        ("offset", b"-1"),
        ("offset", b"9223372036854775808"),
        ("offset", b"9" * 5000),
        ("timestamp", b"0"),
        ("timestamp", b"-5"),
        ("timestamp", b"9" * 40),
        ("timestamp", b"1800000000008000000"),
    ],
)
def test_made_up_origins_are_not_believed(name: str, given: bytes | None) -> None:
    headers = [*origin_headers(FIRST), (f"belfry-origin-{name}", given)]
    here = origin_of(record(headers), "t", 0)
    assert here == Origin("t", 0, 5, T0 + 7, rerouted=False)


def test_the_size_of_a_record_counts_all_that_it_carries() -> None:
    assert size_of((0, 0, None, None, None)) == 0
    assert size_of((0, 0, b"kk", b"vvv", None)) == 5
    assert size_of((0, 0, b"kk", b"vvv", [("n", b"1234"), ("n", None)])) >= 5 + 4 + 2
