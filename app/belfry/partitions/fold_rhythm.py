"""How long a standby holds what it has read, before it folds it into its store.

    read    a waits ─ b waits ─ a has fired ─ c waits ─ …     held in memory, in the log's order
    folded                                            └─ once: a's marker, b, c, and the position

The longer records are held, the more of them replace one another, and the fewer batches are
written.  What is held is in memory alone.  A crash loses it, and it is read again from the position
that lies in the store; a promotion folds it first.  So no more is held than is folded in a moment,
in which the worker's own partitions wait: RocksDB's binding writes under the interpreter's lock.
"""

from __future__ import annotations

from typing import Final

# Milliseconds that something is held at most, records, and bytes of their values.
EVERY_MS: Final = 2_000
MOST_RECORDS: Final = 5_000
MOST_BYTES: Final = 8_000_000


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
