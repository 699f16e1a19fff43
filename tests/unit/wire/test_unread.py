"""Records that were not taken in whole: which, and what they are refused with."""

from __future__ import annotations

import pytest

from belfry.schedules.rejections import Rejection
from belfry.wire.record import Headers
from belfry.wire.unread import (
    CUT,
    MOST_CARRIED,
    MOST_KEPT,
    UNREAD,
    bounded,
    refused_unread,
    too_many,
    unread,
)

ADDED = ("belfry-origin-topic", b"t")


def headers(count: int) -> Headers:
    return [(f"h{place}", b"") for place in range(count)]


def test_as_many_headers_as_may_be_carried_stay() -> None:
    assert bounded(None) is None
    assert bounded([]) == []
    whole, more = headers(MOST_CARRIED), headers(MOST_CARRIED + 1)
    assert bounded(whole) == whole
    assert bounded(more) == [*more[:MOST_KEPT], (CUT, b"cut from 2049 headers")]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (headers(1), None),
        (headers(1_024), None),
        (headers(1_025), "1025"),
        # Belfry adds a handful on the way, which are last.
        ([*headers(1_039), ADDED], None),
        ([*headers(1_040), ADDED], "1041"),
        ([ADDED, *headers(1_024)], "1025"),
        # All of them are there up to 2 048.
        (headers(1_500), "1500"),
        (headers(1_501), "1501"),
        (headers(2_048), "2048"),
        (bounded(headers(2_049)), "more than 1501"),
        (bounded(headers(400_000)), "more than 1501"),
        # A producer may have given a header of that name itself.
        ([*headers(1_100), (CUT, b"mine")], "1101"),
        ([*headers(1_499), (CUT, b"mine")], "1500"),
    ],
)
def test_too_many_headers_are_told_how_many_there_are(given: Headers, told: str | None) -> None:
    refused = told and Rejection(
        "bad_fields",
        f"The record has {told} headers; 1024 are read, and 256 travel with an event.",
    )
    assert too_many(given) == refused


@pytest.mark.parametrize(
    ("code", "reason", "found"),
    [
        ("request_too_large", "It has 9 bytes.", ("request_too_large", "It has 9 bytes.")),
        ("unreadable_batch", "It is gzip.", ("unreadable_batch", "It is gzip.")),
        # A producer may write the header itself, and names no code of its own.
        ("no_tenant", "x", ("unreadable_batch", "x")),
        ("", "", ("unreadable_batch", "")),
        ("request_too_large", "x" * 1_001, ("request_too_large", "x" * 1_000)),
        # Half a character is none, and takes nobody down.
        ("unreadable_batch", "a \ud800 b", ("unreadable_batch", "a ? b")),
    ],
)
def test_what_a_reader_could_not_take_in_is_refused_by_its_words(
    code: str, reason: str, found: tuple[str, str]
) -> None:
    assert refused_unread([("mine", b"1"), unread(code, reason)]) == Rejection(*found)


def test_only_the_last_header_says_so() -> None:
    told = unread("unreadable_batch", "It is gzip.")
    assert refused_unread([told, ("mine", b"1")]) is None
    assert refused_unread([(UNREAD, None)]) is None
    assert refused_unread([("mine", told[1])]) is None
    assert refused_unread([(UNREAD, b"\xff unreadable")]) == Rejection(
        "unreadable_batch", "unreadable"
    )
