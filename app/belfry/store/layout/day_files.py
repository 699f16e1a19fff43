"""Day files: payloads of schedules that are due on one day, far ahead; and rows without theirs.

    file     "belfry day file 1\n" │ digest of all sizes and names
             name size u16 │ payload size u32 │ name │ payload          again and again
    row      the same as before, with a reference in place of its payload, and a flag

A name is the changelog key of the schedule (``tenant/schedule_id``).  So a reader of a whole file
knows which rows may want its payloads, and looks at no others.  A file never changes once it is
written.  By the digest (BLAKE2b-128) one that has lost its end, or a name, is known: else it would
count as read, and the lost payloads would be waited for without an alert.

Only a payload may go away that is of an AT or AFTER without a rule and a group, whose payload is
not encrypted, and that is not paused.  All else stays in its row, so names, counts, places,
versions stay as they were.  Payloads of belfry's own commands stay whole.  So does one
of a group: its order there must not hang on a store.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from belfry.schedules.rule import ONE_SHOT
from belfry.schedules.triggers.acknowledged import DEPENDING
from belfry.store.layout.day_reference import (
    REFERENCE_BYTES,
    DayFile,
    Reference,
    digest_of,
    encode_reference,
)
from belfry.store.layout.pending import AWAY, FLAGS_AT, KIND_CODES, Away, decode_row
from belfry.store.layout.pending_bytes import with_flags
from belfry.store.layout.records import FORMAT, PENDING

MAGIC: Final = b"belfry day file 1\n"
# The first entry lies behind the digest of sizes and names.
_BEGIN: Final = len(MAGIC) + 16
_ENTRY: Final = Struct(">HI")
_SIZE: Final = Struct(">I")
_TENANT_BYTES_AT: Final = 68
_GROUP_BYTES_AT: Final = 70
_TEXTS_AT: Final = 88
# How ids begin of schedules whose payloads belfry's own commands read (`declared/set_record.py`).
OWN_IDS: Final = b"belfry/"
_RULE_BYTES: Final = slice(80, 84)
_SIZE_BYTES: Final = slice(84, 88)
_NONE: Final = bytes(4)
# A smaller payload stays: a reference takes as much.
LEAST_BYTES: Final = 2 * REFERENCE_BYTES
_MAY_GO: Final = frozenset(
    bytes((FORMAT, PENDING, KIND_CODES[kind], 0)) for kind in ONE_SHOT if kind not in DEPENDING
)


class NoDayFile(ValueError):
    """Bytes that are no day file, or not all of one."""


class Entry(NamedTuple):
    """A payload in a day file: whose it is, where it lies, and its bytes."""

    name: bytes
    offset: int
    payload: bytes


def may_go(record: bytes) -> bool:
    """Whether the payload of a pending record may lie in a day file."""
    return (
        record[:4] in _MAY_GO
        and record[_RULE_BYTES] == _NONE
        and not record[_GROUP_BYTES_AT]
        and not record.startswith(OWN_IDS, _TEXTS_AT + record[_TENANT_BYTES_AT])
        and LEAST_BYTES <= _SIZE.unpack_from(record, _SIZE_BYTES.start)[0] < 1 << 31
    )


def payload_in(record: bytes) -> bytes:
    """The payload of a record that may go, or its reference."""
    return record[-_SIZE.unpack_from(record, _SIZE_BYTES.start)[0] :]


def without_payload(record: bytes, stands: Away) -> bytes:
    """A record that may go, with a reference in place of its payload."""
    return _with(record, stands, record[FLAGS_AT] | AWAY)


def with_payload(record: bytes, payload: bytes) -> bytes:
    """A record whose payload is away, with the payload: the bytes that it had before."""
    return _with(record, payload, record[FLAGS_AT] & ~AWAY)


def _with(record: bytes, payload: bytes, flags: int) -> bytes:
    start = len(record) - _SIZE.unpack_from(record, _SIZE_BYTES.start)[0]
    head = with_flags(record[: _SIZE_BYTES.start], flags)
    return b"".join((head, _SIZE.pack(len(payload)), record[_SIZE_BYTES.stop : start], payload))


def encode_file(entries: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, list[int]]:
    """A day file of names and payloads; and where each payload lies in it."""
    parts, offsets, at, index = list[bytes](), list[int](), _BEGIN, blake2b(digest_size=16)
    for name, payload in entries:
        head = _ENTRY.pack(len(name), len(payload)) + name
        index.update(head)
        parts += (head, payload)
        offsets.append(at + len(head))
        at = offsets[-1] + len(payload)
    return b"".join((MAGIC, index.digest(), *parts)), offsets


def read_file(data: bytes) -> list[Entry]:
    """The content of a day file; raises `NoDayFile` if it is cut or changed.

    Payloads are not looked at: a row knows the digest of its own.
    """
    if not data.startswith(MAGIC):
        raise NoDayFile("it does not begin as a day file does")
    found, at, index = list[Entry](), _BEGIN, blake2b(digest_size=16)
    while at < len(data):
        if at + _ENTRY.size > len(data):
            raise NoDayFile(f"it is cut at byte {at}")
        name_n, payload_n = _ENTRY.unpack_from(data, at)
        begin = at + _ENTRY.size
        offset = begin + name_n
        index.update(data[at:offset])
        at = offset + payload_n
        if at > len(data):
            raise NoDayFile(f"it is cut amid the payload at byte {offset}")
        found.append(Entry(data[begin:offset], offset, data[offset:at]))
    if index.digest() != data[len(MAGIC) : _BEGIN]:
        raise NoDayFile("names in it are not those that were written, or some are missing")
    return found


def reference_to(file: DayFile, offset: int, payload: bytes) -> Away:
    """The reference to a payload that lies there."""
    return encode_reference(Reference(file, offset, len(payload), digest_of(payload)))


def of_row(record: bytes) -> Away | None:
    """The reference to the payload of a record; None if the payload is in it."""
    return Away(decode_row(record)[-1] or b"") if record[FLAGS_AT] & AWAY else None
