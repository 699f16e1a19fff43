"""The due scan: what the timeline holds from the watermark up to now, a bounded chunk at a time.

The scan starts behind what fired last, so it never walks the remains of fired events.  Where a
chunk ends amid events of one due instant, the watermark stays just before that instant and a
cursor remembers the place.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from belfry.store import keys


class Reach(NamedTuple):
    """How far the timeline has been emptied: everything due up to `watermark_ms` has left it."""

    watermark_ms: int
    cursor: bytes

    @classmethod
    def at(cls, watermark_ms: int) -> Reach:
        """The reach of a fresh start at a stored watermark."""
        return cls(watermark_ms, keys.timeline_key(watermark_ms + 1, 0))

    @property
    def newest_ms(self) -> int:
        """Due instant up to which events have left: one more where a chunk ended amid it."""
        return self.watermark_ms + (self != Reach.at(self.watermark_ms))


class Chunk(NamedTuple):
    """Rows (timeline key, record) that are due, and the reach once they have left."""

    rows: list[tuple[bytes, bytes]]
    reach: Reach


def due_chunk(
    timeline: Iterable[tuple[bytes, bytes]], before: Reach, now_ms: int, at_most: int
) -> Chunk:
    """At most `at_most` rows of a timeline that starts at the cursor and ends at `now_ms`."""
    rows = list(islice(timeline, at_most))
    if len(rows) < at_most:
        return Chunk(rows, Reach.at(max(now_ms, before.watermark_ms)))
    last = rows[-1][0]
    last_due_ms = keys.timeline_place(last)[0]
    return Chunk(rows, Reach(max(last_due_ms - 1, before.watermark_ms), last + b"\0"))
