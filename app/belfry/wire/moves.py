"""Records of a move: what partitions tell one another while a key group goes from one to another.

They lie in the topic of requests, so each partition reads them once and in order, as it reads
requests, and the transaction that takes one in also writes what follows from it:

    MOVE    to the home         the group is to lie at `target`
    INVITE  home ─► target      will you take it in?
    READY   target ─► home      yes: my changelog says that it comes
    GIVE    home ─► source      give it away; from here on requests wait at the home
    ROWS    source ─► target    rows of the changelog: one that waits, or several that do not
    END     source ─► target    that was all of it
    GIVEN   source ─► home      it has left, or why it has not
    FORGET  to the target       it does not come

A release that knows none of them refuses them as it refuses all that is no request.  So a target of
an older release never answers, and nothing has begun.

    02 62 6d 01 │ kind u8 │ group u32 │ target u32 │ move u64 │ number u64 │ body
    ◄─ magic ──►

`move` is the offset of MOVE at the home, and names the move; where the input was made anew, and the
group's last move had a higher number, the next one behind that.  `number` counts ROWS from 0; that
of END is how many there were.
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

# Header of a request that the home sends to where its group lies.
HANDED_ON: Final = "belfry-origin-group"


class MoveRecord(NamedTuple):
    """What one of these records says."""

    kind: int
    group: int
    target: int
    move: int = 0
    number: int = 0
    body: bytes = b""


def move_named(offset: int, last: int) -> int:
    """The name of the move that is asked for at this offset of the home; `last` is the one before.

    Offsets begin anew where the input does, as behind a take-over by a mirror, and who has the
    group passes over moves that are older than the one by which it came.
    """
    return max(offset, last + 1) if last else offset


def encode_move(record: MoveRecord) -> bytes:
    """The value of such a record."""
    kind, group, target, move, number, body = record
    return _HEAD.pack(MAGIC, kind, group, target, move, number) + body


def is_move(record: SourceRecord) -> bool:
    """Whether a record is one of these.

    One with other headers than those of workers is not: they may hold a request, or say how its
    value is to be read, and a request's own bytes may begin as these do.
    """
    value, headers = record[3:]
    if value is None or value[:4] != MAGIC:
        return False
    return all(name.startswith(ORIGIN_PREFIX) for name, _ in headers or ())


def decode_move(value: bytes) -> MoveRecord | None:
    """What such a value says; None for one of a later release, or one that was cut."""
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
    """The rows in such a body.  Raises ValueError where it was cut."""
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
