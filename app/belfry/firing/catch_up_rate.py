"""The rate at which a partition makes up for late occurrences that are all to fire.

It keeps a week of missed seconds from filling the output topics at once.
"""

from __future__ import annotations

from typing import Final

PER_SECOND: Final = 2_000
# How long unused rate is saved up, and how soon a spent one is looked at again.
SAVED_MS: Final = 100
SOON_MS: Final = 10


class CatchUpRate:
    """How many late occurrences may fire now: `left`; instants in epoch ms."""

    def __init__(self) -> None:
        self.left = 0
        self._filled_ms = 0
        self._kept = (0, 0)

    def fill(self, now_ms: int) -> None:
        """It is this instant: add what has come since the last."""
        passed_ms = min(max(now_ms - self._filled_ms, 0), SAVED_MS)
        self.left = min(self.left + passed_ms * PER_SECOND // 1000, PER_SECOND * SAVED_MS // 1000)
        self._filled_ms = now_ms

    def take(self, count: int) -> None:
        """So many fire."""
        self.left -= count

    def committed(self) -> None:
        """What the step took stays taken."""
        self._kept = self.left, self._filled_ms

    def aborted(self) -> None:
        """All is as it was before the step."""
        self.left, self._filled_ms = self._kept

    @property
    def again_ms(self) -> int:
        """When to look again."""
        return self._filled_ms + SOON_MS
