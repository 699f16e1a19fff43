"""Claim checks: payloads that lie elsewhere, and the headers by which an event leads to them.

    payload ─► object  <folder>/5f/5f0c…        named by its SHA-256, so it is stored once
           └─► event   claim-check-sha256: 5f0c…    claim-check-bytes: 1048576    an empty payload

With a key for its tenant's payloads a worker encrypts the object, for its schedule, and the event
has the header ``claim-check-encrypted: shop/report``, which is the name that it was encrypted for.

Clients make them before they schedule, and workers for tenants whose policy asks for it: consumers
see no difference.  An object of one tenant lies in a folder of its own where a worker stored it:

    BELFRY_PAYLOAD_STORE=s3://bucket/belfry     s3://bucket/belfry/shop/5f/5f0c…

The pattern is known as claim check (Enterprise Integration Patterns).
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

CLAIM: Final = "claim-check-sha256"
SIZE: Final = "claim-check-bytes"
# Where the object is encrypted by a key of the tenant: for which schedule, as ``tenant/id``.
ENCRYPTED: Final = "claim-check-encrypted"
_NAMES: Final = (CLAIM.encode(), SIZE.encode(), ENCRYPTED.encode())
# Also one within a longer run of digits: what is found too much keeps an object, and harms nobody.
_DIGEST: Final = re.compile(rb"(?=([0-9a-f]{64}))")
# User headers with their names in UTF-8.
_Headers = list[tuple[bytes, bytes | None]]


def digest_of(payload: bytes) -> str:
    """By which name a payload is stored: 64 hexadecimal digits."""
    return sha256(payload).hexdigest()


def object_name(digest: str) -> str:
    """Where a payload lies in its folder; two digits of its digest keep folders small."""
    return f"{digest[:2]}/{digest}"


def claims_in(data: bytes) -> set[str]:
    """Digests that these bytes may claim: a row, a request, an event, in whatever form it is.

    All that looks like a digest counts, where the name of the header stands anywhere.
    """
    if CLAIM.encode() not in data:
        return set()
    return {found.decode() for found in _DIGEST.findall(data)}


def claims_of(stored: bytes) -> list[tuple[str, str]]:
    """The headers of an event whose payload lies elsewhere, as these bytes."""
    return [(CLAIM, digest_of(stored)), (SIZE, str(len(stored)))]


def with_claims(headers: _Headers, stored: bytes, encrypted_for: bytes = b"") -> _Headers:
    """Headers of a schedule with those of a claim, in place of any that it had before.

    `encrypted_for` is the schedule (``tenant/id``) that the bytes are encrypted for; empty where
    they are not.
    """
    own = [each for each in headers if each[0] not in _NAMES]
    own += [(name.encode(), value.encode()) for name, value in claims_of(stored)]
    return [*own, (ENCRYPTED.encode(), encrypted_for)] if encrypted_for else own
