"""What is signed of a request, what it shows, and how a payload that lies elsewhere is claimed."""

from __future__ import annotations

import hmac
from hashlib import sha256
from struct import pack

import pytest

from belfry.wire.claim_check import claims_in, claims_of, digest_of, object_name, with_claims
from belfry.wire.claims import field, proves, shown, signature
from belfry.wire.record import Headers

ONE, TWO = b"1" * 32, b"2" * 32
OWN: Headers = [("a", b"1"), ("b", None)]


def test_a_field_is_its_size_and_its_bytes() -> None:
    assert field(None) == b"\xff\xff\xff\xff"
    assert field(b"") == b"\0\0\0\0"
    assert field(b"x" * 258) == b"\0\0\1\2" + b"x" * 258


def test_belfrys_own_headers_are_not_signed() -> None:
    fields = (b"demo", b"k", None, b"a", b"1", b"b", None)
    told = [b"\xff" * 4 if each is None else pack(">I", len(each)) + each for each in fields]
    expected = hmac.new(ONE, b"".join(told), "sha256").hexdigest().encode()
    added: Headers = [("belfry-origin-topic", b"t"), ("belfry-signature", b"s")]
    assert signature(ONE, "demo", b"k", None, [*added[:1], *OWN, *added[1:]]) == expected
    assert signature(ONE, "demo", b"k", None, None) != expected


def test_a_name_that_is_no_text_can_be_signed() -> None:
    assert signature(ONE, "\ud800", None, None, None) == signature(ONE, "?", None, None, None)


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        (None, None),
        (OWN, None),
        ([("belfry-signature", b"s"), *OWN], b"s"),
        ([("belfry-signature", b"s"), ("belfry-signature", b"t")], b"t"),
        ([("belfry-signature", None)], None),
    ],
)
def test_the_last_signature_counts(headers: Headers | None, found: bytes | None) -> None:
    assert shown(headers) == found


def test_any_of_the_secrets_proves_a_request() -> None:
    signed: Headers = [*OWN, ("belfry-signature", signature(ONE, "demo", b"k", b"v", OWN))]
    assert proves([TWO, ONE], "demo", b"k", b"v", signed)
    assert not proves([TWO], "demo", b"k", b"v", signed)
    assert not proves([], "demo", b"k", b"v", signed)
    assert not proves([ONE], "demo", b"k", b"v", OWN)
    for tenant, key, value in (("shop", b"k", b"v"), ("demo", None, b"v"), ("demo", b"k", b"w")):
        assert not proves([ONE], tenant, key, value, signed)


DIGEST = sha256(b"x").hexdigest()


def test_a_payload_is_named_by_its_digest_and_lies_in_a_folder_of_two_digits() -> None:
    assert digest_of(b"x") == DIGEST
    assert object_name(DIGEST) == f"2d/{DIGEST}"
    assert claims_of(b"x") == [("claim-check-sha256", DIGEST), ("claim-check-bytes", "1")]


def test_claims_are_found_in_any_bytes_that_name_the_header() -> None:
    digest = DIGEST.encode()
    named = b"..claim-check-sha256@"
    assert claims_in(named + digest + b"\0") == {DIGEST}
    assert claims_in(digest + named) == {DIGEST}
    assert claims_in(named + b"f" + digest) == {DIGEST, "f" + DIGEST[:-1]}
    assert claims_in(named + digest[:-1]) == claims_in(named + digest.upper()) == set()
    assert claims_in(digest) == set()


def test_a_claim_takes_the_place_of_any_before_it() -> None:
    own = [(b"a", b"1"), (b"b", None)]
    claimed = [(b"claim-check-sha256", DIGEST.encode()), (b"claim-check-bytes", b"1")]
    before = [(b"claim-check-sha256", b"0"), (b"claim-check-bytes", b"0"), *own,
              (b"claim-check-encrypted", b"shop/old")]  # fmt: skip
    assert with_claims(before, b"x") == [*own, *claimed]
    encrypted = (b"claim-check-encrypted", b"shop/a")
    assert with_claims(before, b"x", b"shop/a") == [*own, *claimed, encrypted]
