"""The refusal of a value that names no schema: what it is instead, and how to write a request.

7b 22 74 65 …        starts with '7b227465': somebody writes JSON
00 00 00             ends within its head: Confluent's prefix has five bytes
c3 01, eight more    ends within its head: no body follows the fingerprint
"""

from __future__ import annotations

from belfry.schedules.rejections import Rejection
from belfry.wire.framing import (
    PREFIX_BYTES,
    SINGLE_OBJECT_BYTES,
    SINGLE_OBJECT_MARKER,
    VALUE_SCHEMA_ID,
)
from belfry.wire.headers import misspelt_header
from belfry.wire.record import Headers


def not_a_request(value: bytes, headers: Headers | None) -> Rejection:
    """The rejection of a value that names no schema, and of one that is a head without a body.

    Where a header may be a misspelt one of belfry's, that is what was meant.
    """
    misspelt = misspelt_header(headers)
    if misspelt is not None:
        return misspelt
    given = f"starts with {value[:4].hex()!r}"
    short = SINGLE_OBJECT_BYTES if value[:2] == SINGLE_OBJECT_MARKER else 0
    short = PREFIX_BYTES if value[:1] == b"\0" else short
    if any(name == VALUE_SCHEMA_ID for name, _ in headers or ()):
        given = f"comes with a header {VALUE_SCHEMA_ID} that names no schema"
    elif short and len(value) <= short:
        given = f"ends within its head, after {len(value)} bytes"
    return Rejection(
        "not_a_request",
        f"The value {given}: neither Confluent's prefix (00), nor single-object Avro (c301), nor"
        " are there belfry headers. Write with Confluent's serializer, or set belfry-tenant,"
        " belfry-id and one header such as belfry-in.",
    )
