"""The rate at which a partition makes up for late occurrences that are all to fire.

It keeps a week of missed seconds from filling the output topics at once.  A rate is a value: what a
step takes makes another one, so a roll-back has only to put the old one in its place.
"""

from __future__ import annotations

from typing import Final, NamedTuple

PER_SECOND: Final = 2_000
# How long unused rate is saved up, and how soon a spent one is looked at again.
SAVED_MS: Final = 100
SOON_MS: Final = 10


class CatchUpRate(NamedTuple):
    """How many late occurrences may fire by the instant it was filled (epoch ms)."""

    left: int = 0
    filled_ms: int = 0

    def filled(self, now_ms: int) -> CatchUpRate:
        """It is this instant: with what has come since the last."""
        passed_ms = min(max(now_ms - self.filled_ms, 0), SAVED_MS)
        left = min(self.left + passed_ms * PER_SECOND // 1000, PER_SECOND * SAVED_MS // 1000)
        return CatchUpRate(left, now_ms)

    def less(self, count: int) -> CatchUpRate:
        """So many fire."""
        return self._replace(left=self.left - count)

    @property
    def again_ms(self) -> int:
        """When to look again."""
        return self.filled_ms + SOON_MS
