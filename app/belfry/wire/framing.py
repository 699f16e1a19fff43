"""Frames: three ways in which a value names the schema that wrote it, or no frame.

    prefix          00 | id: 4 bytes, big-endian | body           Confluent's classic
    header          __value_schema_id = 01 | GUID: 16 bytes       body is the whole value
    single object   C3 01 | CRC-64-AVRO: 8 bytes, LE | body       Avro's own, no registry needed

The header is read first, as by Confluent's own reader: a body may begin with any byte.

    00 00 00 00 07 …                    prefix, schema id 7 of the registry
    c3 01 dc 43 53 d7 89 a1 c5 77 …     single object, today's `ScheduleRequest`
    68 65 6c 6c 6f                      "hello": no frame, so headers have to hold the request

A frame says only *which* schema wrote the body. `requests` and `safety` decide whether that schema
is known and may be decoded. Sources: Confluent's wire format, and "Single-object encoding" of the
Avro specification.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Final

from belfry.wire import catalogue

VALUE_SCHEMA_ID: Final = "__value_schema_id"
SINGLE_OBJECT_MARKER: Final = b"\xc3\x01"
PREFIX_BYTES: Final = 5
SINGLE_OBJECT_BYTES: Final = 10

_ID: Final = Struct(">I")
_PREFIX: Final = Struct(">BI")
_GUID_BYTES: Final = 16


class FrameKind(Enum):
    """The kinds of frames."""

    PREFIX = "prefix"
    HEADER = "header"
    SINGLE_OBJECT = "single object"
    UNFRAMED = "unframed"


_PREFIXED: Final = FrameKind.PREFIX
_IN_HEADER: Final = FrameKind.HEADER
_SINGLE: Final = FrameKind.SINGLE_OBJECT
_UNFRAMED: Final = FrameKind.UNFRAMED


@dataclass(slots=True)
class Frame:
    """A value taken apart; `reference` is a schema id, a GUID (16 bytes) or a fingerprint (8)."""

    kind: FrameKind
    reference: int | bytes
    body: bytes


def read_frame(value: bytes, headers: Iterable[tuple[str, bytes | None]] | None = None) -> Frame:
    """Take a value apart; one with no frame, or a damaged one, comes back unframed and whole.

    Never raises. A value that is only a head, without a body, counts as unframed: each record of
    belfry's takes at least one byte.
    """
    if headers:
        for name, given in headers:
            if name == VALUE_SCHEMA_ID:
                return _by_header(value, given)
    if len(value) > PREFIX_BYTES and value[0] == 0:
        return Frame(_PREFIXED, _ID.unpack_from(value, 1)[0], value[PREFIX_BYTES:])
    if len(value) > SINGLE_OBJECT_BYTES and value[:2] == SINGLE_OBJECT_MARKER:
        return Frame(_SINGLE, value[2:SINGLE_OBJECT_BYTES], value[SINGLE_OBJECT_BYTES:])
    return Frame(_UNFRAMED, b"", value)


def prefix(schema_id: int) -> bytes:
    """The five bytes that Confluent's format puts before a body."""
    return _PREFIX.pack(0, schema_id)


def single_object(name: str) -> bytes:
    """The ten bytes that single-object encoding puts before a body of one of belfry's schemas."""
    return SINGLE_OBJECT_MARKER + catalogue.fingerprint(name)


def _by_header(value: bytes, given: bytes | None) -> Frame:
    if given is not None and len(given) == 1 + _GUID_BYTES and given[0] == 1:
        return Frame(_IN_HEADER, given[1:], value)
    if given is not None and len(given) == PREFIX_BYTES and given[0] == 0:
        # Confluent's reader takes an id of the classic format from the header as well.
        return Frame(_PREFIXED, _ID.unpack_from(given, 1)[0], value)
    return Frame(_UNFRAMED, b"", value)
