"""The due scan: the rows of the timeline from the watermark up to now, in bounded chunks.

The scan starts behind the row that left last, so it never walks over deleted rows of fired events.
Where a chunk ends amid events of one due instant, the watermark stays just before that instant and
the position remembers where to go on:

    due          10   10   10   12        watermark   next
    ────────────●────●────●────●────►        9       (10, 0)     nothing has left
    chunk of 2  ╰─────────╯                  9       (10, 2)     two of those due at 10 have left
    the rest              ╰─────────╯       12       (13, 0)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, islice
from typing import Final, NamedTuple

from belfry.store.layout import keys

Rows = list[tuple[bytes, bytes]]
# Rows that are read at once before their bytes are added up.
SLICE: Final = 32


class ScanPosition(NamedTuple):
    """How far the timeline has been emptied: everything due up to `watermark_ms` has left it.

    `next` is the sort key from which on no row has left.  It lies right behind the watermark,
    except where a chunk ended amid events of one due instant.
    """

    watermark_ms: int
    next: keys.SortKey

    @classmethod
    def at(cls, watermark_ms: int) -> ScanPosition:
        """The position of a fresh start at a stored watermark."""
        return cls(watermark_ms, (watermark_ms + 1, 0))

    @property
    def reached_ms(self) -> int:
        """Due instant up to which events have left: one more where a chunk ended amid it."""
        return self.watermark_ms + (self.next != (self.watermark_ms + 1, 0))

    def has_passed(self, sort_key: keys.SortKey) -> bool:
        """Whether the scan would never meet a row with this sort key."""
        return sort_key < self.next


class Chunk(NamedTuple):
    """Rows (timeline key, record) that are due, and the position once they have left."""

    rows: Rows
    position: ScanPosition


class Most(NamedTuple):
    """The bounds of a chunk: rows, and bytes of records, which the last row may exceed."""

    rows: int
    size: int


def take(rows: Iterator[tuple[bytes, bytes]], most: Most) -> tuple[Rows, bool]:
    """The first rows within the bounds, and whether there may be more."""
    found: Rows = []
    room = most.size
    while len(found) < most.rows:
        wanted = min(SLICE, most.rows - len(found))
        some = list(islice(rows, wanted))
        size = sum([len(record) for _, record in some])
        if some and size >= room:
            ends = accumulate(len(record) for _, record in some)
            fit = next(number for number, end in enumerate(ends, 1) if end >= room)
            return found + some[:fit], True
        room -= size
        found += some
        if len(some) < wanted:
            return found, False
    return found, True


def due_chunk(
    timeline: Iterable[tuple[bytes, bytes]], before: ScanPosition, now_ms: int, most: Most
) -> Chunk:
    """The first rows of a timeline that starts at the cursor and ends at `now_ms`."""
    rows, more = take(iter(timeline), most)
    if not more:
        return Chunk(rows, ScanPosition.at(max(now_ms, before.watermark_ms)))
    return Chunk(rows, _behind(rows[-1], before))


def first_of(chunk: Chunk, rows: int, before: ScanPosition) -> Chunk:
    """The first `rows` rows of a chunk that began at `before`, where more of its rows are left."""
    first = chunk.rows[:rows]
    return Chunk(first, _behind(first[-1], before))


def _behind(row: tuple[bytes, bytes], before: ScanPosition) -> ScanPosition:
    due_ms, seq = keys.timeline_sort_key(row[0])
    return ScanPosition(max(due_ms - 1, before.watermark_ms), (due_ms, seq + 1))
