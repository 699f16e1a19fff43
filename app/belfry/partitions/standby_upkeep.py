"""What a standby does with its store: fold what was read, put it on disk, let it be copied.

each turn             fold what is held, where it is time for that
after a fold          let a checkpoint be made, where one is wanted
every 20 s of folds   begin to put memory on disk; learn how far the log goes, and of signatures

What was read is held in memory, in the log's order, and folded every two seconds:

    read    a waits ─ b waits ─ a has fired ─ c waits ─ …
    folded                                            └─ once: a's marker, b, c, and the position

The longer records are held, the more of them replace one another, and the fewer batches are
written.  A crash loses what is held, and it is read again from the position that lies in the store;
a promotion folds it first.  So no more is held than is folded in a moment, in which the worker's
own partitions wait: RocksDB's binding writes under the interpreter's lock.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from belfry.partitions.opener import PartitionOpener
from belfry.partitions.term import Warm
from belfry.recovery.reading import ReplayProgress

# Milliseconds that something is held at most, records, and bytes of their values.
EVERY_MS: Final = 2_000
MOST_RECORDS: Final = 5_000
MOST_BYTES: Final = 8_000_000
# Seconds for Kafka to say where the changelog ends.
LOOK_S: Final = 1.0
# How often the store writes its memory to the disk: what is not there is read again after a crash.
FLUSH_EVERY_MS: Final = 20_000


class FoldRhythm:
    """Says when a standby folds; the first records that come are folded at once."""

    def __init__(self) -> None:
        self._folded_ms: float | None = None

    def due(self, held: tuple[int, int], now_ms: float) -> bool:
        """Whether to fold now what is held: so many records, of so many bytes; if so, it is done.

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
            warm.rows.flush()
            self._learn_the_end()
            self._opener.look_at_signatures(self._partition, warm)
            if not warm.replay.unreadable:
                self._opener.leaves(self._partition, False)

    def _learn_the_end(self) -> None:
        """See how far the log goes; where Kafka is away it shows with the next read."""
        topic = self._opener.output_topics.changelog
        with suppress(ConnectionError):
            end = self._opener.log_ends.ends(topic, self._partition, LOOK_S)[1]
            self._reading.end = max(self._reading.end, end)
