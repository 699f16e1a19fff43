"""The partitions that have been read up to their ends of when they were assigned.

    assigned ──► its end is known ──► read up to it ──► passed
        └─────── the reader says that nothing follows ────┘

An earlier answer would have a hole without showing it.  A partition may end with offsets that hold
no record: marks of transactions, or gaps that compaction and retention have left.  No position ever
reaches such an end; there the reader says that nothing follows.

    12:00:00   partition 3 is assigned; the store has read it up to 900
    12:00:01   its end then was 1 000
    12:00:04   990 is read, and the reader says that nothing follows: 991 to 999 are marks
               passed: answers about partition 3 are whole from now on
"""

from __future__ import annotations


class Backlog:
    """Written by one thread; `passed` is read by any."""

    def __init__(self) -> None:
        self.passed: frozenset[int] = frozenset()
        self._ends: dict[int, int | None] = {}

    def assign(self, wanted: frozenset[int]) -> None:
        """Read these partitions from now on; partitions that were read before go on."""
        self.passed &= wanted
        self._ends = {each: self._ends.get(each) for each in wanted - self.passed}

    def unknown(self) -> list[int]:
        """Partitions whose end has to be asked for."""
        return sorted(each for each, end in self._ends.items() if end is None)

    def ends_at(self, partition: int, end: int, position: int) -> None:
        """Note the end of a partition after it was assigned; it is read up to `position`.

        A position behind the end belongs to an earlier topic of this name, and does not count.
        """
        if partition in self._ends and position <= end:
            self._ends[partition] = end
            self.reached(partition, position)

    def reached(self, partition: int, position: int) -> None:
        """Note that all records before `position` are in the store."""
        end = self._ends.get(partition)
        if end is not None and position >= end:
            self.ended(partition)

    def ended(self, partition: int) -> None:
        """Note that no record follows in a partition, and all are in the store."""
        if partition in self._ends:
            del self._ends[partition]
            self.passed |= {partition}
