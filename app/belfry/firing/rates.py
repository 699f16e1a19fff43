"""Rates: how many of something are within so many a second.

**`Rate`** knows many names.  For each it keeps one instant, at which what was used would be used up
(a leaky bucket turned into time):

    rate 2 a second, burst 1 s        now            room = (now − used up) × rate
    ──────────────┬───────────────────┬──►           here (1 000 ms) × 2 / s = 2
               used up                               each that is taken moves `used up` by 500 ms

**`CatchUpRate`** is one rate for a whole partition: how fast it makes up for late occurrences that
are all to fire.  It keeps a week of missed seconds from filling the output topics at once.  It is a
value: what a step takes makes another one, so a roll-back only has to put the old one in its place.

    2 000 a second      at most 200 at once, then 20 every 10 ms
"""

from __future__ import annotations

from collections.abc import MutableMapping
from math import inf
from typing import Final, NamedTuple

PER_SECOND: Final = 2_000
# How long unused rate is saved up, and how soon a spent one is looked at again.
SAVED_MS: Final = 100
SOON_MS: Final = 10


class Rate:
    """A rate for each of many names.

    `used_up` holds the instants (epoch ms); a caller whose changes may have to be taken back gives
    a mapping that can do so.
    """

    def __init__(
        self, burst_ms: float, used_up: MutableMapping[bytes, float] | None = None
    ) -> None:
        self._burst_ms = burst_ms
        self._used_up: MutableMapping[bytes, float] = {} if used_up is None else used_up

    def room(self, name: bytes, per_second: float, at_ms: float) -> int:
        """How many are within the rate at this instant."""
        if per_second <= 0:
            return 0
        return int((at_ms - self._used_ms(name, per_second, at_ms)) * per_second / 1_000 + 1e-6)

    def take(self, name: bytes, per_second: float, at_ms: float, count: int) -> None:
        """Use `count` of them up."""
        used_ms = self._used_ms(name, per_second, at_ms)
        self._used_up[name] = used_ms + count * 1_000 / per_second

    def ready_ms(self, name: bytes, per_second: float) -> float:
        """From when on there is room for one."""
        if per_second <= 0:
            return inf
        return self._used_up.get(name, 0.0) + 1_000 / per_second

    def _used_ms(self, name: bytes, per_second: float, at_ms: float) -> float:
        burst_ms = max(self._burst_ms, 1_000 / per_second)
        return max(self._used_up.get(name, 0.0), at_ms - burst_ms)


class CatchUpRate(NamedTuple):
    """How many late occurrences may fire by the instant it was filled (epoch ms)."""

    left: int = 0
    filled_ms: int = 0

    def filled(self, now_ms: int) -> CatchUpRate:
        """The rate at this instant: with the share that has come since it was filled last."""
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
