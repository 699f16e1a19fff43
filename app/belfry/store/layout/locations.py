"""Locations: where the pending record of a schedule lies, as the row under its name says.

    row under the name      format  row  where  0 │ due  seq │ lock or level, if there is one
                            ◄──── 4 bytes ───────►◄── 16 ───►

    where                   local key of the record
    IN_TIMELINE             t | minute | lane | due | seq
    IN_BACKLOG              b | tenant \\0 | due | seq
    IN_CATCH_UP             c | tenant \\0 | due | seq
    the same, with a level  b | tenant \\1 | level | due | seq        also c
    IN_PAUSED               p | changelog key                    the sort key is kept all the same
    BEHIND_LOCK             h | tenant \\0 | lock | due | seq

So name, location and record are three steps: the name gives the location, and `record_key` the key
of the record.  A location is local only; the changelog holds the record itself, and a replay finds
a place for it.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, TypeGuard

from belfry.store.layout.keys import (
    BACKLOG_PREFIX,
    CATCH_UP_PREFIX,
    MINUTE_MS,
    locked_key,
    pack_sort_key,
    paused_key,
    queue_key,
    tenant_of,
    timeline_key,
)
from belfry.store.layout.records import FORMAT, LOCATION

_LOCATION: Final = Struct(">BBBBqQ")
# The due instant of a pending record and of a location, and the sequence of a record, as they stand
# in keys of the timeline; and both in a location.
_DUE: Final = slice(4, 12)
_SEQ: Final = slice(28, 36)
_PLACE: Final = slice(4, 20)
# A key of the timeline without the sort key, which lies behind it.
_TIMELINE_MINUTE: Final = Struct(">cIB")

# How locations begin that need no closer look in a replay, and those that the hot path writes.
HEAD_IN_TIMELINE: Final = bytes((FORMAT, LOCATION, 0))
LOCATED_IN_TIMELINE: Final = bytes((FORMAT, LOCATION, 0, 0))
# The hot path packs by itself, and takes the layout from here.
pack_location: Final = _LOCATION.pack

# Where a pending record lies.
IN_TIMELINE: Final = 0
IN_BACKLOG: Final = 1
IN_PAUSED: Final = 2
IN_CATCH_UP: Final = 3
BEHIND_LOCK: Final = 4

# The letters of the per-tenant queues.
QUEUES: Final = {IN_BACKLOG: BACKLOG_PREFIX, IN_CATCH_UP: CATCH_UP_PREFIX}
QUEUE_LETTERS: Final = frozenset(QUEUES.values())


class Location(NamedTuple):
    """Where a pending record lies: in which part of the store, at which sort key.

    `within` is the name of the ack lock that it is held behind, or its level in a queue; empty
    where there is none.
    """

    where: int
    due_ms: int
    seq: int
    within: bytes = b""


def is_location(row: bytes | None) -> TypeGuard[bytes]:
    """Whether a row under a name says where the schedule waits."""
    return row is not None and row[1] == LOCATION


def encode_location(location: Location) -> bytes:
    """The row of a location."""
    where, due_ms, seq, within = location
    return _LOCATION.pack(FORMAT, LOCATION, where, 0, due_ms, seq) + within


def decode_location(row: bytes) -> Location:
    """Where a pending record lies."""
    _, _, where, _, due_ms, seq = _LOCATION.unpack_from(row)
    return Location(where, due_ms, seq, row[_LOCATION.size :])


def timeline_place(due_ms: int, seq: int) -> tuple[bytes, bytes]:
    """Where an event due at `due_ms` lies in the timeline, and the location that says so."""
    place = pack_sort_key(due_ms, seq)
    return _TIMELINE_MINUTE.pack(b"t", due_ms // MINUTE_MS, 0) + place, LOCATED_IN_TIMELINE + place


def timeline_place_of(record: bytes) -> tuple[bytes, bytes]:
    """The same of a pending record, out of its bytes; it is for loops over many."""
    due = record[_DUE]
    place = due + record[_SEQ]
    minute = _TIMELINE_MINUTE.pack(b"t", int.from_bytes(due, "big") // MINUTE_MS, 0)
    return minute + place, LOCATED_IN_TIMELINE + place


def timeline_key_at(row: bytes) -> bytes:
    """The key in the timeline of the record whose location is this row, which says so."""
    minute = int.from_bytes(row[_DUE], "big") // MINUTE_MS
    return _TIMELINE_MINUTE.pack(b"t", minute, 0) + row[_PLACE]


def record_key(name: bytes, row: bytes) -> bytes:
    """The local key of the pending record of a name whose row is this location."""
    where, due_ms, seq, within = decode_location(row)
    if where == IN_TIMELINE:
        return timeline_key(due_ms, seq)
    if where == IN_PAUSED:
        return paused_key(name)
    if where == BEHIND_LOCK:
        return locked_key(tenant_of(name), within, due_ms, seq)
    return queue_key(QUEUES[where], tenant_of(name), due_ms, seq, within)
