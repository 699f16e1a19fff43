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

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeGuard

from belfry.store.layout.keys import (
    BACKLOG_PREFIX,
    CATCH_UP_PREFIX,
    MINUTE_MS,
    locked_key,
    pack_sort_key,
    pack_timeline_key,
    paused_key,
    queue_key,
    tenant_of,
    timeline_key,
)
from belfry.store.layout.records import FORMAT, LOCATION

_LOCATION: Final = Struct(">BBBBqQ")
# Due instant and sequence of a pending record, and of a location; and both as they stand in a key
# of the timeline.
_SORT_KEY_OF_RECORD: Final = Struct(">4xq16xQ").unpack_from
_SORT_KEY_OF_ROW: Final = Struct(">4xqQ").unpack_from
_SORT_KEY_IN_KEY: Final = slice(6, 22)
_SORT_KEY_IN_ROW: Final = slice(4, 20)
_DUE_AT_PLACE: Final = Struct(">q8x").unpack
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
    where there is no such name.
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


def timeline_places_of(records: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The same of many pending records, out of their bytes: their keys, and their locations."""
    keys = _keys_at(map(_SORT_KEY_OF_RECORD, records))
    return keys, [LOCATED_IN_TIMELINE + key[_SORT_KEY_IN_KEY] for key in keys]


def timeline_keys_at(rows: Sequence[bytes]) -> list[bytes]:
    """The keys in the timeline of the records whose locations are these rows, which say so."""
    if rows:
        # As a rule, the fires of a window were due in one minute; bytes have the order of instants.
        places = [row[_SORT_KEY_IN_ROW] for row in rows]
        first, last = _minute_at(min(places)), _minute_at(max(places))
        if first == last:
            head = _TIMELINE_MINUTE.pack(b"t", first, 0)
            return [head + place for place in places]
    return _keys_at(map(_SORT_KEY_OF_ROW, rows))


def _minute_at(place: bytes) -> int:
    minute: int = _DUE_AT_PLACE(place)[0] // MINUTE_MS
    return minute


def _keys_at(sort_keys: Iterable[tuple[int, int]]) -> list[bytes]:
    return [
        pack_timeline_key(b"t", due_ms // MINUTE_MS, 0, due_ms, seq) for due_ms, seq in sort_keys
    ]


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
