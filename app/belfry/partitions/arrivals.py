"""Which clock a batch is taken in by: the worker's, or its own append times where that one is off.

A request counts from its arrival, so a clock that is not trusted need not hold up taking in.  Only
where the records have no append times of the broker's either, they wait, and `problem` tells.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.arrival import newest_ms
from belfry.firing.clock_guard import ClockGuard
from belfry.wire.batch import SourceBatch

TIMELESS: Final = (
    "requests wait: this worker's clock is not trusted, and the records have no append time of the"
    " broker's. Set message.timestamp.type=LogAppendTime on the topic, and synchronise the clocks"
)


class Arrivals:
    """Judges batches for one partition; `problem` says why the last one has to wait, if it has."""

    def __init__(self, guard: ClockGuard) -> None:
        self._guard = guard
        self.problem = ""

    @property
    def paused_because(self) -> str:
        """Why the clock keeps the partition from firing; empty where it does not."""
        return self._guard.paused_because

    def may_enter(self, batch: SourceBatch) -> bool:
        """Whether there is a clock to take this batch in by."""
        known = self._guard.may_fire or newest_ms(batch) is not None
        self.problem = "" if known else TIMELESS
        return known

    def instant_ms(self, batch: SourceBatch, now_ms: int) -> int:
        """The instant at which a batch that may enter is taken in."""
        return now_ms if self._guard.may_fire else newest_ms(batch) or now_ms
