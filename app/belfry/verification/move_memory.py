"""The memory of moves of key groups, until both sides of each were read.

A move has two sides, in two partitions of the changelog, which are read one after the other, and
perhaps in different runs.  So rows that left and rows that came are kept as `MovedRow`s, one for
each schedule, until the move can be judged (`moves.py`).  It is a port, as `Memory` is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

# An offset of a record that was not seen.
NOT_SEEN: Final = -1
# The digest of a row that does not wait, or that is unknown.
NOT_WAITING: Final = 0
# What a file can hold; numbers of a forged row may be larger.
LARGEST: Final = (1 << 63) - 1


class MoveId(NamedTuple):
    """A move of a key group; `move` is the offset of the record that began it."""

    group: int
    move: int


class MoveSide(NamedTuple):
    """A partition that gives the group of a move away, or takes it in.

    `sound`: all of its transactions since the move began there could be checked.  `over`: its part
    in the move has ended.
    """

    id: MoveId
    partition: int
    takes: bool
    sound: bool
    over: bool = False


class MovedRow(NamedTuple):
    """A schedule in a move, by its short name: the offsets of the rows by which it left and came.

    `left_as` and `came_as` are digests of the pending schedule, and `NOT_WAITING` if the row tells
    of none.  `seq` is the sequence with which it came, and `twice` the offset of a row with another
    one.
    """

    name: int
    tenant: str
    left: int = NOT_SEEN
    left_as: int = NOT_WAITING
    came: int = NOT_SEEN
    came_as: int = NOT_WAITING
    seq: int = NOT_SEEN
    twice: int = NOT_SEEN


class Given(NamedTuple):
    """A partition that has given a group away, by this move; tenants that stay there.

    `settled`: it is known that the group has left and did not stay.
    """

    partition: int
    id: MoveId
    settled: bool
    stays: tuple[str, ...] = ()


class MoveMemory(Protocol):
    """The memory of moves."""

    def open_sides(self, partition: int) -> list[MoveSide]:
        """Sides of moves that are not over in a partition."""

    def put_side(self, side: MoveSide) -> None:
        """Remember a side, as it is now."""

    def over(self) -> list[tuple[MoveSide, MoveSide]]:
        """Moves that are over on both sides: the giving and the taking partition."""

    def under_way(self) -> int:
        """How many moves are not over on a side that was seen."""

    def has(self, move: MoveId) -> bool:
        """Whether a side of a move is remembered."""

    def row(self, move: MoveId, name: int) -> MovedRow | None:
        """The facts on a schedule in a move."""

    def put_row(self, move: MoveId, row: MovedRow) -> None:
        """Remember that."""

    def rows(self, move: MoveId) -> Iterable[MovedRow]:
        """All schedules of a move."""

    def forget(self, move: MoveId) -> None:
        """A move was judged."""

    def give(self, given: Given) -> None:
        """A partition has given a group away; another entry of this group there is replaced."""

    def given(self, partition: int, group: int) -> Given | None:
        """Whether a partition has given a group away, and was not looked through since."""

    def all_given(self) -> list[Given]:
        """The same of all partitions and groups."""

    def take_back(self, partition: int, group: int) -> None:
        """A group comes, has stayed, or was looked for where it left."""
