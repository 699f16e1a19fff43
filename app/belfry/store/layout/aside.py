r"""Requests that wait for a schema, as they lie at rest: the record as it was received.

    head | lane | key | value | name, value of each header          each behind its size, u32

They are undecoded, so nothing is known of them but the asker (`engine/claims.py`): their *lane*, a
tenant's name or `?` and a byte.
The changelog key holds the offset, so rows lie in the order in which the requests came.

An example: at offset 7 a record of timestamp 1 000 ms, which is the broker's, of the lane `acme`,
without a key, with the value `hi` and one header, `h` with `x`.

    key    00 77  0000000000000007                      \0w, offset
    row    01 0a 01 00  00000000000003e8                format, kind, appended, pad; timestamp
           00000004 61636d65                            lane
           ffffffff                                     key: a size of all ones is a null
           00000002 6869                                value
           00000001 68  00000001 78                     header: name, value
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from belfry.store.layout.records import ASIDE, FORMAT
from belfry.wire.record import Headers, SourceRecord

_HEAD: Final = Struct(">BBBxq")
_SIZE: Final = Struct(">I")
_OFFSET: Final = Struct(">Q")
_NULL: Final = (1 << 32) - 1

ASIDE_PREFIX: Final = b"\0w"
ASIDE_END: Final = b"\0x"


class Waits(NamedTuple):
    """A request that waits; `appended` says whether its timestamp is the broker's."""

    lane: bytes
    record: SourceRecord
    appended: bool


def aside_key(offset: int) -> bytes:
    """Changelog key of the request that came at an offset."""
    return ASIDE_PREFIX + _OFFSET.pack(offset)


def encode_aside(waits: Waits) -> bytes:
    """The row of a request that waits."""
    lane, (_, timestamp_ms, key, value, headers), appended = waits
    parts = [_HEAD.pack(FORMAT, ASIDE, appended, timestamp_ms)]
    for part in (lane, key, value):
        parts += _field(part)
    for name, given in headers or ():
        parts += (*_field(name.encode()), *_field(given))
    return b"".join(parts)


def decode_aside(name: bytes, row: bytes) -> Waits:
    """The request in such a row, which lies under this changelog key."""
    (offset,) = _OFFSET.unpack_from(name, len(ASIDE_PREFIX))
    _, _, appended, timestamp_ms = _HEAD.unpack_from(row)
    fields: list[bytes | None] = []
    at = _HEAD.size
    while at < len(row):
        (size,) = _SIZE.unpack_from(row, at)
        at += _SIZE.size
        fields.append(None if size == _NULL else row[at : at + size])
        at += 0 if size == _NULL else size
    lane, key, value, *rest = fields
    pairs = zip(rest[::2], rest[1::2], strict=True)
    headers: Headers = [((title or b"").decode(), given) for title, given in pairs]
    return Waits(lane or b"", (offset, timestamp_ms, key, value, headers or None), bool(appended))


def _field(given: bytes | None) -> tuple[bytes, ...]:
    return (_SIZE.pack(_NULL),) if given is None else (_SIZE.pack(len(given)), given)
