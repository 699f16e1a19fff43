"""Crowds: tenants that have so many events in one minute that others would wait behind them.

The timeline is in due order, so ten events of one tenant would wait for a million of another that
are due just before.  A tenant that crowds a minute is noticed while its requests come in, and its
further events wait in a line of its own.

Looking at every request would cost all of them; a sample is enough, for a crowd is large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

CROWD: Final = 5_000
# A prime, so that no pattern of a few tenants in turn hides from the sample.
EVERY: Final = 61
MINUTE_MS: Final = 60_000
MOST_REMEMBERED: Final = 50_000


class Crowds:
    """Counts a sample of plain requests, by tenant and minute."""

    def __init__(self) -> None:
        self._counts: dict[tuple[bytes, int], int] = {}

    def crowding(self, requests: Sequence[Any], start: int) -> set[bytes]:
        """Tenants that crowd a minute by now; `requests` begin at source offset `start`."""
        found: set[bytes] = set()
        for request in requests[-start % EVERY :: EVERY]:
            if type(request) is not tuple:
                continue
            minute = (request[0], request[2] // MINUTE_MS)
            count = self._counts[minute] = self._counts.get(minute, 0) + EVERY
            if count >= CROWD:
                found.add(request[0])
        if len(self._counts) > MOST_REMEMBERED:
            # Most of them are minutes with a single event in the sample.
            self._counts = {key: n for key, n in self._counts.items() if n > EVERY}
        if len(self._counts) > MOST_REMEMBERED:
            self._counts.clear()
        return found

    def forget(self, now_ms: int) -> None:
        """Forget the minutes that have passed."""
        current = now_ms // MINUTE_MS
        self._counts = {key: n for key, n in self._counts.items() if key[1] >= current}
