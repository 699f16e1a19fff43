"""Signatures of policies: over which bytes, and that one of them has to be right."""

from __future__ import annotations

import hmac
from struct import pack

from belfry.wire.policy_signatures import RecordLocation, is_signed_policy, policy_signature
from belfry.wire.record import Headers

WHERE = RecordLocation("belfry.tenants", 2, 40)
OLD, NEW = b"o" * 32, b"n" * 32
NAME = "belfry-policy-signature"


def by_hand(key: bytes, *fields: bytes | None) -> bytes:
    told = [b"\xff" * 4 if each is None else pack(">I", len(each)) + each for each in fields]
    return hmac.new(key, b"".join(told), "sha256").hexdigest().encode()


def test_it_is_over_topic_place_tenant_and_value() -> None:
    for value in (b"policy", None):
        proof = by_hand(OLD, b"belfry.tenants", b"2/40", b"shop", value)
        assert policy_signature(OLD, WHERE, b"shop", value) == [(NAME, proof)]


def test_it_may_be_by_any_key_and_stand_once_among_other_headers() -> None:
    (proof,) = policy_signature(OLD, WHERE, b"shop", b"policy")

    def believed(headers: Headers | None, *keys: bytes) -> bool:
        return is_signed_policy(keys, WHERE, (b"shop", b"policy", headers))

    assert believed([("mine", b"1"), proof, ("more", None)], NEW, OLD)
    assert believed([proof], OLD, NEW)
    assert not believed([proof], NEW)
    assert not believed([proof])
    assert not believed([proof, proof], OLD)
    assert not believed([("mine", proof[1])], OLD)
    assert not believed([(NAME, None)], OLD)
    assert not believed([], OLD)
    assert not believed(None, OLD)
