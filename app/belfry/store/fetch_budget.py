"""How long a fetch of a checkpoint from another worker may take: no longer than reading the log.

How much of the changelog would be read without a checkpoint is known before one is looked for, and
its size before it is fetched.  A fetch that cannot be over before that reading would be is given up
as soon as that shows, and not at the end:

    to read      2 000 000 offsets, at 100 000 a second     20 s
    after 2 s    40 of 200 MB have come                     10 s in all: it goes on
    after 2 s    10 of 200 MB have come                     40 s in all: it is given up now

Nobody waits for a standby, and copying files costs it less than reading rows, so it is patient.
Once it is to stop somebody does wait: the worker's end, or the next owner of the partition.  Then
a fetch ends before its next piece, however little of it is left.

Instants are monotonic milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# So many offsets of a changelog a worker reads at least in a second (docs/checkpoints.md).
READ_PER_S: Final = 100_000
# All together has so long at least; each fetch is judged by its speed after so long.
LEAST_MS: Final = 3_000.0
JUDGED_MS: Final = 1_500.0
# A standby takes so many times as long.
PATIENCE: Final = 10


# Whether a standby is to stop.
Stops = Callable[[], bool]


class NotWanted(Exception):
    """A fetch for a standby that is to stop."""

    def __str__(self) -> str:
        return "the standby is to stop"


class TooSlow(TimeoutError):
    """A fetch that would take longer than reading the changelog."""


class FetchBudget:
    """The time for one partition: to ask, and for fetches one after the other.

    It belongs to one partition; code that calls `done` from several threads holds a lock.
    """

    def __init__(self, unread: int, now_ms: float, stops: Stops | None = None) -> None:
        """So many offsets would be read without a checkpoint; `stops` is a standby's."""
        self._stops = stops
        self._all_ms = max(LEAST_MS, unread / READ_PER_S * 1000) * (PATIENCE if stops else 1)
        self._until_ms = now_ms + self._all_ms
        self.begin(0, now_ms)

    def begin(self, size: int, now_ms: float) -> None:
        """A fetch of so many bytes begins; the bytes used by the one before are gone."""
        self._size = size
        self._began_ms = now_ms
        # Bytes that are there, be they fetched or found.
        self._done = 0

    def done(self, size: int) -> None:
        """So many bytes more are there."""
        self._done += size

    def left_s(self, now_ms: float) -> float:
        """Seconds until it has to be over; raises `TooSlow` where it cannot be, and `NotWanted`."""
        if self._stops is not None and self._stops():
            raise NotWanted
        spent_ms = now_ms - self._began_ms
        # The time that it will have taken at its speed so far.
        expected_ms = spent_ms * self._size / max(1, self._done)
        late = self._began_ms + expected_ms > self._until_ms and spent_ms >= JUDGED_MS
        if late or now_ms >= self._until_ms:
            raise TooSlow(
                f"{self._done} of {self._size} bytes have come in {spent_ms / 1000:.1f} s, and"
                f" {self._all_ms / 1000:.1f} s are worth it: then the changelog is read sooner"
            )
        return (self._until_ms - now_ms) / 1000
