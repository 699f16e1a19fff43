"""What a standby does with its store: fold what was read, put it on disk, let it be copied.

each turn             fold what is held, where it is time for that (`fold_rhythm.py`)
after a fold          let a checkpoint be made, where one is wanted
every 20 s of folds   begin to put memory on disk; learn how far the log goes, and of signatures
"""

from __future__ import annotations

from typing import Final

from belfry.partitions.fold_rhythm import FoldRhythm
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.term import Warm
from belfry.recovery.reading import ReplayProgress

# How often the store writes its memory to the disk: what is not there is read again after a crash.
FLUSH_EVERY_MS: Final = 20_000


class StandbyUpkeep:
    """Keeps one standby's store; one is made for each time that a store is opened."""

    def __init__(self, partition: int, opener: PartitionOpener, reading: ReplayProgress) -> None:
        self._partition = partition
        self._opener = opener
        self._clock = opener.clock
        self._reading = reading
        self._rhythm = FoldRhythm()
        self._flushed_ms = opener.clock.monotonic_ms()
        self._checkpoint = opener.checkpoint(partition, owner=False)

    def turn(self, warm: Warm, *, caught_up: bool) -> None:
        """Do what it is time for; raises what folding raises.

        `caught_up` says whether checkpoints may be made: those of a store that is far behind save
        little.
        """
        now_ms = self._clock.monotonic_ms()
        if not self._rhythm.due(warm.replay.held, now_ms):
            return
        warm.replay.fold(int(self._clock.wall_ms()))
        self._opener.failpoints.reach("B1")
        if self._checkpoint is not None and caught_up:
            self._checkpoint(warm.rows, now_ms - self._flushed_ms)
        if now_ms - self._flushed_ms >= FLUSH_EVERY_MS:
            self._flushed_ms = now_ms
            self._reading.end = max(self._reading.end, warm.changelog.ends()[1])
            warm.rows.flush()
            self._opener.look_at_signatures(self._partition, warm)
            if not warm.replay.unreadable:
                self._opener.leaves(self._partition, False)
