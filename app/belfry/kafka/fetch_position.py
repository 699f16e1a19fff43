"""Where the fetcher stands in one partition: what its user took, what is fetched, what is doubted.

    taken ≤ next       between them lie answers that nobody has taken yet, `ahead_bytes` of them

It is used on the fetcher's event loop alone.
"""

from __future__ import annotations

from belfry.wire.record_batches import end_of


class FetchPosition:
    """How far one partition has been taken and fetched."""

    def __init__(self, offset: int) -> None:
        self.taken = self.next = offset
        # Leader's epoch of the last batch (-1: not known), and the end that was met last (-1:
        # none).
        self.epoch = self.met_end = -1
        self.ahead_bytes = 0
        # Instants of the loop's clock, in seconds: when to ask again, since when no broker knows
        # the partition.
        self.not_before = 0.0
        self.unknown_since: float | None = None
        # Whether it has to be asked first if the log was cut off, and whether nothing is fetched
        # any more.
        self.doubted = self.stopped = False

    def went(self, data: bytes) -> bool:
        """Batches were fetched, or none because there are none yet; whether that leads on."""
        if not data:
            self.met_end = self.next
            return True
        behind, epoch = end_of(data)
        if behind <= self.next:
            return False
        self.next, self.epoch = behind, epoch
        self.ahead_bytes += len(data)
        return True
