"""Rates: how many uses are allowed by a rate per second.

**`Rate`** knows many names.  For each it keeps one instant: the one at which all use so far is paid
off (a leaky bucket in terms of time):

    rate 2 a second, burst 1 s        now            room = (now − used up) × rate
    ──────────────┬───────────────────┬──►           here (1 000 ms) × 2 / s = 2
               used up                               each use moves `used up` by 500 ms

**`CatchUpRate`** is one rate for a whole partition: how fast it makes up for late occurrences that
all have to fire.  So a week of missed seconds does not flood the output topics.  It is a value: a
step that uses it makes a new one, so a roll-back only has to restore the old one.

    2 000 a second      at most 200 at once, then 20 every 10 ms
"""

from __future__ import annotations

from collections.abc import MutableMapping
from math import inf
from typing import Final, NamedTuple

PER_SECOND: Final = 2_000
# For how long an unused rate adds up, and how soon a spent one is looked at again.
SAVED_MS: Final = 100
SOON_MS: Final = 10


class Rate:
    """A rate for each of many names.

    `used_up` maps names to these instants (epoch ms); a caller that may have to undo changes gives
    a mapping that can undo them.
    """

    def __init__(
        self, burst_ms: float, used_up: MutableMapping[bytes, float] | None = None
    ) -> None:
        self._burst_ms = burst_ms
        self._used_up: MutableMapping[bytes, float] = {} if used_up is None else used_up

    def room(self, name: bytes, per_second: float, at_ms: float) -> int:
        """How many uses the rate allows at this instant."""
        if per_second <= 0:
            return 0
        return int((at_ms - self._used_ms(name, per_second, at_ms)) * per_second / 1_000 + 1e-6)

    def take(self, name: bytes, per_second: float, at_ms: float, count: int) -> None:
        """Use the rate `count` times."""
        used_ms = self._used_ms(name, per_second, at_ms)
        self._used_up[name] = used_ms + count * 1_000 / per_second

    def ready_ms(self, name: bytes, per_second: float) -> float:
        """The instant from which on the rate allows one use."""
        if per_second <= 0:
            return inf
        return self._used_up.get(name, 0.0) + 1_000 / per_second

    def _used_ms(self, name: bytes, per_second: float, at_ms: float) -> float:
        burst_ms = max(self._burst_ms, 1_000 / per_second)
        return max(self._used_up.get(name, 0.0), at_ms - burst_ms)


class CatchUpRate(NamedTuple):
    """How many late occurrences may fire, as of the instant `filled_ms` (epoch ms)."""

    left: int = 0
    filled_ms: int = 0

    def filled(self, now_ms: int) -> CatchUpRate:
        """The rate at this instant, with the amount that has come since it was filled last."""
        passed_ms = min(max(now_ms - self.filled_ms, 0), SAVED_MS)
        left = min(self.left + passed_ms * PER_SECOND // 1000, PER_SECOND * SAVED_MS // 1000)
        return CatchUpRate(left, now_ms)

    def less(self, count: int) -> CatchUpRate:
        """The rate after so many fires."""
        return self._replace(left=self.left - count)

    @property
    def again_ms(self) -> int:
        """The instant to look again, in epoch ms."""
        return self.filled_ms + SOON_MS
