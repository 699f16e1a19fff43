"""A loop whose clock jumps to the next timer where nothing else is left to do.

    asks, is refused ── sleeps 0.4 s ── asks, is refused ── sleeps … ── 1.5 s are over: gives up
    real clock          waits                               waits
    this clock          0.4 s later at once                 1.1 s later at once

It is for tests of scripted brokers, which answer within the loop: whoever waits there waits for a
timer. Where a socket or a thread answers, a jump would come before it.
"""

from __future__ import annotations

import asyncio
import selectors


class JumpingSelector(selectors.SelectSelector):
    """Waits for nothing, and counts the seconds that it was asked to wait."""

    ahead_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is there already; without a timer it waits, as nothing else would come."""
        if timeout is None:
            return super().select()
        self.ahead_s += max(0.0, timeout)
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its timers come one after another, in their order, and none is waited for."""

    def __init__(self) -> None:
        self._waits = JumpingSelector()
        super().__init__(self._waits)

    def time(self) -> float:
        """Seconds of the real clock, and those that were jumped over."""
        return super().time() + self._waits.ahead_s
