"""Rates: how many of something are within so many a second, for each of many names.

For each name one instant is kept, at which what was used would be used up (a leaky bucket turned
into time):

    rate 2 a second, burst 1 s        now            room = (now − used up) × rate
    ──────────────┬───────────────────┬──►           here (1 000 ms) × 2 / s = 2
               used up                               each that is taken moves `used up` by 500 ms
"""

from __future__ import annotations

from collections.abc import MutableMapping


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
            return float("inf")
        return self._used_up.get(name, 0.0) + 1_000 / per_second

    def _used_ms(self, name: bytes, per_second: float, at_ms: float) -> float:
        burst_ms = max(self._burst_ms, 1_000 / per_second)
        return max(self._used_up.get(name, 0.0), at_ms - burst_ms)
