"""Where a request was first received travels with it, and nobody else can make it up."""

from __future__ import annotations

import pytest

from belfry.wire.record import (
    ASKED,
    LATEST_MS,
    ORIGIN_TENANT,
    REDRIVEN_FROM,
    RETRIES,
    SENT_BY,
    SIGNATURE,
    Headers,
    Origin,
    SentBy,
    SourceRecord,
    asked_of,
    carried_on,
    handed_over,
    has_hopped,
    is_redriven,
    origin_headers,
    origin_of,
    retries_of,
    sent_by_headers,
    sent_by_of,
    size_of,
    stamp_of,
    without_origin,
)

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
        ("topic", b""),
        ("topic", None),
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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"3.41", SentBy(3, 41)),
        (b"0.1", SentBy(0, 1)),
        (b"3.4.1", None),
        (b"3", None),
        (b"x.1", None),
        (b"3.-1", None),
        (None, None),
        # As long as two numbers of a worker may be, and one digit more.
        (b"3." + b"1" * 29, SentBy(3, int("1" * 29))),
        (b"3." + b"1" * 30, None),
    ],
)
def test_a_record_that_was_sent_on_says_by_which_transaction(
    given: bytes | None, said: SentBy | None
) -> None:
    assert sent_by_of([("mine", b"7.7"), (SENT_BY, given)]) == said
    assert sent_by_of([("mine", b"7.7")]) is sent_by_of(None) is None


def test_who_keeps_no_changelog_says_nothing() -> None:
    assert sent_by_headers(3, 0) == []
    assert sent_by_of(sent_by_headers(3, 41)) == SentBy(3, 41)


def test_a_hand_over_is_no_hop_and_each_way_on_is_one() -> None:
    handed: Headers = [*origin_headers(FIRST), (ORIGIN_TENANT, b"shop")]
    assert not has_hopped(None)
    assert not has_hopped([("mine", b"1")])
    assert not has_hopped(handed)
    assert has_hopped(origin_headers(FIRST))
    assert has_hopped([*handed, (ASKED, b"1")])


def test_what_is_handed_over_is_stamped_by_belfry_alone() -> None:
    own: Headers = [("mine", b"1"), (REDRIVEN_FROM, b"t/0/5")]
    forged: Headers = [(ORIGIN_TENANT, b"other"), (SIGNATURE, b"s"), *origin_headers(FIRST)]
    origin = FIRST._replace(partition=7)
    stamped = [*origin_headers(origin), (ORIGIN_TENANT, b"shop")]
    assert handed_over(record([*forged, *own]), origin, "shop") == [*own, *stamped]


@pytest.mark.parametrize(
    ("given", "asked"), [(b"2", 2), (b"9999", 9_999), (b"10000", 0), (b"x", 0), (None, 0)]
)
def test_a_number_of_homes_is_believed_as_far_as_there_may_be(
    given: bytes | None, asked: int
) -> None:
    assert asked_of(record([(ASKED, given)])) == asked
    assert asked_of(record(None)) == 0


def test_numbers_are_found_under_their_own_header_and_the_first_counts() -> None:
    given: Headers = [("mine", b"7"), (RETRIES, b"3"), (ASKED, None), (ASKED, b"2"), (ASKED, b"1")]
    assert (asked_of(record(given)), retries_of(record(given))) == (2, 3)
    assert retries_of(record([(ASKED, b"2")])) == 0


@pytest.mark.parametrize(
    ("name", "given", "field", "expected"),
    [
        ("topic", b"t", "topic", "t"),
        ("topic", b"t" * 249, "topic", "t" * 249),
        ("partition", b"0", "partition", 0),
        ("partition", b"2147483647", "partition", 2**31 - 1),
        ("offset", b"0", "offset", 0),
        ("offset", b"9223372036854775807", "offset", 2**63 - 1),
        ("timestamp", b"1", "timestamp_ms", 1),
    ],
)
def test_an_origin_is_believed_up_to_what_a_broker_may_have(
    name: str, given: bytes, field: str, expected: object
) -> None:
    headers = [*origin_headers(FIRST), (f"belfry-origin-{name}", given)]
    found = origin_of(record(headers), "t", 0)
    assert (getattr(found, field), found.rerouted) == (expected, True)


def test_nothing_is_received_after_it_was_sent_on() -> None:
    """The clocks of two brokers differ: the earlier instant counts."""
    carried = origin_headers(FIRST)
    assert origin_of(record(carried, T0 - 5), "t", 0) == Origin(
        "belfry.schedules", 3, 41, T0 - 5, rerouted=True
    )
    latest = [*carried, ("belfry-origin-timestamp", b"%d" % (LATEST_MS - 1))]
    assert origin_of(record(latest), "t", 0).timestamp_ms == T0 + 7
    too_late = [*carried, ("belfry-origin-timestamp", b"%d" % LATEST_MS)]
    assert not origin_of(record(too_late), "t", 0).rerouted


@pytest.mark.parametrize(
    ("instant_ms", "told"),
    [(0, 1), (-5, 1), (1, 1), (10**14 - 1, 10**14 - 1), (10**14, 10**14 - 1)],
)
def test_an_instant_that_no_reader_would_believe_is_replaced(instant_ms: int, told: int) -> None:
    headers = origin_headers(FIRST._replace(timestamp_ms=instant_ms), asked=2)
    assert headers == [
        ("belfry-origin-topic", b"belfry.schedules"),
        ("belfry-origin-partition", b"3"),
        ("belfry-origin-offset", b"41"),
        ("belfry-origin-timestamp", b"%d" % told),
        (ASKED, b"2"),
    ]
    assert origin_headers(FIRST._replace(timestamp_ms=instant_ms)) == headers[:-1]
    assert origin_of(record(headers, 10**15), "t", 0).timestamp_ms == told


def test_a_stamp_is_the_first_one_and_any_bytes_are_text() -> None:
    assert stamp_of(None) is stamp_of([("mine", b"1")]) is None
    assert stamp_of([("mine", b"1"), (ORIGIN_TENANT, b"shop"), (ORIGIN_TENANT, b"x")]) == "shop"
    assert stamp_of([(ORIGIN_TENANT, None)]) == ""
    assert stamp_of([(ORIGIN_TENANT, b"a\xff")]) == "a\ufffd"


def test_what_travels_on_is_the_users_and_that_it_was_sent_again() -> None:
    redriven = (REDRIVEN_FROM, b"t/0/5")
    given: Headers = [
        redriven,
        *origin_headers(FIRST),
        ("mine", None),
        ("belfry-origin-later", b""),
    ]
    assert without_origin(given) == [("mine", None)]
    assert carried_on(given) == [("mine", None), redriven]
    assert without_origin(None) == carried_on(None) == []
    assert is_redriven(record(given))
    assert not is_redriven(record([("mine", b"1")]))
    assert not is_redriven(record(None))


def test_sizes_count_a_name_by_its_characters_four_times() -> None:
    assert size_of((0, 0, b"k", b"vv", [("né", b"xyz"), ("", None), ("n", b"")])) == 3 + 8 + 3 + 4
    assert size_of((0, 0, None, b"vv", [])) == 2
