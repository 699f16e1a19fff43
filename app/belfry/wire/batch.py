"""A batch of source records, with the chain that makes a lost batch visible.

    batch 1   start 5    records 5 6 9     next 10        7 and 8 were compacted away
    batch 2   start 10   records 10 11     next 12
    batch 3   start 15   …                                does not begin at 12: one was lost

The engine compares `start` with the position that it has reached, and raises `GapInSource` where
they differ; the reader then begins again at the stored position.  So a hand-over that drops or
repeats a batch is noticed, whatever dropped it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from belfry.wire.record import SourceRecord, size_of


class SourceBatch(NamedTuple):
    """Records of one source partition: the first offset asked for, and the next one to ask for.

    `start` of a batch is `next_position` of the one before it.  Offsets that carry no record
    (compacted, control or aborted records) lie between the two all the same.  `parts` says how much
    of its reader's room it takes, `appended` whether the records' timestamps are the broker's
    append times, `size` how many bytes of keys, values and headers the records have.
    """

    start: int
    next_position: int
    records: Sequence[SourceRecord]
    parts: int = 1
    appended: bool = True
    size: int = 0

    def joined(self, after: SourceBatch) -> SourceBatch:
        """This batch and the one that follows it, as one."""
        records = [*self.records, *after.records]
        parts, appended = self.parts + after.parts, self.appended and after.appended
        size = self.size + after.size
        return SourceBatch(self.start, after.next_position, records, parts, appended, size)

    def divided(self, count: int) -> tuple[SourceBatch, SourceBatch]:
        """The first so many records, of more, and the rest, which counts for all parts."""
        first, rest = self.records[:count], self.records[count:]
        begins = rest[0][0]
        return (
            self._replace(next_position=begins, records=first, parts=0, size=_size(first)),
            self._replace(start=begins, records=rest, size=_size(rest)),
        )

    def behind(self, position: int) -> SourceBatch | None:
        """What is left of this batch from an offset within it on; None for nothing."""
        if position >= self.next_position:
            return None
        left = [record for record in self.records if record[0] >= position]
        return self._replace(start=position, records=left, size=_size(left))


def _size(records: Sequence[SourceRecord]) -> int:
    """Bytes of keys, values and headers of these records."""
    return sum(map(size_of, records))
