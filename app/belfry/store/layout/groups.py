r"""Key groups that are not simply at home, as they lie in a partition's changelog.

    key                             row
    \0gh, group u32                 of the home: where the group lies, and where it goes
    \0gl, group u32                 of a partition that has it, gives it or is given it
    \0gw, group u32, offset u64     a request that waits at the home while the group moves

A group that lies at its home has none of them.  The letter of the first two rows is one that
releases before cannot read, so none of them owns a partition whose groups have moved: it stops, and
says so.  A request that waits is the record as it was received, in the row of `layout/aside.py`.

An example: group 1684 lies at partition 2, by the move that came in at offset 900; its tenant `big`
was spread when it left, and stayed.

    key    00 67 68  00000694
    row    01 11 03  00000002 ffffffff  0000000000000384  03 626967
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from belfry.store.layout.aside import ASIDE_PREFIX, Waits, decode_aside
from belfry.store.layout.records import FORMAT, GROUP

# Of all of them.
GROUP_PREFIX: Final = b"\0g"
HOME_PREFIX: Final = b"\0gh"
HOME_END: Final = b"\0gi"
LIES_PREFIX: Final = b"\0gl"
LIES_END: Final = b"\0gm"
HELD_PREFIX: Final = b"\0gw"
HELD_END: Final = b"\0gx"

_NAMED: Final = Struct(">3sI")
_HELD: Final = Struct(">3sIQ")
# Format, letter, phase, where it lies or comes from, where it goes, the move, records so far.
_ROW: Final = Struct(">BBBIIQQ")
NOWHERE: Final = (1 << 32) - 1

# Phases at the home.
ASKED: Final = 1  # The partition that is to take the group in was asked, and has not answered.
HELD: Final = 2  # The group is on its way: requests wait here.
RESTS: Final = 3  # It lies there; requests that still wait here go on.
# Phases elsewhere, and at a home that gives or is given the group.
GIVE: Final = 4  # It is to be given away, and nothing has been looked at.
LEAVING: Final = 5  # Some of it has been given away.
ARRIVING: Final = 6  # Some of it may have come.
HERE: Final = 7  # All of it is here.


class GroupRow(NamedTuple):
    """Where a group stands in one partition.

    `at` is where it lies or comes from, `to` where it goes (`NOWHERE`: it rests).  `move` is the
    offset at the home of the record that began the move; `number` counts the records that were sent
    or taken of it, at the home those of a group that came back.  `stays` are tenants of the group
    that do not move.
    """

    phase: int
    at: int
    to: int
    move: int
    number: int = 0
    stays: tuple[bytes, ...] = ()


def home_key(group: int) -> bytes:
    """Changelog key of the home's record of a group."""
    return _NAMED.pack(HOME_PREFIX, group)


def lies_key(group: int) -> bytes:
    """Changelog key of a partition's record of a group."""
    return _NAMED.pack(LIES_PREFIX, group)


def held_key(group: int, offset: int) -> bytes:
    """Changelog key of a request that came at an offset, and waits while its group moves."""
    return _HELD.pack(HELD_PREFIX, group, offset)


def held_range(group: int) -> tuple[bytes, bytes]:
    """The keys between which the requests lie that wait for a group."""
    return _NAMED.pack(HELD_PREFIX, group), _NAMED.pack(HELD_PREFIX, group) + b"\xff" * 9


def group_of(key: bytes) -> int:
    """The group in a key of any of these rows."""
    return int(_NAMED.unpack_from(key)[1])


def encode_group(row: GroupRow) -> bytes:
    """The row of a group."""
    phase, at, to, move, number, stays = row
    head = _ROW.pack(FORMAT, GROUP, phase, at, to, move, number)
    return head + pack_names(stays)


def decode_group(row: bytes) -> GroupRow:
    """Where a group stands by such a row."""
    _, _, phase, at, to, move, number = _ROW.unpack_from(row)
    return GroupRow(phase, at, to, move, number, unpack_names(row[_ROW.size :]))


def decode_held(key: bytes, row: bytes) -> Waits:
    """The request in a row that waits under this key; its lane is its tenant."""
    return decode_aside(ASIDE_PREFIX + key[_NAMED.size :], row)


def pack_names(names: Iterable[bytes]) -> bytes:
    """Tenants' names, each behind its size; none has more than 255 bytes."""
    return b"".join([bytes((len(name),)) + name for name in names])


def unpack_names(packed: bytes) -> tuple[bytes, ...]:
    """The names in such bytes."""
    found: list[bytes] = []
    at = 0
    while at < len(packed):
        end = at + 1 + packed[at]
        found.append(packed[at + 1 : end])
        at = end
    return tuple(found)
