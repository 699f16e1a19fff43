"""Leaders that have just moved, by what brokers say that lead no more (KIP-951).

A broker that refuses a batch says who leads the partition now, and in which epoch of leadership.
That is newer than what is asked of a broker by chance: while an orderly stop moves leaders, some
brokers know of it and others do not yet, and their answers have no epoch.

    12:00:00.000  Produce to broker 2      refused: broker 3 leads, epoch 8
    12:00:00.001  Produce to broker 3      refused: broker 2 leads, epoch 7     it does not know yet
    12:00:00.002  Produce to broker 3      appended

Without the epoch the second refusal, or an older answer about who leads, would send the batch back
to broker 2, and so on until all brokers know.

What was told counts for four seconds, half of the time that a step has, and a move takes less even
on a busy machine.  After that what is asked counts again, so nothing told can be in the way for
longer: a topic that is made anew begins at epoch 0.
"""

from __future__ import annotations

from typing import Final

Where = tuple[str, int]
COUNTS_S: Final = 4.0


class MovedLeaders:
    """Who leads partitions whose leaders have just moved; instants are seconds of one clock."""

    def __init__(self) -> None:
        """Nothing has moved."""
        self._told: dict[Where, tuple[int, int, float]] = {}

    def __bool__(self) -> bool:
        """Whether anything was told that may still count."""
        return bool(self._told)

    def tell(self, where: Where, leader: int, epoch: int, now_s: float) -> bool:
        """Note who leads a partition since an epoch; whether that is newer than what was told."""
        present = self._told.get(where)
        if present is not None and now_s < present[2] and epoch <= present[1]:
            return False
        self._told[where] = leader, epoch, now_s + COUNTS_S
        return True

    def leader_of(self, where: Where, now_s: float) -> int | None:
        """Who leads a partition by what was told; None where nothing counts."""
        present = self._told.get(where)
        if present is None:
            return None
        if now_s < present[2]:
            return present[0]
        del self._told[where]
        return None

    def doubt(self, where: Where) -> None:
        """Forget what was told of a partition."""
        self._told.pop(where, None)
