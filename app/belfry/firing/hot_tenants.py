"""Hot tenants: those with so many events in one minute that others would wait behind them.

The timeline is in due order, so ten events of one tenant would wait for a million of another that
are due just before:

    timeline   h h h h h h h … a million … h h │ a b      a and b are late: h comes first
    isolated   a b                               the timeline is short again
    h's queue  h h h h h h h … a million … h h            fires in its turn, a share of each step

A tenant that is hot is noticed while its requests come in, and is isolated: its further events wait
in a queue of its own (`engine/waiting.py`).  A look at every request would slow all of them down; a
sample is enough, because a hot tenant has many requests.  Every request whose source offset is a
multiple of 61 is looked at, and stands for 61 requests:

    offset     0 ··· 61 ··· 122 ··· 183 ···     tenant h, due at 9:00
    count      61    122    183     244  …      from 5 000 on (82 samples) h is hot

The sample goes by offsets, not by places in a batch, so it does not matter how requests were cut
into batches.  Counts are kept by tenant and minute, only in memory: a new owner begins to count
anew, and a hot tenant that it misses costs time, never an event.  Rows that were in the timeline
before their tenant was noticed stay there.  Minutes that have passed are forgotten at each sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

HOT_FROM: Final = 5_000
# A prime, so that the sample does not miss a tenant where a few tenants write in turn.
EVERY: Final = 61
MINUTE_MS: Final = 60_000
MOST_REMEMBERED: Final = 50_000


class HotTenants:
    """Counts a sample of requests on the fast path, by tenant and minute."""

    def __init__(self) -> None:
        self._counts: dict[tuple[bytes, int], int] = {}
        # Requests before this offset are counted: a step that is done again does not count them
        # twice.
        self._counted_to = 0

    def found_in(self, requests: Sequence[Any], start: int) -> set[bytes]:
        """Tenants that are hot by now; `requests` begin at source offset `start`."""
        found: set[bytes] = set()
        first = -start % EVERY
        for number, request in enumerate(requests[first::EVERY]):
            if type(request) is not tuple:
                continue
            minute = (request[0], request[2] // MINUTE_MS)
            new = start + first + EVERY * number >= self._counted_to
            count = self._counts[minute] = self._counts.get(minute, 0) + EVERY * new
            if count >= HOT_FROM:
                found.add(request[0])
        self._counted_to = max(self._counted_to, start + len(requests))
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
