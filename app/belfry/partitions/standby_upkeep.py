"""The upkeep of a standby's store: fold records, write them to disk, let the store be copied.

each turn             fold the held records, if it is time
after a fold          let a checkpoint be made, where one is wanted
every 20 s of folds   begin to put memory on disk; learn how far the log goes, and of signatures

Records that were read are held in memory, in the log's order, and folded every two seconds:

    read    a waits ─ b waits ─ a has fired ─ c waits ─ …
    folded                                            └─ once: a's marker, b, c, and the position

The longer records are held, the more of them replace one another, and the fewer batches are
written.  A crash loses the held records, and they are read again from the position in the store; a
promotion folds them first.  A standby holds no more than it can fold in a moment, because the
worker's own partitions wait meanwhile: RocksDB's binding writes under the interpreter's lock.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from belfry.partitions.opener import PartitionOpener
from belfry.partitions.term import Warm
from belfry.recovery.reading import ReplayProgress

# The most that is held: for how many milliseconds, how many records, and bytes of their values.
EVERY_MS: Final = 2_000
MOST_RECORDS: Final = 5_000
MOST_BYTES: Final = 8_000_000
# Seconds for Kafka to tell the end of the changelog.
LOOK_S: Final = 1.0
# How often the store writes its memory to disk: after a crash, later records are read again.
FLUSH_EVERY_MS: Final = 20_000


class FoldRhythm:
    """Decides when a standby folds; the first records that come are folded at once."""

    def __init__(self) -> None:
        self._folded_ms: float | None = None

    def due(self, held: tuple[int, int], now_ms: float) -> bool:
        """Whether to fold now; `held` is how many records are held, and their bytes.

        `now_ms` is the machine's monotonic time.
        """
        records, size = held
        if not records:
            return False
        since = self._folded_ms
        full = records >= MOST_RECORDS or size >= MOST_BYTES
        if full or since is None or now_ms - since >= EVERY_MS:
            self._folded_ms = now_ms
            return True
        return False


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
        """Do the work that is due; raises the errors of folding.

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
            warm.rows.flush()
            self._learn_the_end()
            self._opener.look_at_signatures(self._partition, warm)
            if not warm.replay.unreadable:
                self._opener.leaves(self._partition, False)

    def _learn_the_end(self) -> None:
        """Learn the end of the log; where Kafka is away, the next read shows it."""
        topic = self._opener.output_topics.changelog
        with suppress(ConnectionError):
            end = self._opener.log_ends.ends(topic, self._partition, LOOK_S)[1]
            self._reading.end = max(self._reading.end, end)
