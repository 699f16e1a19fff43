"""Keys of the workers: one for each purpose, derived from the secret that they share.

A signature for one purpose proves nothing for another, whatever bytes it covers, and a key does not
reveal the secret.  The derivation is HKDF with SHA-256 (RFC 5869); 32 bytes are a single block of
its second half:

    extract   PRK = HMAC(salt, secret)
    expand    key = HMAC(PRK, info + 01)

Two secrets at once are for a change of secrets: workers sign with the first and believe both.

    step     workers' secrets      sign with    believe
    1        old                   old          old
    2        old, new              old          old and new      every worker, one after the other
    3        new, old              new          old and new
    4        new                   new          new              once no old signature is on the way
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from enum import Enum
from typing import Final

_SALT: Final = b"belfry worker secret"

Keys = tuple[bytes, ...]


class Purpose(Enum):
    """What workers sign; the texts are part of the keys and never change."""

    FORWARD = b"forwarded http requests"
    REQUESTS = b"requests that workers write"
    DELIVERIES = b"requests of belfry-deliveries"
    CANARY = b"requests of belfry-canary"
    ORIGIN = b"origins of requests that are sent on"
    CHANGELOG = b"rows of the changelog"
    POLICIES = b"policies of tenants"
    CHECKPOINTS = b"checkpoints of one worker for another"


# The purposes of releases that signed with the secrets themselves.
_OF_OLDER_RELEASES: Final = (Purpose.FORWARD, Purpose.REQUESTS, Purpose.DELIVERIES)


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """32 bytes of HKDF-SHA256 (RFC 5869, sections 2.2 and 2.3)."""
    extracted = hmac.digest(salt, secret, "sha256")
    return hmac.digest(extracted, info + b"\1", "sha256")


def keys_of(secrets: Iterable[bytes], purpose: Purpose) -> Keys:
    """Keys for a purpose: the first one signs, all of them verify; none without a secret.

    The secrets themselves stand behind the derived keys. Releases before derived keys signed with
    the secrets, and their records may still lie in the log; nothing is signed with the secrets any
    more. The next release is to leave them out.
    """
    given = tuple(secrets)
    derived = tuple(hkdf(secret, _SALT, purpose.value) for secret in given)
    return derived + given if purpose in _OF_OLDER_RELEASES else derived


def first(keys: Keys) -> bytes:
    """The key that signs; empty if there is none."""
    return keys[0] if keys else b""
