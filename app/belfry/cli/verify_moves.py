"""Moves of key groups that `belfry verify` remembers, in the tables of its state file.

    move_sides     by group, move and partition    who gives and who takes, until the move is judged
    moved_rows     by group, move and short name   rows that left and rows that came, until then
    given_groups   by partition and group          the partition it left, until it was looked for

A move has 50 000 rows at most and some 100 bytes for each, and all of them are gone once it is
judged. One whose other side was never read is forgotten with all else that is old.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from belfry.cli.verify_state import StateFile
from belfry.verification.move_memory import Given, MovedRow, MoveId, MoveSide


class MovesOnDisk:
    """Sides and rows of moves; its methods are those of `verification.move_memory.MoveMemory`."""

    def __init__(self, file: StateFile) -> None:
        self._file = file

    # -- sides -------------------------------------------------------------------------------------

    def open_sides(self, partition: int) -> list[MoveSide]:
        """Sides of moves that are not over in a partition."""
        found = self._all("SELECT * FROM move_sides WHERE partition = ? AND NOT over", partition)
        return [_side(row) for row in found]

    def put_side(self, side: MoveSide) -> None:
        """Remember a side, as it is now."""
        row = (*side.id, *side[1:], self._file.now_ms)
        self._do("INSERT OR REPLACE INTO move_sides VALUES (?, ?, ?, ?, ?, ?, ?)", *row)

    def over(self) -> list[tuple[MoveSide, MoveSide]]:
        """Moves that are over on both sides: who gave, and who took."""
        query = (
            "SELECT gave.*, took.* FROM move_sides gave JOIN move_sides took USING (grp, move)"
            " WHERE gave.over AND took.over AND took.takes AND NOT gave.takes"
        )
        return [(_side(row[:7]), _side(row[7:])) for row in self._all(query)]

    def under_way(self) -> int:
        """How many moves are not over on a side that was seen."""
        query = "SELECT count(*) FROM (SELECT DISTINCT grp, move FROM move_sides WHERE NOT over)"
        return int(self._file.one(query)[0])

    def has(self, move: MoveId) -> bool:
        """Whether a side of a move is remembered."""
        query = "SELECT 1 FROM move_sides WHERE grp = ? AND move = ?"
        return self._file.one(query, *move) is not None

    # -- rows --------------------------------------------------------------------------------------

    def row(self, move: MoveId, name: int) -> MovedRow | None:
        """The facts on a schedule in a move."""
        query = "SELECT * FROM moved_rows WHERE grp = ? AND move = ? AND name = ?"
        found = self._file.one(query, *move, name)
        return None if found is None else MovedRow(*found[2:])

    def put_row(self, move: MoveId, row: MovedRow) -> None:
        """Remember that."""
        places = ", ".join("?" * (len(move) + len(row)))
        query = f"INSERT OR REPLACE INTO moved_rows VALUES ({places})"  # noqa: S608  # only ?
        self._do(query, *move, *row)

    def rows(self, move: MoveId) -> Iterator[MovedRow]:
        """All schedules of a move, one by one."""
        query = "SELECT * FROM moved_rows WHERE grp = ? AND move = ?"
        return (MovedRow(*row[2:]) for row in self._file.rows.execute(query, move))

    def forget(self, move: MoveId) -> None:
        """A move was judged."""
        for table in ("move_sides", "moved_rows"):
            self._do(f"DELETE FROM {table} WHERE grp = ? AND move = ?", *move)  # noqa: S608

    def forget_partition(self, partition: int) -> None:
        """Forget all moves that have a side in this partition, for it is read anew."""
        query = "SELECT DISTINCT grp, move FROM move_sides WHERE partition = ?"
        for row in self._all(query, partition):
            self.forget(MoveId(*row))
        self._do("DELETE FROM given_groups WHERE partition = ?", partition)

    def forget_before(self, ms: int) -> None:
        """Forget moves without a record since this instant."""
        query = "SELECT grp, move FROM move_sides GROUP BY grp, move HAVING max(touched) < ?"
        for row in self._all(query, ms):
            self.forget(MoveId(*row))

    # -- where groups have left --------------------------------------------------------------------

    def give(self, given: Given) -> None:
        """A partition has given a group away; another entry of this group there is replaced."""
        stays = orjson.dumps(given.stays).decode()
        row = (given.partition, *given.id, given.settled, stays)
        self._do("INSERT OR REPLACE INTO given_groups VALUES (?, ?, ?, ?, ?)", *row)

    def given(self, partition: int, group: int) -> Given | None:
        """Whether a partition has given a group away, and was not looked through since."""
        query = "SELECT * FROM given_groups WHERE partition = ? AND grp = ?"
        found = self._file.one(query, partition, group)
        return None if found is None else _given(found)

    def all_given(self) -> list[Given]:
        """The same of all partitions and groups."""
        return [_given(row) for row in self._all("SELECT * FROM given_groups")]

    def take_back(self, partition: int, group: int) -> None:
        """A group comes, has stayed, or was looked for where it left."""
        self._do("DELETE FROM given_groups WHERE partition = ? AND grp = ?", partition, group)

    def _all(self, query: str, *given: Any) -> list[Any]:
        return self._file.rows.execute(query, given).fetchall()

    def _do(self, query: str, *given: Any) -> None:
        self._file.rows.execute(query, given)


def _side(row: Any) -> MoveSide:
    group, move, partition, takes, sound, over, _ = row
    return MoveSide(MoveId(group, move), partition, bool(takes), bool(sound), bool(over))


def _given(row: Any) -> Given:
    partition, group, move, settled, stays = row
    return Given(partition, MoveId(group, move), bool(settled), tuple(orjson.loads(stays)))
