"""Payloads that only their tenant's key makes readable; for Kafka and belfry they are bytes.

    keys = KeyFolder("keys")                      a mounted secret, for instance
    keys.add("shop")                              shop/k1; once more, later: shop/k2
    encryption = Encryption(keys)
    belfry.schedule("shop", "card", in_="1h", **encryption.seal("shop", b"4711"))
    ...
    encryption.open(event)                        b"4711"

The program that schedules encrypts, and the one that gets the event decrypts.  Belfry carries the
bytes and never looks into them, so its topics, its changelog, local stores and backups hold only
ciphertext.  A header names the key.

    12:00  add("shop")    k1         seal ─► k1   open k1
    13:00  add("shop")    k1 k2      seal ─► k2   open k1, k2      pending ones stay readable
    14:00  shred("shop")             seal fails   open fails       for good: no other copy is kept

The cipher is AES-SIV (RFC 5297): it needs no nonce, and the same payload under the same key gives
the same bytes.  Belfry compares definitions, so a repeated request stays UNCHANGED. A reader of the
topics sees which events of a tenant have equal payloads, and how long they are.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import mkstemp
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from belfry.client.claim_check import Deposit
from belfry.client.errors import BelfryError, NotDecrypted
from belfry.client.fired_record import FiredRecord

KEY: Final = "encryption-key"
KEY_BITS: Final = 512
_FOLDER_MODE: Final = 0o700
# A tenant and the number of its key: what a header says is never a path.
_REFERENCE: Final = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,128}/k[1-9][0-9]{0,5}")


def is_key_of(tenant: str, reference: str) -> bool:
    """Whether this is how a key of the tenant is called."""
    return reference.startswith(f"{tenant}/") and _REFERENCE.fullmatch(reference) is not None


class KeyFolder:
    """Keys of tenants as files: ``folder/shop/k1`` has 64 random bytes."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def add(self, tenant: str) -> str:
        """Make a key, which `seal` uses from now on; returns its reference, such as ``shop/k2``."""
        number = max(self._numbers(tenant), default=0) + 1
        reference = f"{tenant}/k{number}"
        path = self._path(reference)
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        made, name = mkstemp(dir=path.parent)
        try:
            os.write(made, AESSIV.generate_key(KEY_BITS))
            # No reader sees half a key, and of two programs that add one at once the second gets an
            # error.
            os.link(name, path)
        finally:
            os.close(made)
            Path(name).unlink()
        return reference

    def current(self, tenant: str) -> str:
        """The reference of the newest key; BelfryError if the tenant has none."""
        numbers = self._numbers(tenant)
        if not numbers:
            raise BelfryError(
                f"Tenant {tenant} has no key in {self._folder}: make one by"
                f" KeyFolder({str(self._folder)!r}).add({tenant!r})."
            )
        return f"{tenant}/k{max(numbers)}"

    def named(self, reference: str) -> bytes | None:
        """The 64 bytes of a key; None where it is not there any more, or never was."""
        try:
            return self._path(reference).read_bytes()
        except FileNotFoundError:
            return None

    def shred(self, tenant: str) -> int:
        """Remove all keys of a tenant; returns how many. Payloads under them are lost for good."""
        numbers = self._numbers(tenant)
        for number in numbers:
            self._path(f"{tenant}/k{number}").unlink()
        return len(numbers)

    def _numbers(self, tenant: str) -> list[int]:
        folder = self._path(f"{tenant}/k1").parent
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return [int(name[1:]) for name in names if _REFERENCE.fullmatch(f"{tenant}/{name}")]

    def _path(self, reference: str) -> Path:
        if not _REFERENCE.fullmatch(reference):
            raise BelfryError(
                f"{reference[:200]!r} names no key: a tenant, a slash, k and a number do,"
                " as shop/k1."
            )
        return self._folder / reference


class Encryption:
    """Encrypts payloads by their tenants' newest keys, and decrypts them by any that is there."""

    def __init__(self, keys: KeyFolder) -> None:
        self._keys = keys

    def seal(
        self,
        tenant: str,
        payload: bytes,
        headers: list[tuple[str, str | bytes | None]] | None = None,
    ) -> Deposit:
        """Options for `schedule`: the payload, 16 bytes longer, and these headers with one more.

        An empty payload stays empty.  BelfryError where the tenant has no key.
        """
        own = list(headers or ())
        if not payload:
            return Deposit(payload=payload, headers=own)
        reference = self._keys.current(tenant)
        sealed = AESSIV(self._key(reference)).encrypt(payload, [reference.encode()])
        return Deposit(payload=sealed, headers=[*own, (KEY, reference)])

    def open(self, event: FiredRecord, payload: bytes | None = None) -> bytes | None:
        """The payload of an event as it was before; `payload` comes from a claim check.

        The payload of a plain event is returned as it is. Raises NotDecrypted if the key is gone,
        or if the bytes are not the encrypted ones.
        """
        found = event.payload if payload is None else payload
        reference = event.header(KEY)
        if reference is None or not found:
            return found
        if not _REFERENCE.fullmatch(reference):
            raise NotDecrypted(
                f"The payload of {event.schedule_id} is under {reference[:200]!r}, which names no"
                " key: a tenant, a slash, k and a number do, as shop/k1."
            )
        if event.tenant not in (None, reference.partition("/")[0]):
            raise NotDecrypted(
                f"The payload of {event.schedule_id} of {event.tenant} names {reference}, a key of"
                " another tenant."
            )
        try:
            return AESSIV(self._key(reference)).decrypt(found, [reference.encode()])
        except InvalidTag:
            raise NotDecrypted(
                f"The payload of {event.schedule_id} is not what was encrypted with {reference}:"
                " it was changed on its way, or another key has this name here."
            ) from None

    def _key(self, reference: str) -> bytes:
        key = self._keys.named(reference)
        if key is None:
            raise NotDecrypted(
                f"The key {reference} is not there: it was shredded, or lies in another folder."
            )
        if len(key) * 8 != KEY_BITS:
            raise NotDecrypted(
                f"The key {reference} has {len(key)} bytes: {KEY_BITS // 8} are one."
            )
        return key
