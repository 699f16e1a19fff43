"""A clock that stands still until the test moves it, and never goes back.

The engine counts on instants that do not go back; in a worker the clock guard sees to it. One clock
belongs to one `MemoryScheduler`.
"""

from __future__ import annotations

from belfry.client.options import Instant
from belfry.client.requests import instant_ms


class HeldClock:
    """Time in epoch milliseconds, in the hands of a test; `now` in any form that the client
    takes.
    """

    def __init__(self, now: Instant) -> None:
        self.now_ms = instant_ms(now)

    def move_to(self, now_ms: int) -> None:
        """Let it be this instant, epoch ms; ValueError for one that is over."""
        if now_ms < self.now_ms:
            raise ValueError(
                f"The clock stands at {self.now_ms} and cannot go back to {now_ms}: begin a new"
                " scheduler instead."
            )
        self.now_ms = now_ms
