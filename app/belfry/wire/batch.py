"""A batch of source records, with the chain that makes a lost batch visible.

    batch 1   start 5    records 5 6 9     next 10        7 and 8 were compacted away
    batch 2   start 10   records 10 11     next 12
    batch 3   start 15   …                                does not begin at 12: a batch was lost

The engine compares `start` with the position that it has reached, and raises `GapInSource` if they
differ; the reader then begins again at the stored position. So a lost or repeated batch is noticed,
whatever the cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from belfry.wire.record import SourceRecord, size_of


class SourceBatch(NamedTuple):
    """Records of one source partition: the first offset asked for, and the next one to ask for.

    `start` of a batch is `next_position` of the one before it. Offsets without a record (compacted,
    control or aborted records) count as well. `parts` is the share of its reader's room that the
    batch takes, `appended` says whether the records' timestamps are the broker's append times, and
    `size` is the number of bytes of their keys, values and headers.
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
        """The first `count` records, and the rest, which is never empty and keeps all `parts`."""
        first, rest = self.records[:count], self.records[count:]
        begins = rest[0][0]
        return (
            self._replace(next_position=begins, records=first, parts=0, size=_size(first)),
            self._replace(start=begins, records=rest, size=_size(rest)),
        )

    def behind(self, position: int) -> SourceBatch | None:
        """The rest of this batch from an offset on; None if nothing is left."""
        if position >= self.next_position:
            return None
        left = [record for record in self.records if record[0] >= position]
        return self._replace(start=position, records=left, size=_size(left))


def _size(records: Sequence[SourceRecord]) -> int:
    """Bytes of keys, values and headers of these records."""
    return sum(map(size_of, records))
