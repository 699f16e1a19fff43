"""Signed claims: a sender proves that a request is a tenant's.

The header `belfry-signature` holds HMAC-SHA256, in hexadecimal digits, over these bytes, with a
secret that the tenant shares with the workers:

    field(tenant) field(key) field(value) { field(name) field(value) } for each header, in order
    field(x): size in 4 bytes, big-endian (ff ff ff ff: null), then the bytes

The signature itself and the headers that belfry adds on the way (`belfry-origin-…`) are left out,
so a request that is sent on to its home can be checked there once more.

    tenant "ab", no key, value "x", no headers
    00000002 6162   ffffffff   00000001 78      ─► HMAC-SHA256 ─► 64 hexadecimal digits

Sizes stand before texts, so no two records are signed over the same bytes. The signature covers no
instant and no offset, so any client that has a signed record can send it again; `request_id` and
`expected_version` make a request count once.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from struct import Struct
from typing import Final

from belfry.wire.record import SIGNATURE, Headers, without_origin

_NULL: Final = b"\xff\xff\xff\xff"
_SIZE: Final = Struct(">I")


def signature(
    secret: bytes, tenant: str, key: bytes | None, value: bytes | None, headers: Headers | None
) -> bytes:
    """The right value of the header `belfry-signature` for a record."""
    fields: list[bytes | None] = [tenant.encode(errors="replace"), key, value]
    for name, given in without_origin(headers):
        if name != SIGNATURE:
            fields += (name.encode(), given)
    signed = b"".join(map(field, fields))
    return hmac.digest(secret, signed, "sha256").hex().encode()


def shown(headers: Headers | None) -> bytes | None:
    """The signature in a record's headers; the last one, None if there is none."""
    found = [given for name, given in headers or () if name == SIGNATURE]
    return found[-1] if found else None


def proves(
    secrets: Iterable[bytes], tenant: str, key: bytes | None, value: bytes | None, headers: Headers
) -> bool:
    """Whether one of these secrets made the signature in the headers.

    Compared in constant time.  Several secrets are for a change of secrets.
    """
    given = shown(headers) or b""
    return any(
        hmac.compare_digest(given, signature(secret, tenant, key, value, headers))
        for secret in secrets
    )


def field(given: bytes | None) -> bytes:
    """The signed form of a field: its size, then its bytes."""
    return _NULL if given is None else _SIZE.pack(len(given)) + given
