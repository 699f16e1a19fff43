"""Whose turn it is to hand a batch over, and whether there is room for that.

Batches that were handed over have room in common for four full ones of requests with 400 bytes
(`ROOM`) where more than four partitions have some: one is worked on at a time, while others commit.
So 64 partitions that all have much to take in need no more memory for it than four.  A trickle
waits for no room.  What an owner has not taken in for half a second counts no more, for it may
hang.

Who has had no turn for longest has the next one, also where it has read nothing yet of what was
fetched: while there is no room, answers are read only of those who come before the first who waits.

    1, 2 and 3 have had a turn, and have read more; an answer for 4 has come     order 4 1 2 3
    there is no room: 1 waits, and 4 comes before it                             4 is read
    2 has committed                                                              4 has a turn
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Final

from belfry.host import machine
from belfry.kafka.fetch_position import Where
from belfry.partitions.source import SourceReader

# Bytes of memory for batches of all readers; one more batch than fits is handed over.
ROOM: Final = 28 * 1024 * 1024
# Up to so many that have something do not share: each reads ahead while it commits.
FEW: Final = 4


class ReaderTurns:
    """The order of all readers, and their room; of the readers' thread, but for `crowded`."""

    def __init__(self) -> None:
        self._followed: dict[Where, SourceReader] = {}
        # Who had a turn last comes last.
        self._order: list[Where] = []
        # The first who waits for room, and all who come after it.
        self.behind: set[Where] = set()
        # Whether there is no room; owners look at it when they have taken something in.
        self.crowded = False

    def follow(self, entered: dict[Where, SourceReader]) -> None:
        """These have turns from now on; the dictionary is never changed."""
        known, self._followed = set(self._order), entered
        self._order = [w for w in self._order if w in entered]
        self._order += [w for w in entered if w not in known]

    def any_of(self, some: Iterable[Where]) -> bool:
        """Whether some of these may have a turn at once."""
        readers = (self._followed[where] for where in some)
        return any(each.may_turn() and (each.trickles or not self.crowded) for each in readers)

    def give(self, turn: Callable[[SourceReader], object]) -> set[Where]:
        """Let each reader hand a batch over; those for which nothing is to be taken now."""
        busy: set[Where] = set()
        had: list[Where] = []
        wait: list[Where] = []
        now_s, room = machine.monotonic(), self._room()
        for where in self._order:
            reader = self._followed[where]
            if reader.may_turn():
                if room > 0 or reader.trickles:
                    held = reader.held_bytes(now_s)
                    turn(reader)
                    # Not all are summed up anew: there may be a thousand of them.
                    room -= reader.held_bytes(now_s) - held
                    had.append(where)
                else:
                    wait.append(where)
            if reader.has_read or not reader.has_room():
                busy.add(where)
        if room <= 0:
            # Said before it is looked at again: who takes something in meanwhile wakes the thread.
            self.crowded = True
            room = self._room()
        self.crowded = room <= 0
        self._goes_on(had, wait)
        return busy

    def _goes_on(self, had: list[Where], wait: list[Where]) -> None:
        if had:
            gone = set(had)
            self._order = [w for w in self._order if w not in gone] + had
        first = self._order.index(wait[0]) if wait and self.crowded else len(self._order)
        self.behind = set(self._order[first:])

    def _room(self) -> float:
        """How many bytes of memory are left for batches of all readers; 0 or less for none.

        Without end for few readers, which have no more than the rooms of their own.
        """
        now_s, room, busy = machine.monotonic(), ROOM, 0
        for each in self._followed.values():
            held = each.held_bytes(now_s)
            room -= held
            busy += held > 0 or each.has_read
        return room if busy > FEW else inf
