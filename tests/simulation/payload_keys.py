"""Keys of payloads as the store's page specifies them, without a line of belfry's.

secret ─► HKDF-SHA256, for its tenant ─► AES-SIV     format 1 │ id of the key │ ciphertext
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

# What workers find the keys by: an older key alone, and a newer one before it.
OLD: Final = "env:BELFRY_SECRET_SIMULATED_OLD"
NEW: Final = "env:BELFRY_SECRET_SIMULATED_NEW"
_OLDER: Final = b"an older secret of thirty-two bytes or more"
_NEWER: Final = b"a newer secret of thirty-two bytes or more"
SECRETS: Final = {OLD: (_OLDER,), NEW: (_NEWER, _OLDER)}
# The variables of each worker's process.
VARIABLES: Final = {
    reference.removeprefix("env:"): b"\n".join(lines).decode()
    for reference, lines in SECRETS.items()
}
HEAD_BYTES: Final = 9


def _derived(secret: bytes, purpose: bytes, tenant: str) -> bytes:
    drawn = hmac.digest(b"belfry payload key", secret, "sha256")
    return hmac.digest(drawn, purpose + b"\0" + tenant.encode() + b"\1", "sha256")


def head_of(secret: bytes, tenant: str) -> bytes:
    """What a payload under this key begins with."""
    return b"\1" + _derived(secret, b"id", tenant)[:8]


def newest_id(tenant: str) -> str:
    """The id of the newer key of a tenant."""
    return head_of(_NEWER, tenant)[1:].hex()


def opened(name: str, sealed: bytes, secrets: Iterable[bytes] = SECRETS[NEW]) -> bytes | None:
    """The payload that was encrypted for a schedule (``tenant/id``), None where no key opens it."""
    tenant = name.partition("/")[0]
    for secret in secrets:
        head = head_of(secret, tenant)
        if sealed[:HEAD_BYTES] != head:
            continue
        halves = (_derived(secret, each, tenant) for each in (b"payloads 1", b"payloads 2"))
        try:
            return AESSIV(b"".join(halves)).decrypt(sealed[HEAD_BYTES:], [head, name.encode()])
        except InvalidTag:
            return None
    return None
