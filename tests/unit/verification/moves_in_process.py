"""What is remembered of moves of key groups, in dictionaries."""

from __future__ import annotations

from collections.abc import Iterable

from belfry.verification.move_memory import Given, MovedRow, MoveId, MoveSide


class MovesInProcess:
    """A `MoveMemory` of dictionaries."""

    def __init__(self) -> None:
        self._sides: dict[tuple[MoveId, int], MoveSide] = {}
        self._rows: dict[tuple[MoveId, int], MovedRow] = {}
        self._given: dict[tuple[int, int], Given] = {}

    def open_sides(self, partition: int) -> list[MoveSide]:
        sides = self._sides.values()
        return [each for each in sides if each.partition == partition and not each.over]

    def put_side(self, side: MoveSide) -> None:
        self._sides[side.id, side.partition] = side

    def over(self) -> list[tuple[MoveSide, MoveSide]]:
        sides = [each for each in self._sides.values() if each.over]
        return [
            (gave, took)
            for gave in sides
            for took in sides
            if gave.id == took.id and took.takes and not gave.takes
        ]

    def under_way(self) -> int:
        return len({each.id for each in self._sides.values() if not each.over})

    def has(self, move: MoveId) -> bool:
        return any(of == move for of, _ in self._sides)

    def row(self, move: MoveId, name: int) -> MovedRow | None:
        return self._rows.get((move, name))

    def put_row(self, move: MoveId, row: MovedRow) -> None:
        self._rows[move, row.name] = row

    def rows(self, move: MoveId) -> Iterable[MovedRow]:
        return [row for (of, _), row in self._rows.items() if of == move]

    def forget(self, move: MoveId) -> None:
        self._sides = {key: side for key, side in self._sides.items() if side.id != move}
        self._rows = {key: row for key, row in self._rows.items() if key[0] != move}

    def give(self, given: Given) -> None:
        self._given[given.partition, given.id.group] = given

    def given(self, partition: int, group: int) -> Given | None:
        return self._given.get((partition, group))

    def all_given(self) -> list[Given]:
        return list(self._given.values())

    def take_back(self, partition: int, group: int) -> None:
        self._given.pop((partition, group), None)
