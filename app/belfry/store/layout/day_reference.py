"""The reference in a row to a payload in a day file: which file, where in it, a digest.

    format u8 │ day u32 │ partition u16 │ number, 8 bytes │ offset u32 │ size u32 │ digest

`day` counts days since 1970 (UTC).  With the partition that wrote the file and a number that it
made up, it names the file (`DayFile`).  Offset and size are those of the payload in it.  The digest
is BLAKE2b-128 of the payload: bytes that have another one are never taken for it.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from belfry.store.layout.pending import Away

DAY_MS: Final = 86_400_000
DIGEST_BYTES: Final = 16
_FORMAT: Final = 1
_REFERENCE: Final = Struct(">BIH8sII16s")
REFERENCE_BYTES: Final = _REFERENCE.size


class DayFile(NamedTuple):
    """The name of a day file: the day that its schedules are due on, its writer, and a number."""

    day: int
    partition: int
    number: bytes


class Reference(NamedTuple):
    """Where a payload lies, and its size and digest."""

    file: DayFile
    offset: int
    size: int
    digest: bytes


def digest_of(payload: bytes) -> bytes:
    """The digest by which a payload is known."""
    return blake2b(payload, digest_size=DIGEST_BYTES).digest()


def encode_reference(reference: Reference) -> Away:
    """The reference as bytes."""
    (day, partition, number), offset, size, digest = reference
    return Away(_REFERENCE.pack(_FORMAT, day, partition, number, offset, size, digest))


def decode_reference(stands: bytes) -> Reference:
    """The same, read; raises ValueError if this release cannot read it."""
    if len(stands) != _REFERENCE.size or stands[0] != _FORMAT:
        raise ValueError(f"a reference of format {stands[:1].hex()}, of a later release")
    _, day, partition, number, offset, size, digest = _REFERENCE.unpack(stands)
    return Reference(DayFile(day, partition, number), offset, size, digest)


def stands_for(stands: bytes, payload: bytes) -> bool:
    """Whether a reference is to this payload, by size and digest."""
    try:
        reference = decode_reference(stands)
    except ValueError:
        return False
    return (reference.size, reference.digest) == (len(payload), digest_of(payload))


def size_in(stands: bytes) -> int:
    """Size of the payload that a reference stands for; 0 where a later release has written it."""
    try:
        return decode_reference(stands).size
    except ValueError:
        return 0
