"""Whose word on a request's origin counts, header by header."""

from __future__ import annotations

import hmac
from struct import pack

import pytest

from belfry.wire.origins import ORIGIN_SIGNATURE, believed_origin, vouched
from belfry.wire.record import Headers, Origin, SourceRecord, origin_headers

FIRST = Origin("belfry.schedules", 5, 17, 1_800_000_000_000, rerouted=True)
HERE = Origin("belfry.schedules", 3, 900, 1_800_000_000_040, rerouted=False)
SENT: Headers = [("mine", b"1"), ("none", None), *origin_headers(FIRST)]
OLD, NEW = b"o" * 32, b"n" * 32


def record(headers: Headers | None, value: bytes | None = b"value") -> SourceRecord:
    return 900, HERE.timestamp_ms, b"key", value, headers


def origin(keys: tuple[bytes, ...], headers: Headers | None) -> Origin:
    return believed_origin(keys, record(headers), "belfry.schedules", 3)


def by_hand(key: bytes, *fields: bytes | None) -> bytes:
    told = [b"\xff" * 4 if each is None else pack(">I", len(each)) + each for each in fields]
    return hmac.new(key, b"".join(told), "sha256").hexdigest().encode()


def test_the_proof_is_of_key_value_and_all_headers_and_comes_last() -> None:
    told = [each for name, value in SENT for each in (name.encode(), value)]
    for key, value in ((b"key", b"value"), (b"key", None), (None, b"value")):
        proof = by_hand(NEW, key, value, *told)
        signed = vouched((NEW, OLD), key, value, SENT)
        assert signed == [*SENT, ("belfry-origin-signature", proof)]
    assert vouched((), b"key", None, SENT) == SENT


def test_an_origin_is_believed_of_one_who_has_a_key() -> None:
    for keys in ((NEW,), (NEW, OLD), (OLD, NEW)):
        assert origin(keys, vouched((NEW,), b"key", b"value", SENT)) == FIRST
    assert origin((OLD,), vouched((NEW,), b"key", b"value", SENT)) == HERE
    assert origin((OLD,), SENT) == HERE
    assert origin((), SENT) == FIRST


@pytest.mark.parametrize("shown", [None, b"", b"0" * 64, b"\xff" * 64])
def test_another_proof_is_none(shown: bytes | None) -> None:
    assert origin((OLD,), [*SENT, (ORIGIN_SIGNATURE, shown)]) == HERE


def test_a_proof_that_is_not_the_last_header_is_none() -> None:
    signed = vouched((OLD,), b"key", b"value", SENT)
    assert origin((OLD,), [*signed, ("more", b"1")]) == HERE
    assert origin((OLD,), [*SENT, ("x", signed[-1][1])]) == HERE


@pytest.mark.parametrize("headers", [None, [], [("mine", b"1")]])
def test_what_names_no_origin_was_received_here(headers: Headers | None) -> None:
    assert origin((OLD,), headers) == origin((), headers) == HERE
