"""Rates: how many of something are within so many a second, for each of many names.

For each name one instant is kept, at which what was used would be used up (a leaky bucket turned
into time).  A step that is rolled back gives back what it took.
"""

from __future__ import annotations


class Rate:
    """A rate for each of many names; `tat` is the instant at which a name has used nothing up."""

    def __init__(self, burst_ms: float) -> None:
        self._burst_ms = burst_ms
        self._tat: dict[bytes, float] = {}
        self._before: dict[bytes, float | None] = {}

    def room(self, name: bytes, per_second: float, at_ms: float) -> int:
        """How many are within the rate at this instant."""
        if per_second <= 0:
            return 0
        burst_ms = max(self._burst_ms, 1_000 / per_second)
        used_ms = max(self._tat.get(name, 0.0), at_ms - burst_ms)
        return int((at_ms - used_ms) * per_second / 1_000 + 1e-6)

    def take(self, name: bytes, per_second: float, at_ms: float, count: int) -> None:
        """Use `count` of them up."""
        burst_ms = max(self._burst_ms, 1_000 / per_second)
        self._before.setdefault(name, self._tat.get(name))
        used_ms = max(self._tat.get(name, 0.0), at_ms - burst_ms)
        self._tat[name] = used_ms + count * 1_000 / per_second

    def ready_ms(self, name: bytes, per_second: float) -> float:
        """From when on there is room for one."""
        if per_second <= 0:
            return float("inf")
        return self._tat.get(name, 0.0) + 1_000 / per_second

    def committed(self) -> None:
        """What the step used up stays so."""
        self._before.clear()

    def aborted(self) -> None:
        """The step is done again: give back what it used up."""
        for name, tat in self._before.items():
            if tat is None:
                self._tat.pop(name, None)
            else:
                self._tat[name] = tat
        self._before.clear()
