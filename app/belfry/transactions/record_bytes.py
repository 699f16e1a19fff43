"""Records of a batch as bytes (message format v2, KIP-98), without an encoder of each field.

    length │ attributes 0 │ time 0 │ number │ key │ value │ number of headers │ name value │ …
    ◄ v ──►│◄─────── \\0\\0 ───────►│◄─ v ──►│◄ v, bytes ► each of them …

Sizes and numbers are zigzag varints (v above): twice the number, in groups of seven bits, the
lowest first, and the highest bit of a byte says that another one follows.  Small ones are looked up
instead of computed.  A size of -1 stands for null.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from belfry.wire.record import Headers

# Numbers below it are looked up.
LOOKED_UP: Final = 1 << 13
# Attributes, and the time since the batch's first record: all records of a step have one time.
NO_ATTRIBUTES: Final = b"\0\0"


def varint(number: int) -> bytes:
    """A number as a zigzag varint."""
    left = number << 1 if number >= 0 else (-number << 1) - 1
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


SMALL: Final = tuple(map(varint, range(LOOKED_UP)))
"""The varints of numbers below `LOOKED_UP`."""
NULL: Final = varint(-1)


def sized(value: bytes | None) -> bytes:
    """Bytes behind their size."""
    if value is None:
        return NULL
    size = len(value)
    return (SMALL[size] if size < LOOKED_UP else varint(size)) + value


def headers_bytes(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    """Headers, without their number."""
    return b"".join([sized(name.encode()) + sized(value) for name, value in headers])


class EncodedHeaders(dict[tuple[str, bytes | None], bytes]):
    """Headers with their bytes, each of which is encoded when it is asked for first."""

    def __missing__(self, header: tuple[str, bytes | None]) -> bytes:
        """The bytes of a header that was not asked for before."""
        name, value = header
        found = self[header] = sized(name.encode()) + sized(value)
        return found


def record_body(number: int, key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """A record without its length; `number` is its number in its batch, from 0."""
    head = NO_ATTRIBUTES + varint(number)
    told = varint(len(headers)) + headers_bytes(headers)
    return b"".join((head, sized(key), sized(value), told))


def numbered_anew(body: bytes) -> bytes:
    """The same record as the first one of its batch."""
    at = len(NO_ATTRIBUTES)
    while body[at] & 0x80:
        at += 1
    return NO_ATTRIBUTES + b"\0" + body[at + 1 :]
