"""Keys of a tenant for its payloads, made of the secrets of a file: of workers, and of consumers.

    clinic.keys      one secret in a line, of 32 bytes or more
     │
     ├─ line 1 ─► HKDF ─► key of AES-SIV, its id, a key for digests    encrypts
     └─ line 2 ─► HKDF ─► the same                                     decrypts

`tenants/payload_keys.py` says what a pure room asks of them, and specifies the bytes.  Each key is
derived for its tenant (HKDF with SHA-256, RFC 5869), so two tenants that name one secret still have
keys of their own.  The cipher is AES-SIV with 512 bits (RFC 5297, as `cryptography` has it).

A worker decrypts the payloads that it fires. It never reads a large payload again that it has
stored elsewhere, so a consumer that redeems one needs the ring as well (`claim_check.py`).
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from belfry.schedules.request_digest import DIGEST_BYTES
from belfry.tenants.payload_keys import Undecryptable, key_id_of
from belfry.wire.worker_keys import hkdf

FORMAT: Final = b"\1"
_ID_BYTES: Final = 8
_HEAD_BYTES: Final = len(FORMAT) + _ID_BYTES
_SALT: Final = b"belfry payload key"


class DerivedKey:
    """Keys derived from one secret for one tenant: a cipher, its id, and a key for digests."""

    def __init__(self, tenant: str, secret: bytes) -> None:
        first, second, self.of_digests, identity = (
            hkdf(secret, _SALT, purpose + b"\0" + tenant.encode())
            for purpose in (b"payloads 1", b"payloads 2", b"digests", b"id")
        )
        self.head = FORMAT + identity[:_ID_BYTES]
        self.cipher = AESSIV(first + second)


class KeyRing:
    """The keys of a tenant, the one that encrypts first; for any thread.

    `secrets` are the lines of the file that `payload_key_ref` of its policy names, without their
    ends: ``KeyRing("clinic", Path("clinic.keys").read_bytes().splitlines())``.
    """

    def __init__(self, tenant: str, secrets: Iterable[bytes]) -> None:
        self._tenant = tenant
        self._keys = tuple(DerivedKey(tenant, secret) for secret in dict.fromkeys(secrets))
        self._by_head = {key.head: key for key in self._keys}

    def __deepcopy__(self, _memo: object) -> Self:
        """The same object: it never changes, and ciphers cannot be copied."""
        return self

    @property
    def newest(self) -> str:
        """The id of the key that encrypts, in 16 hexadecimal digits."""
        return key_id_of(self._keys[0].head)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all keys, the newest first; they tell nothing of the secrets."""
        return tuple(key_id_of(key.head) for key in self._keys)

    def encrypt(self, name: bytes, payload: bytes) -> bytes:
        """A payload of the schedule `name` (``tenant/id``), encrypted by the newest key."""
        key = self._keys[0]
        return key.head + key.cipher.encrypt(payload, [key.head, name])

    def decrypt(self, name: bytes, encrypted: bytes) -> bytes:
        """The payload that was encrypted for this schedule; raises `Undecryptable`."""
        head = encrypted[:_HEAD_BYTES]
        key = self._by_head.get(head)
        if key is None:
            raise Undecryptable(
                f"the key {head[1:].hex()} that encrypted its payload is none of those that"
                f" payload_key_ref of tenant {self._tenant} leads to: put its line back there"
            )
        try:
            return key.cipher.decrypt(encrypted[_HEAD_BYTES:], [head, name])
        except InvalidTag:
            raise Undecryptable(
                "its payload is not what was encrypted for it: the row was changed, or is a copy of"
                " another schedule's"
            ) from None

    def digests(self, digest: bytes) -> tuple[bytes, ...]:
        """The digest of a request under each key, the newest first."""
        made = (hmac.digest(key.of_digests, digest, "sha256") for key in self._keys)
        return tuple(each[:DIGEST_BYTES] for each in made)
