"""Leaders that have just moved, as named by their former leaders (KIP-951).

A broker that refuses a batch names the partition's new leader and its epoch of leadership. That is
newer than the metadata of any other broker: while an orderly stop moves leaders, some brokers know
of it and others do not yet, and their answers have no epoch.

    12:00:00.000  Produce to broker 2      refused: broker 3 leads, epoch 8
    12:00:00.001  Produce to broker 3      refused: broker 2 leads, epoch 7     it does not know yet
    12:00:00.002  Produce to broker 3      appended

Without the epoch the second refusal, or older metadata, would send the batch back to broker 2, and
so on until all brokers know.

A named leader counts for four seconds, half of the time that a step has, and a move takes less even
on a busy machine. After that the metadata count again, so an old name cannot block a partition for
longer: a topic that is made anew begins at epoch 0.
"""

from __future__ import annotations

from typing import Final

Where = tuple[str, int]
COUNTS_S: Final = 4.0


class MovedLeaders:
    """Leaders of partitions whose leaders have just moved; instants are seconds of one clock."""

    def __init__(self) -> None:
        """At first no leader has moved.

        `told` has the leader and the epoch, and until when they count. It is nearly always empty,
        so a caller that asks for many partitions may look at that first.
        """
        self.told: dict[Where, tuple[int, int, float]] = {}

    def tell(self, where: Where, leader: int, epoch: int, now_s: float) -> bool:
        """Note a partition's leader since an epoch; returns whether that is newer than before."""
        present = self.told.get(where)
        if present is not None and now_s < present[2] and epoch <= present[1]:
            return False
        self.told[where] = leader, epoch, now_s + COUNTS_S
        return True

    def leader_of(self, where: Where, now_s: float) -> int | None:
        """The leader of a partition that was named and still counts; else None."""
        present = self.told.get(where)
        if present is None:
            return None
        if now_s < present[2]:
            return present[0]
        del self.told[where]
        return None

    def doubt(self, where: Where, node: int) -> None:
        """Forget that this broker leads a partition; another named leader still counts."""
        present = self.told.get(where)
        if present is not None and present[0] == node:
            del self.told[where]

    def outdate(self, where: Where, epoch: int) -> None:
        """Forget named leaders of a partition's epochs before this one."""
        present = self.told.get(where)
        if present is not None and present[1] < epoch:
            del self.told[where]
