"""How long a partition lingers after a step of few events and requests, while HTTP is asked.

Small steps follow one another at once otherwise: that is quickest where cores are idle.  Each
transaction costs worker and broker what somebody waits for, and what comes meanwhile goes into the
next one together.  An owner that is behind does not linger: its step leaves something which was due
at the step before already, or took in all that it may.  Where a backlog may fire, nobody asks here.
"""

from __future__ import annotations

from typing import Final

FEW: Final = 200
LINGER_MS: Final = 20.0


class Linger:
    """The pauses of one partition, which takes in at most `most` requests at once."""

    def __init__(self, most: int) -> None:
        self._few = min(FEW, most)
        self._until_ms = 0.0
        self._now_ms = self._before_ms = 0

    def fires(self, now_ms: int) -> None:
        """A step is to fire what is due by now."""
        self._before_ms, self._now_ms = self._now_ms, now_ms

    def after(self, events: int, left_ms: int | None, monotonic_ms: float) -> None:
        """A step of so many events and requests is done; what it left is due from `left_ms` on."""
        behind = left_ms is not None and left_ms <= self._before_ms
        if events < self._few and not behind:
            self._until_ms = monotonic_ms + LINGER_MS

    def left_s(self, monotonic_ms: float) -> float:
        """How much of the pause is left."""
        return max(0.0, self._until_ms - monotonic_ms) / 1000
