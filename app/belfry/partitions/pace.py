"""How many events a partition fires in one transaction: as many as are committed in good time.

A transaction pays for every output partition that it touches.  What takes half a second for a few
tenants may take longer than the broker waits where each event has a topic of its own.  Such a step
would be rolled back and begun again for ever.  So a slow commit, or one that failed, halves the
next step, and quick ones let it grow, as TCP does; and where there are very many topics a partition
begins with a small one.  Jacobson, "Congestion Avoidance and Control", 1988.
"""

from __future__ import annotations

from typing import Final

MANY_TOPICS: Final = 1_000
FIRST: Final = 500
LEAST: Final = 50
QUICK_MS: Final = 1_000.0
SLOW_MS: Final = 2_500.0


class Pace:
    """The size of one partition's next step, `most` events at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.at_most = most

    def begin(self, topics: int) -> None:
        """A term of ownership begins, on a cluster with so many output topics."""
        if topics > MANY_TOPICS:
            self.at_most = min(self.at_most, FIRST)

    def committed(self, fired: int, took_ms: float) -> None:
        """A step that fired so many events took so long to commit; a small one tells nothing."""
        if took_ms > SLOW_MS and 2 * fired >= self.at_most:
            self.failed()
        elif took_ms < QUICK_MS and fired >= self.at_most:
            self.at_most = min(2 * self.at_most, self._most)

    def failed(self) -> None:
        """A step was not committed."""
        self.at_most = max(self.at_most // 2, min(LEAST, self._most))
