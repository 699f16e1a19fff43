"""Which partitions of a mirror wait for transactions of others, and whether that ends by itself.

    0 waits for 7 of 1      1 waits for 4 of 2      2 waits for 9 of 0      a circle

It counts as one when each of them has waited for a minute, as lanes saw it. A time without a look,
as when the process was stopped, does not count: the awaited records may lie there unread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from belfry.wire.record import SentBy

CIRCLE_MS: Final = 60_000
# A look counts for so much of it at most.
LOOK_MS: Final = 1_000


class Wait(NamedTuple):
    """For which transaction one of a partition waits, and since when, as `Waits` counts."""

    by: SentBy
    number: int
    since_ms: int


class Waits:
    """The waits of partitions for one another; for one thread."""

    def __init__(self, has: Callable[[SentBy], bool]) -> None:
        """`has` tells whether a transaction was carried by now."""
        self._has = has
        self._waits: dict[int, Wait] = {}
        self._now_ms = 0
        # For how long lanes were looked at, in all.
        self._looked_ms = 0

    def passes(self, now_ms: int) -> None:
        """It is `now_ms` by now, and lanes are looked at."""
        self._looked_ms += min(max(0, now_ms - self._now_ms), LOOK_MS)
        self._now_ms = now_ms

    def over(self, partition: int) -> Wait | None:
        """A partition waits for no other, as far as is known; returns its earlier wait."""
        return self._waits.pop(partition, None)

    def begin(self, partition: int, number: int, by: SentBy, waited: Wait | None) -> None:
        """Transaction `number` of a partition waits for this, and at the last look it `waited`."""
        same = waited is not None and waited.number == number
        since_ms = waited.since_ms if waited and same else self._looked_ms
        self._waits[partition] = Wait(by, number, since_ms)

    def in_circle(self, partition: int) -> bool:
        """Whether a partition has waited for itself, by way of others, for long enough."""
        at, left = partition, len(self._waits)
        while left and (wait := self._waits.get(at)) is not None and not self._has(wait.by):
            if self._looked_ms - wait.since_ms < CIRCLE_MS:
                return False
            at, left = wait.by.partition, left - 1
            if at == partition:
                return True
        return False
