"""What a tenant's key encrypts, only that key decrypts; a repeat stays the same request."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from belfry.client import BelfryError, ClaimCheck, Encryption, KeyFolder, NotDecrypted
from belfry.client.encryption import KEY
from belfry.client.fired_record import FiredRecord
from belfry.testing import MemoryScheduler

SECRET = b"card 4711"


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    made = KeyFolder(tmp_path / "keys")
    assert made.add("shop") == "shop/k1"
    return made


def fired(encryption: Encryption, payload: bytes = SECRET) -> FiredRecord:
    belfry = MemoryScheduler()
    sealed = encryption.seal("shop", payload, headers=[("mine", "yes")])
    belfry.schedule("shop", "card", in_="1h", **sealed)
    (event,) = belfry.advance("1h")
    return event


def test_only_the_key_reads_it(keys: KeyFolder, tmp_path: Path) -> None:
    event = fired(Encryption(keys))
    assert SECRET not in (event.payload or b"")
    assert (event.header("mine"), event.header(KEY)) == ("yes", "shop/k1")
    assert Encryption(keys).open(event) == SECRET
    others = KeyFolder(tmp_path / "others")
    others.add("shop")
    with pytest.raises(NotDecrypted, match="another key has this name"):
        Encryption(others).open(event)


def test_a_request_that_is_repeated_is_the_same(keys: KeyFolder) -> None:
    encryption = Encryption(keys)
    assert encryption.seal("shop", SECRET) == encryption.seal("shop", SECRET)
    assert encryption.seal("shop", SECRET) != encryption.seal("shop", b"card 4712")


def test_what_waits_is_readable_after_another_key_was_made(keys: KeyFolder) -> None:
    encryption = Encryption(keys)
    before = fired(encryption)
    assert keys.add("shop") == "shop/k2"
    after = fired(encryption)
    assert after.header(KEY) == "shop/k2"
    assert encryption.open(before) == encryption.open(after) == SECRET


def test_nothing_reads_it_once_the_keys_are_shredded(keys: KeyFolder) -> None:
    encryption = Encryption(keys)
    keys.add("shop")
    keys.add("other")
    event = fired(encryption)
    assert keys.shred("shop") == 2
    with pytest.raises(NotDecrypted, match="shop/k2 is not there"):
        encryption.open(event)
    with pytest.raises(BelfryError, match="has no key"):
        encryption.seal("shop", SECRET)
    assert encryption.seal("other", SECRET)["payload"]


@pytest.mark.parametrize("at", [0, 15, 16, -1])
def test_what_was_changed_is_refused(keys: KeyFolder, at: int) -> None:
    event = fired(Encryption(keys))
    changed = bytearray(event.payload or b"")
    changed[at] ^= 1
    with pytest.raises(NotDecrypted, match="changed"):
        Encryption(keys).open(replace(event, value=bytes(changed)))
    with pytest.raises(NotDecrypted, match="changed"):
        Encryption(keys).open(replace(event, value=b"short"))


def test_a_payload_of_another_key_is_refused_under_this_name(keys: KeyFolder) -> None:
    keys.add("other")
    event = fired(Encryption(keys))
    headers = [(n, b"other/k1" if n == KEY else v) for n, v in event.headers]
    with pytest.raises(NotDecrypted):
        Encryption(keys).open(replace(event, headers=headers))


@pytest.mark.parametrize(
    "name", ["../shop/k1", "/etc/passwd", "shop/../../k1", "..", "./k1", "shop", "shop/k0", ""]
)
def test_a_header_is_never_a_path(keys: KeyFolder, name: str) -> None:
    event = fired(Encryption(keys))
    headers = [(n, name.encode() if n == KEY else v) for n, v in event.headers]
    with pytest.raises(NotDecrypted, match="names no key"):
        Encryption(keys).open(replace(event, headers=headers))


def test_keys_are_their_owners_alone(keys: KeyFolder, tmp_path: Path) -> None:
    (file,) = [path for path in (tmp_path / "keys").rglob("*") if path.is_file()]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(b"short")
    with pytest.raises(NotDecrypted, match="has 5 bytes: 64 are one"):
        Encryption(keys).seal("shop", SECRET)


def test_what_is_empty_or_plain_comes_as_it_is(keys: KeyFolder) -> None:
    encryption = Encryption(keys)
    assert encryption.open(fired(encryption, b"")) == b""
    belfry = MemoryScheduler()
    belfry.schedule("shop", "plain", in_="1h", payload=SECRET)
    assert encryption.open(belfry.advance("1h")[0]) == SECRET


def test_a_large_payload_is_encrypted_before_it_is_deposited(
    keys: KeyFolder, tmp_path: Path
) -> None:
    encryption = Encryption(keys)
    claims = ClaimCheck(f"file://{tmp_path}/claims", above_bytes=100)
    belfry = MemoryScheduler()
    deposit = claims.deposit(**encryption.seal("shop", SECRET * 100))
    belfry.schedule("shop", "large", in_="1h", **deposit)
    (event,) = belfry.advance("1h")
    (stored,) = [path for path in (tmp_path / "claims").rglob("*") if path.is_file()]
    assert SECRET not in stored.read_bytes()
    assert encryption.open(event, claims.redeem(event)) == SECRET * 100


def test_no_tenant_has_another_ones_payload_decrypted(keys: KeyFolder) -> None:
    """Who may write to the topic of `evil` could copy what `shop` has encrypted there."""
    keys.add("evil")
    copied = replace(fired(Encryption(keys)), topic="belfry.fired.evil")
    with pytest.raises(NotDecrypted, match="a key of another tenant"):
        Encryption(keys).open(copied)
