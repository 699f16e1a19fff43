"""Lifecycle records of one tenant and one instant, packed into one row.

A step writes the records of all its requests with one instant, so a batch has many records and few
instants. Records of one tenant and instant lie together, in the row of the first one:

    1 │ how many u16 │ offsets u64 … │ sizes u32 … │ bodies …          more than one record
    body                                                              one record

A body begins with the size of a tenant's name, doubled.  So its first byte is even, which
distinguishes the two kinds: rows of older releases are read like any other.  Offsets rise within a
row, and from row to row of an instant and a partition, so the order of rows is that of records.

Why not a row each: the row of a record costs as much to make as all its other rows together.  The
price: a query for one schedule reads the whole row of each of its records, `MOST` records at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct, pack
from typing import Final

from belfry.history import layout
from belfry.wire.lifecycle_heads import Headline

MOST: Final = 64
_MANY: Final = 1
_HEAD: Final = Struct(">BH")


def packed(
    at_ms: int, partition: int, records: Sequence[tuple[int, Headline, bytes]]
) -> tuple[bytes, bytes, list[bytes]]:
    """Place and row of at most `MOST` records, and their keys by schedule behind a day's prefix."""
    place = layout.pack_place(at_ms, partition, records[0][0])
    between = b"\0" + place[: -layout.OFFSET_BYTES]
    pack_offset, count = layout.pack_offset, len(records)
    if count == 1:
        return place, records[0][2], [records[0][1][1] + between + place[-layout.OFFSET_BYTES :]]
    offsets = [pack_offset(each[0]) for each in records]
    bodies = [each[2] for each in records]
    keys = [each[1][1] + between + at for each, at in zip(records, offsets, strict=True)]
    sizes = pack(f">{count}I", *map(len, bodies))
    return place, b"".join((_HEAD.pack(_MANY, count), *offsets, sizes, *bodies)), keys


def records_in(row: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """Offsets and bodies of a row whose key has this offset."""
    if row[:1] != bytes((_MANY,)):
        yield offset, row
        return
    count = _HEAD.unpack_from(row)[1]
    numbers = Struct(f">{count}Q{count}I")
    found = numbers.unpack_from(row, _HEAD.size)
    at = _HEAD.size + numbers.size
    for each, size in zip(found[:count], found[count:], strict=True):
        yield each, row[at : at + size]
        at += size


def record_in(row: bytes, first: int, offset: int) -> bytes | None:
    """The body at an offset, of a row whose key has the offset `first`; None where it is absent."""
    return next((body for each, body in records_in(row, first) if each == offset), None)
