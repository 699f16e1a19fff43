"""The workers' keys: derived as RFC 5869 says, one for each purpose, two secrets at once."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from belfry.settings import Settings
from belfry.wire.worker_keys import Purpose, first, hkdf, keys_of

OLD, NEW = b"the secret of last year", b"the secret of this year"


def test_the_first_example_of_rfc_5869() -> None:
    made = hkdf(b"\x0b" * 22, bytes(range(13)), bytes(range(0xF0, 0xFA)))
    assert made.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"


@pytest.mark.parametrize("secret", [b"x", b"s" * 100])
def test_it_is_what_others_derive(secret: bytes) -> None:
    other = HKDF(algorithm=SHA256(), length=32, salt=b"salt", info=b"info").derive(secret)
    assert hkdf(secret, b"salt", b"info") == other


def test_each_purpose_has_a_key_of_its_own_and_none_is_the_secret() -> None:
    keys = [first(keys_of([OLD], purpose)) for purpose in Purpose]
    assert len({*keys, OLD}) == len(Purpose) + 1
    assert all(len(key) == 32 for key in keys)


def test_the_keys_never_change() -> None:
    """Workers of two releases believe one another."""
    assert {purpose.name: first(keys_of([OLD], purpose)).hex()[:16] for purpose in Purpose} == {
        "FORWARD": "e3f19943c596ee62",
        "REQUESTS": "3a7394f91c443d31",
        "DELIVERIES": "faa5be44af02a20f",
        "CANARY": "3dd36325ed65ffec",
        "ORIGIN": "bab37128527e771e",
        "CHANGELOG": "ebb6a06b8dd384dd",
        "POLICIES": "34119d684b158330",
        "CHECKPOINTS": "326cf12b97808ddc",
    }


@pytest.mark.parametrize("purpose", Purpose)
def test_the_first_secret_signs_and_both_are_believed(purpose: Purpose) -> None:
    (old, *_), (new, *_) = keys_of([OLD], purpose), keys_of([NEW], purpose)
    during = keys_of([NEW, OLD], purpose)
    assert during[:2] == (new, old)
    # What earlier releases signed with the secret itself is believed for one release more.
    older = (Purpose.FORWARD, Purpose.REQUESTS, Purpose.DELIVERIES)
    assert during[2:] == ((NEW, OLD) if purpose in older else ())


def test_settings_name_both() -> None:
    new, old = NEW.decode(), OLD.decode()
    both = Settings(http_worker_secret=new, http_worker_secret_also=old)
    assert both.worker_keys(Purpose.FORWARD) == keys_of([NEW, OLD], Purpose.FORWARD)
    assert Settings().worker_keys(Purpose.FORWARD) == ()
    assert first(()) == b""
