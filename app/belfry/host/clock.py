"""The one place where a worker looks at a clock."""

from __future__ import annotations

import time
from typing import Final

# Readings further apart than this do not belong to one moment.
CLOSE_MS: Final = 1.0
ATTEMPTS: Final = 5


class SystemClock:
    """Wall clock and monotonic clock of this machine, in milliseconds."""

    def wall_ms(self) -> float:
        """Epoch milliseconds."""
        return time.time_ns() / 1e6

    def monotonic_ms(self) -> float:
        """Milliseconds since an unspecified instant; never steps."""
        return time.monotonic_ns() / 1e6

    def both_ms(self) -> tuple[float, float]:
        """Wall and monotonic clock of one moment.

        Another thread may run between the two readings, and that would look like a step. So they
        are read again until they lie close together, a few times at most.
        """
        for _ in range(ATTEMPTS):
            before_ms = self.monotonic_ms()
            wall_ms = self.wall_ms()
            after_ms = self.monotonic_ms()
            if after_ms - before_ms < CLOSE_MS:
                break
        return wall_ms, after_ms
