"""The common parts of all records, and records that have no file of their own.

Every record begins with two bytes, the format and the letter of its row.  These rows are here:

    marker    a schedule that is over: fired, cancelled, completed; kept for a day, then a tombstone
    awaited   a fire that is to be acknowledged, until it is or its time-out is over
    zones     by which version of the time zone data the instants were found; another text likewise

The others: `pending.py`, `locations.py`, `verdicts.py`, `manifests.py`, `buckets.py`, `aside.py`,
`usage.py`, `jobs.py`, `calendars.py`, `groups.py`, and `store/identity.py`.

Frozen numbers: `FORMAT`, the row letters, the struct layouts.  A change of any of them is a new
`FORMAT`, and a reader that meets one that it does not know stops its partition (`UnknownFormat`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Final, NamedTuple

FORMAT: Final = 1
PENDING: Final = 1
MARKER: Final = 2
VERDICT: Final = 3
MANIFEST: Final = 4
LOCATION: Final = 5
AWAITED: Final = 6
ZONES: Final = 7
ANSWERED: Final = 8
# The row of an identity, whose codec is `store/identity.py`: JSON follows.
IDENTITY: Final = 9
# Codecs of their own: `layout/aside.py`, `layout/buckets.py` (local only), `layout/usage.py`,
# `layout/jobs.py`, `layout/calendars.py`, `layout/ends.py` (local only), `layout/groups.py`.
ASIDE, BUCKET, USAGE, JOB, CALENDAR, ENDS, GROUP = 10, 11, 12, 14, 15, 16, 17
# A manifest of a partition with rows of key groups: no release reads it that knows none of them.
GROUPED: Final = 18

_OTHERS: Final = (ASIDE, USAGE, JOB, CALENDAR, GROUP, GROUPED)
_MARKER: Final = Struct(">BBBBqqQII")
# The same, with its four first bytes in one piece.
_ENDED: Final = Struct(">4sqqQII")
_AWAITED: Final = Struct(">BBBBqqqIBB")
_SIZE: Final = Struct(">Q")

# The largest number of a fire that has room at rest.
_MOST_NUMBER: Final = (1 << 32) - 1
# How rows begin that need no closer look in a replay.
HEAD_OF_MARKER: Final = bytes((FORMAT, MARKER))
# All of the head of rows that the hot path writes.
HEAD_OF_FIRED: Final = bytes((FORMAT, MARKER, 0, 0))

# The locks that a fire closes until it is acknowledged.
LOCKS_GROUP: Final = 1
LOCKS_OWN: Final = 2
ASKED_TO_END: Final = 4  # Beside what it locks: who works on it was asked to come to an end.

ENDED_FIRED: Final = 0
ENDED_CANCELLED: Final = 1
ENDED_COMPLETED: Final = 2
ENDED_MISSED: Final = 3

# How long a marker answers that a schedule is over.
MARKER_MS: Final = 24 * 3_600_000


class UnknownFormat(Exception):
    """A record that this version cannot read: the partition has to stop, not to guess."""


@contextmanager
def whole_records() -> Iterator[None]:
    """Within it a record that ends too early, or says impossible sizes, is of an unknown format.

    A known head does not make it known: others that may write to a changelog can copy a head.
    """
    try:
        yield
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise UnknownFormat(
            f"A record has a known head and cannot be read any further ({error}): it was cut off,"
            " or is nothing that belfry wrote. Find out who else may write to the changelog."
        ) from error


class Marker(NamedTuple):
    """A schedule that is over: how, when it ended, and its last version."""

    how: int
    ended_ms: int
    due_ms: int
    life: int
    version: int
    occurrence: int


class Awaited(NamedTuple):
    """A fire to be acknowledged: its locks, when, until when, with how many of its group."""

    locks: int
    fired_ms: int
    until_ms: int
    due_ms: int
    version: int
    schedule_id: bytes
    group: bytes
    at_once: int = 1


def encode_marker(row: Marker) -> bytes:
    """The record of a schedule that is over.

    The number of the next fire, which nobody will see, is cut to the room of its field.
    """
    how, ended_ms, due_ms, life, version, occurrence = row
    occurrence = min(occurrence, _MOST_NUMBER)
    return _MARKER.pack(FORMAT, MARKER, how, 0, ended_ms, due_ms, life, version, occurrence)


def encode_fired_marker(
    ended_ms: int, due_ms: int, life: int, version: int, occurrence: int
) -> bytes:
    """The marker of a one-shot that fired: that of `encode_marker`, with less to pass on."""
    return _ENDED.pack(HEAD_OF_FIRED, ended_ms, due_ms, life, version, occurrence)


def decode_marker(record: bytes) -> Marker:
    """The end of a schedule in a record."""
    _, _, how, _, ended_ms, due_ms, life, version, occurrence = _MARKER.unpack(record)
    return Marker(how, ended_ms, due_ms, life, version, occurrence)


def is_marker(row: bytes) -> bool:
    """Whether a row under a name says that the schedule is over."""
    return row[1] == MARKER


def encode_awaited(row: Awaited) -> bytes:
    """The record of a fire that is to be acknowledged."""
    locks, fired_ms, until_ms, due_ms, version, schedule_id, group, most = row
    head = _AWAITED.pack(
        FORMAT, AWAITED, locks, most if most > 1 else 0, fired_ms, until_ms, due_ms, version,
        len(schedule_id), len(group),
    )  # fmt: skip
    return head + schedule_id + group


def decode_awaited(record: bytes) -> Awaited:
    """The fire in a record that is to be acknowledged."""
    _, _, locks, most, fired_ms, until_ms, due_ms, version, size, _ = _AWAITED.unpack_from(record)
    end = _AWAITED.size + size
    schedule_id, group = record[_AWAITED.size : end], record[end:]
    return Awaited(locks, fired_ms, until_ms, due_ms, version, schedule_id, group, most or 1)


def encode_zones(version: str) -> bytes:
    """The record of the time zone data by which a partition's instants were found."""
    return encode_text(version)


def encode_text(text: str) -> bytes:
    """A record that is a text; its key says whose."""
    return bytes((FORMAT, ZONES)) + text.encode()


def text_of(record: bytes) -> str:
    """The text of such a record."""
    return record[2:].decode()


def encode_size(size: int) -> bytes:
    """The number of rows in a tenant's queue."""
    return _SIZE.pack(size)


def decode_size(stored: bytes) -> int:
    """The number of rows in a tenant's queue."""
    return int(_SIZE.unpack(stored)[0])


def check_format(record: bytes) -> int:
    """The row letter of a record; raises `UnknownFormat` if this version cannot read it."""
    known = len(record) > 1 and (PENDING <= record[1] <= ANSWERED or record[1] in _OTHERS)
    if not known or record[0] != FORMAT:
        raise UnknownFormat(
            f"A record starts with {record[:2].hex()!r}; this version reads format {FORMAT}, rows"
            f" {PENDING} to {ANSWERED}, {', '.join(map(str, _OTHERS))}. Run the"
            " version that wrote it, or a newer one."
        )
    return record[1]
