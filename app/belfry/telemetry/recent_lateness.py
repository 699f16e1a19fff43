"""How late events were lately: the lateness histogram, since the newest look that is old enough.

    12:00:00   a look: counts c0, kept          told: since the start
    12:00:05   a look: c1, kept                 told: since 12:00:00
    12:01:05   a look                           told: since 12:00:05, which is a minute ago
    12:30:00   a look after a long pause        told: since 12:01:05: the time is told along

Nothing runs in between, so a worker that nobody looks at pays nothing.  At most
`OLD_S / APART_S` + 2 looks are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

# Seconds that a look is told over, and those between two looks that are kept.
OLD_S: Final = 60.0
APART_S: Final = 5.0


class LatenessCounts(NamedTuple):
    """Events of the last `seconds`, by how late they were at most.

    Each of `counts` goes up to one of `bounds_seconds` and holds those before it; one more is all.
    """

    seconds: float
    bounds_seconds: tuple[float, ...]
    counts: tuple[int, ...]


class RecentLateness:
    """Looks at one histogram; any thread may look."""

    def __init__(
        self,
        bounds_seconds: tuple[float, ...],
        counted: Callable[[], tuple[int, ...]],
        now_s: Callable[[], float],
    ) -> None:
        """`counted` are all counts so far, `now_s` a monotonic clock."""
        self._bounds = bounds_seconds
        self._counted = counted
        self._now_s = now_s
        self._lock = Lock()
        self._kept: deque[tuple[float, tuple[int, ...]]] = deque([(now_s(), counted())])

    def look(self) -> LatenessCounts:
        """The counts of the last minute, or since the last look before that."""
        now_s, counts = self._now_s(), self._counted()
        with self._lock:
            while len(self._kept) > 1 and self._kept[1][0] <= now_s - OLD_S:
                self._kept.popleft()
            since_s, before = self._kept[0]
            if now_s - self._kept[-1][0] >= APART_S:
                self._kept.append((now_s, counts))
        more = tuple(now - then for now, then in zip(counts, before, strict=True))
        return LatenessCounts(now_s - since_s, self._bounds, more)
