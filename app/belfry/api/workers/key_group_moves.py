"""Moves of key groups, as this worker asks for them: a signed record at the home of the group.

    POST a move ─► MOVE, signed ─► belfry.schedules, partition = home ─► its owner begins

The record goes the way of all requests, so the owner that the home has by then carries it out.  Its
offset names the move.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from belfry.engine.effects import Rerouted
from belfry.engine.giving import move_record
from belfry.engine.reports import SourcePartition
from belfry.placement.key_groups import KeyGroups
from belfry.placement.partition_count import PartitionCount
from belfry.schedules.identity import Homes
from belfry.settings import Settings
from belfry.wire.moves import MOVE, MoveRecord
from belfry.wire.worker_keys import Purpose

# Writes a record, and tells the offset at which it lies; within so many seconds.
Put = Callable[[Rerouted, float], Awaitable[int]]
WRITE_S: Final = 10.0


class KeyGroupMoves:
    """Whether this worker lets key groups move, and the way to have one moved."""

    def __init__(self, settings: Settings, counted: PartitionCount, put: Put) -> None:
        """`counted` knows which partitions there are; `put` writes to the topic of requests."""
        self.groups = KeyGroups(counted.homes)
        self.counted = counted
        self.allowed = settings.key_group_moves
        self._topic = settings.topic("schedules")
        self._keys = settings.worker_keys(Purpose.ORIGIN)
        self._homes = Homes(counted.homes)
        self._put = put

    async def ask(self, group: int, target: int, now_ms: int) -> int:
        """Ask for a group to be moved; the offset of the record, by which its home names the move.

        Raises `NotWritten` where Kafka does not confirm it.
        """
        home = self.groups.home(group)
        place = SourcePartition(self._topic, home, self._homes, self._keys)
        asked = move_record(place, home, MoveRecord(MOVE, group, target), now_ms)
        return await self._put(asked, WRITE_S)
