"""Claim checks: payloads that lie elsewhere, and the headers by which an event leads to them.

    payload ─► object  <folder>/5f/5f0c…        named by its SHA-256, so it is stored once
           └─► event   claim-check-sha256: 5f0c…    claim-check-bytes: 1048576    an empty payload

If the tenant has a key for its payloads, a worker encrypts the object for its schedule, and the
event has the header ``claim-check-encrypted: shop/report``, which names that schedule.

Clients make claim checks before they schedule, and workers make them for tenants whose policy says
so: consumers see no difference. An object that a worker stored lies in a folder of its tenant:

    BELFRY_PAYLOAD_STORE=s3://bucket/belfry     s3://bucket/belfry/shop/5f/5f0c…

The pattern has its name from Enterprise Integration Patterns.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

CLAIM: Final = "claim-check-sha256"
SIZE: Final = "claim-check-bytes"
# If the object is encrypted by a key of the tenant: the schedule, as ``tenant/id``.
ENCRYPTED: Final = "claim-check-encrypted"
_NAMES: Final = (CLAIM.encode(), SIZE.encode(), ENCRYPTED.encode())
# It also matches within a longer run of digits: a needless match only keeps an object.
_DIGEST: Final = re.compile(rb"(?=([0-9a-f]{64}))")
# User headers with their names in UTF-8.
_Headers = list[tuple[bytes, bytes | None]]


def digest_of(payload: bytes) -> str:
    """The name of a stored payload: 64 hexadecimal digits."""
    return sha256(payload).hexdigest()


def object_name(digest: str) -> str:
    """The path of a payload in its folder; two digits of its digest keep folders small."""
    return f"{digest[:2]}/{digest}"


def claims_in(data: bytes) -> set[str]:
    """Digests that these bytes may claim; they are a row, a request or an event, in any form.

    If the name of the header stands anywhere, all that looks like a digest counts.
    """
    if CLAIM.encode() not in data:
        return set()
    return {found.decode() for found in _DIGEST.findall(data)}


def claims_of(stored: bytes) -> list[tuple[str, str]]:
    """The headers of an event whose payload, these bytes, lies elsewhere."""
    return [(CLAIM, digest_of(stored)), (SIZE, str(len(stored)))]


def with_claims(headers: _Headers, stored: bytes, encrypted_for: bytes = b"") -> _Headers:
    """Headers of a schedule with those of a claim, in place of any that it had before.

    `encrypted_for` is the schedule (``tenant/id``) that the bytes are encrypted for; empty if they
    are not encrypted.
    """
    own = [each for each in headers if each[0] not in _NAMES]
    own += [(name.encode(), value.encode()) for name, value in claims_of(stored)]
    return [*own, (ENCRYPTED.encode(), encrypted_for)] if encrypted_for else own
