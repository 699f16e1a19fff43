"""Whether all that left with a key group has come, by the notes of both sides.

    left, and did not come                                   not_arrived
    came, and had not left; or came by two records           arrived_twice
    came with another life, version, number, kind or date    arrived_changed
    waits where its group has left                           left_behind

A move is judged once both sides are over, and only where no transaction of it is missing on either
side: compaction may have removed the evidence. Else it is counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from belfry.verification.findings import Breach, Breached, CheckCounts, Spot
from belfry.verification.key_groups import group_of, groups_among
from belfry.verification.memory import Memory, Stands
from belfry.verification.move_memory import (
    LARGEST,
    NOT_SEEN,
    NOT_WAITING,
    Given,
    MovedRow,
    MoveSide,
)


class MovePass(NamedTuple):
    """A pass over all partitions: the changelog, how many homes there are, and tenants that are
    spread."""

    topic: str
    homes: int
    spread: Collection[str]


class _Rows(NamedTuple):
    """Schedules of one finding: how many, and the offset of the first."""

    number: int = 0
    offset: int = LARGEST

    def and_at(self, offset: int, number: int = 1) -> _Rows:
        return _Rows(self.number + number, min(self.offset, offset))


class MoveCheck:
    """Judges the moves of all partitions at the end of one pass; each is told of once."""

    def __init__(self, memory: Memory, counts: CheckCounts, of: MovePass) -> None:
        self._memory = memory
        self._moves = memory.moves
        self._counts = counts
        self._topic, self._homes, self._spread = of
        # Schedules that came and wait where they had been as well, by partition and tenant.
        self._doubled: dict[tuple[int, str], int] = {}

    def tell(self) -> Iterator[Breached]:
        """One finding for each move and kind, at the first of its rows."""
        for gave, took in self._moves.over():
            if gave.sound and took.sound:
                self._counts.moves += 1
                yield from self._judge(gave, took)
            else:
                self._counts.moves_compacted += 1
            self._moves.forget(gave.id)
        self._counts.moves_under_way = self._moves.under_way()
        looked: dict[int, dict[int, Given]] = {}
        for given in self._moves.all_given():
            if given.settled and not self._moves.has(given.id):
                looked.setdefault(given.partition, {})[given.id.group] = given
                self._moves.take_back(given.partition, given.id.group)
        for partition, gone in looked.items():
            yield from self._left_behind(partition, gone)

    def _judge(self, gave: MoveSide, took: MoveSide) -> Iterator[Breached]:
        found: dict[Breach, _Rows] = {}
        for row in self._moves.rows(gave.id):
            breach = None if row.tenant in self._spread else _breach_of(row)
            if breach is not None:
                offset = row.left if breach is Breach.NOT_ARRIVED else max(row.came, row.twice)
                found[breach] = found.get(breach, _Rows()).and_at(offset)
            if breach is Breach.ARRIVED_TWICE and self._waits(gave.partition, row.name):
                place = gave.partition, row.tenant
                self._doubled[place] = self._doubled.get(place, 0) + 1
        by = f"key group {gave.id.group} by its move {gave.id.move}"
        here, there = f"partition {gave.partition}", f"partition {took.partition}"
        said = {
            Breach.NOT_ARRIVED: f"left {here} with {by}, and did not come to {there}",
            Breach.ARRIVED_TWICE: f"came to {there} with {by} twice, or had not left {here}",
            Breach.ARRIVED_CHANGED: f"came to {there} with {by} as another than had left {here}",
        }
        for breach, rows in found.items():
            side = gave if breach is Breach.NOT_ARRIVED else took
            yield self._breached(breach, side.partition, rows, said[breach])

    def _waits(self, partition: int, name: int) -> bool:
        known = self._memory.schedule(partition, name)
        return known is not None and known.stands in (Stands.WAITS, Stands.PAUSED)

    def _left_behind(self, partition: int, gone: Mapping[int, Given]) -> Iterator[Breached]:
        """Schedules that still wait where groups have left, except those told as `arrived_twice`.

        The schedules of a partition are looked through once, however many groups have left it.
        """
        groups = groups_among(self._homes)
        found: dict[int, _Rows] = {}
        for tenant, number, offset in self._memory.waiting(partition):
            given = gone.get(group_of(tenant.encode(), groups))
            if given is None or tenant in given.stays or tenant in self._spread:
                continue
            left = number - self._doubled.get((partition, tenant), 0)
            if left > 0:
                rows = found.get(given.id.group, _Rows())
                found[given.id.group] = rows.and_at(offset, left)
        for group, rows in found.items():
            said = (
                f"of key group {group} in partition {partition}, which gave the group away by its"
                f" move {gone[group].id.move}"
            )
            yield self._breached(Breach.LEFT_BEHIND, partition, rows, said)

    def _breached(self, breach: Breach, partition: int, rows: _Rows, said: str) -> Breached:
        number = f"{rows.number} schedules" if rows.number > 1 else "a schedule"
        spot = Spot(self._topic, partition, rows.offset)
        return Breached(breach, spot, f"{number} {said}", _EXPECTED[breach])


_EXPECTED = {
    Breach.NOT_ARRIVED: "a row of each of them there",
    Breach.ARRIVED_TWICE: "one row of each, behind the one by which it left",
    Breach.ARRIVED_CHANGED: "kind, life, version, number of fires and instant as they were",
    Breach.LEFT_BEHIND: "all of the group where it went",
}


def _breach_of(row: MovedRow) -> Breach | None:
    """The fault of a schedule whose move is over; None if there is none."""
    if row.came == NOT_SEEN:
        return Breach.NOT_ARRIVED if row.left_as != NOT_WAITING else None
    if row.twice != NOT_SEEN:
        return Breach.ARRIVED_TWICE
    if row.left == NOT_SEEN:
        return Breach.ARRIVED_TWICE if row.came_as != NOT_WAITING else None
    if NOT_WAITING in (row.left_as, row.came_as) or row.left_as == row.came_as:
        return None
    return Breach.ARRIVED_CHANGED
