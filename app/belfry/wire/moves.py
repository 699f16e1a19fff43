"""Records of a move: messages between partitions while a key group goes from one to another.

They lie in the topic of requests, so each partition reads them once and in order, as it reads
requests, and the transaction that takes one in also writes its effects:

    MOVE    to the home         let the group lie at `target`
    INVITE  home ─► target      will you take it in?
    READY   target ─► home      yes: my changelog has noted that it comes
    GIVE    home ─► source      give it away; from here on requests wait at the home
    ROWS    source ─► target    rows of the changelog: one row that waits, or several that do not
    END     source ─► target    that was all of it
    GIVEN   source ─► home      the group has left, or why it has not
    FORGET  to the target       the group does not come

A release that does not know these records refuses them like any record that is not a request. So a
target of an older release never answers, and the move does not begin.

    02 62 6d 01 │ kind u8 │ group u32 │ target u32 │ move u64 │ number u64 │ body
    ◄─ magic ──►

`move` is the offset of MOVE at the home, and names the move. If the input was made anew and the
group's last move had a higher number, `move` is that number plus 1. `number` counts ROWS from 0; in
END it is the number of ROWS.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from belfry.wire.record import ORIGIN_PREFIX, SourceRecord

MAGIC: Final = b"\x02bm\x01"
_HEAD: Final = Struct(">4sBIIQQ")
_SIZES: Final = Struct(">II")

MOVE, INVITE, READY, GIVE, ROWS, END, GIVEN, FORGET = range(1, 9)

# Header of a request that the home sends to the partition where its group lies.
HANDED_ON: Final = "belfry-origin-group"


class MoveRecord(NamedTuple):
    """The content of one of these records."""

    kind: int
    group: int
    target: int
    move: int = 0
    number: int = 0
    body: bytes = b""


def move_named(offset: int, last: int) -> int:
    """The name of the move with its MOVE at this offset of the home; `last` is the move before.

    Offsets begin anew if the input does, for example after a take-over by a mirror, and the
    partition that has the group ignores moves that are older than the one by which the group came.
    """
    return max(offset, last + 1) if last else offset


def encode_move(record: MoveRecord) -> bytes:
    """The value of such a record."""
    kind, group, target, move, number, body = record
    return _HEAD.pack(MAGIC, kind, group, target, move, number) + body


def is_move(record: SourceRecord) -> bool:
    """Whether a record is one of these.

    A record with other headers than those of workers is not: the headers may hold a request, or say
    how its value is to be read, and a request's own bytes may begin like a move's.
    """
    value, headers = record[3:]
    if value is None or value[:4] != MAGIC:
        return False
    return all(name.startswith(ORIGIN_PREFIX) for name, _ in headers or ())


def decode_move(value: bytes) -> MoveRecord | None:
    """The content of such a value; None for one of a later release, or one that was cut."""
    try:
        _, kind, group, target, move, number = _HEAD.unpack_from(value)
    except struct_error:
        return None
    if not MOVE <= kind <= FORGET:
        return None
    return MoveRecord(kind, group, target, move, number, value[_HEAD.size :])


def move_key(group: int) -> bytes:
    """The key of a record that is about a group; no tenant's name holds a space."""
    return b"key group %d" % group


def pack_rows(rows: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Rows of a changelog, each with its key, as the body of ROWS."""
    parts: list[bytes] = []
    for key, row in rows:
        parts += (_SIZES.pack(len(key), len(row)), key, row)
    return b"".join(parts)


def unpack_rows(body: bytes) -> list[tuple[bytes, bytes]]:
    """The rows in such a body. Raises ValueError if it was cut."""
    found: list[tuple[bytes, bytes]] = []
    at = 0
    while at < len(body):
        if at + _SIZES.size > len(body):
            raise ValueError("the rows end too soon")
        key_size, row_size = _SIZES.unpack_from(body, at)
        middle = at + _SIZES.size + key_size
        at = middle + row_size
        if at > len(body):
            raise ValueError("the rows end too soon")
        found.append((body[middle - key_size : middle], body[middle : middle + row_size]))
    return found
