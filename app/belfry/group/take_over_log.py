"""The last take-overs of this worker, to be shown: from which worker, how long, and why.

    12:00:00.050   partition 3 is taken over         the map is still from before the rebalance
    12:00:00.300   the next map comes                w1 is not in it: from w1, owner_gone

So an entry waits for the next map if it needs one. Entries are only kept in memory, a bounded
number of them: older ones, and those of a worker that has ended, stand in that worker's log
("partition taken over").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from belfry.balance.assignment_map import AssignmentMap
from belfry.balance.take_overs import TakenOver, TakeOverEntry, entry_of, told_by
from belfry.host import machine

MOST: Final = 100


class TakeOverLog:
    """Take-overs by one worker, the latest last; every method may be called from any thread."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._lock = machine.Lock()
        self._after = self._before = AssignmentMap()
        self._entries: list[TakeOverEntry] = []
        # Take-overs that wait for the map from after the rebalance.
        self._open: list[TakenOver] = []

    def note(self, taken: TakenOver) -> None:
        """Note that a partition was taken over."""
        with self._lock:
            self._entries.append(entry_of(taken, self._worker, self._after, self._before))
            del self._entries[:-MOST]
            if not told_by(taken, self._worker, self._after):
                self._open.append(taken)
                del self._open[:-MOST]

    def met(self, told: AssignmentMap) -> None:
        """Take in the group's map; an equal map changes nothing."""
        with self._lock:
            if told == self._after:
                return
            self._before, self._after = self._after, told
            waited, self._open = self._open, []
            for at, entry in enumerate(self._entries):
                if entry.taken in waited:
                    self._entries[at] = entry_of(entry.taken, self._worker, told, self._before)

    def latest(self) -> Sequence[TakeOverEntry]:
        """The last take-overs, the latest last."""
        with self._lock:
            return tuple(self._entries)
