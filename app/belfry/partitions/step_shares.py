"""What the steps of a worker's partitions hold together: each takes its share, none waits for it.

    take ─► how small the step has to be ─► fires ─► keep ─► commits ─► over
            held: as much as it may fire             held: what it has fired     held: nothing

What is fired and what is taken in are counted apart, so that neither leaves little of the other.
The rule is `halvings_of` (`pacing.py`).  A commit that hangs keeps its share, and steps of other
partitions get smaller meanwhile; the least that a step may do is there for each.  Events that are
held back, since their topic is missing for instance, count like those that fire.
"""

from __future__ import annotations

from typing import Self

from belfry.host import machine
from belfry.partitions.pacing import FULL, halvings_of


class Held:
    """How much the steps of a worker hold, in parts of a full step; used by any thread."""

    def __init__(self) -> None:
        self._lock = machine.Lock()
        self.parts = 0

    def take(self, wanted: int) -> tuple[int, int]:
        """Hold more: how often a full step is halved for that, and how many parts it is."""
        with self._lock:
            times = halvings_of(self.parts, wanted)
            parts = min(wanted, FULL >> times)
            self.parts += parts
        return times, parts

    def give_back(self, parts: int) -> None:
        """Hold so much less."""
        with self._lock:
            self.parts -= parts


class StepShares:
    """What a worker's steps hold together of what they fire, and of what they take in."""

    def __init__(self) -> None:
        self.fired = Held()
        self.taken = Held()


class StepShare:
    """The share of one partition: held within a step, given back behind it, however it ends."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self.parts = 0

    def take(self, wanted: int = FULL) -> int:
        """Take a share, of so many parts at most; how often a full step is halved for it."""
        self.give_back()
        times, self.parts = self._held.take(wanted)
        return times

    def keep(self, parts: int) -> None:
        """Keep so many parts, if that is less than was taken."""
        if parts < self.parts:
            self._held.give_back(self.parts - parts)
            self.parts = parts

    def give_back(self) -> None:
        """Keep nothing."""
        if self.parts:
            self.keep(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()
