"""Where the fetcher stands in one partition: what its user took, what is fetched, what is doubted.

taken ≤ next       between them lie answers that nobody has taken yet, `ahead_bytes` of them
"""

from __future__ import annotations

from belfry.wire.record_batches import end_of


class FetchPosition:
    """How far one partition has been taken and fetched."""

    def __init__(self, offset: int) -> None:
        self.taken = self.next = offset
        self.epoch = self.met_end = -1
        self.ahead_bytes = 0
        self.not_before = 0.0
        self.unknown_since: float | None = None
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
