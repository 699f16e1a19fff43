"""What was read ahead has to arrive at its owner: a lost batch shows by the next one, if one comes.

Where no further request comes, or the reader waits for room, nothing else would tell.
"""

from __future__ import annotations

from typing import Final

from belfry.kafka.outcome import Unknown

LONGEST_HAND_OVER_MS: Final = 10_000


class MissingBatch:
    """Watches one owner's requests arrive; instants are monotonic milliseconds."""

    def __init__(self) -> None:
        self._arrived_ms = 0.0

    def arrived(self, now_ms: float) -> None:
        """A batch has come, or none can be missing yet."""
        self._arrived_ms = now_ms

    def look(self, read_ahead: int, position: int, now_ms: float) -> None:
        """No batch has come: raises `Unknown` where one that was read is overdue."""
        if read_ahead <= position:
            self._arrived_ms = now_ms
        elif now_ms - self._arrived_ms > LONGEST_HAND_OVER_MS:
            raise Unknown(
                f"requests up to offset {read_ahead} were read, but after"
                f" {LONGEST_HAND_OVER_MS} ms those from offset {position} on have not arrived: a"
                " batch is missing"
            )
