"""Records out of batches as they are stored, a portion at a time, whatever their unpacked size.

    batch ─► unpacks to 8 MB at most? ─ yes  ─► aiokafka's parser (C)      0.3 µs a record
                      │ no, or that parser cannot read it
                      └─────────────────────► a stream (`wire/record_stream.py`)   20 µs a record

A batch of a megabyte may unpack to a gigabyte, so it is unpacked in slices, and only one portion of
it is kept. If a part of it cannot be read at all, that part becomes one record that is to be
refused: the records behind the batch are not lost by that, and a producer can never stop a
partition.

Only requests are read so, since each of them can be refused. Records of workers must never be
skipped.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import Final

import structlog

from belfry.kafka.fetch_position import Fetched, Where
from belfry.kafka.opened_batches import SLICE_BYTES, QuickBatch, StreamedBatch
from belfry.kafka.unpacking import NONE, chunks_of
from belfry.telemetry.limited import LimitedLogger
from belfry.wire.record import SourceRecord
from belfry.wire.record_batches import MAGIC, CommittedBatches, RecordBatch, batches_in
from belfry.wire.record_stream import Unreadable
from belfry.wire.unread import UNREADABLE_BATCH, unread

# A batch that unpacks to more is read as a stream.
WHOLE_BYTES: Final = 8 * 1024 * 1024

log = structlog.get_logger(__name__)


class BatchReader:
    """Reads the records of one partition out of its fetched batches.

    `position` is the offset of the next record for readers, `fetched` the offset behind all added
    batches. One thread uses it, and it holds one unpacked batch at a time.
    """

    def __init__(self, where: Where, position: int, said: LimitedLogger | None = None) -> None:
        self._where = where
        self._log = said or LimitedLogger(log)
        self._batches: deque[tuple[RecordBatch, bool]] = deque()
        self._opened: QuickBatch | StreamedBatch | None = None
        self.position = self.fetched = position
        # Whether the records of the last portion have the broker's append times.
        self.appended = True

    @property
    def empty(self) -> bool:
        """Whether all fetched batches have been read."""
        return self._opened is None and not self._batches

    def add(self, answer: Fetched) -> None:
        """Take in the next answer; `take` skips batches of aborted transactions."""
        self.fetched = max(self.fetched, answer.behind)
        committed = CommittedBatches(answer.aborted)
        for batch in batches_in(answer.data):
            self._batches.append((batch, committed.holds(batch)))

    def take(self, at_most: int) -> list[SourceRecord]:
        """The next records, at most `at_most`, and some megabytes; no more than one large batch.

        The list is empty if all was read, or if many batches were skipped: `empty` tells which.
        Records come in the order of their offsets. A batch that cannot be read comes as one record
        that a worker refuses.
        """
        found: list[SourceRecord] = []
        size, self.appended = 0, True
        while len(found) < at_most and size < SLICE_BYTES:
            if self._opened is None and not self._open_next():
                break
            assert self._opened is not None
            opened = self._opened
            some, some_bytes = self._some(opened, at_most - len(found))
            found += some
            size += some_bytes
            if isinstance(opened, StreamedBatch) or (not some and self._opened is opened):
                # The next call goes on: to unpack many megabytes takes time, and the other
                # partitions are to be read in between.
                break
        return found

    def _some(
        self, opened: QuickBatch | StreamedBatch, at_most: int
    ) -> tuple[list[SourceRecord], int]:
        """The next records of the batch that is open, and their size; closes it at its end."""
        batch, position = opened.batch, self.position
        try:
            some, size, ended = opened.take(at_most, position)
        except Unreadable as error:
            some, size, ended = [], 0, True
            # The stream can read batches for which the quick parser fails; it begins at the same
            # position.
            if isinstance(opened, QuickBatch):
                self._opened = StreamedBatch(batch)
                return some, size
            some = self._refusal(batch, str(error))
        if some:
            self.position = some[-1][0] + 1
            self.appended = self.appended and batch.appended
        if ended:
            self.position = max(self.position, batch.next_offset)
            self._opened = None
        return some, size

    def _open_next(self) -> bool:
        """Open the next batch that has records for readers; False if there is none."""
        while self._batches:
            batch, counts = self._batches.popleft()
            if batch.next_offset <= self.position:
                continue
            if counts:
                self._opened = self._open(batch)
                return True
            self.position = batch.next_offset
        return False

    def _open(self, batch: RecordBatch) -> QuickBatch | StreamedBatch:
        """The reader of a batch: the quick parser if it unpacks to few bytes, else a stream."""
        if batch.magic != MAGIC:
            return StreamedBatch(batch)
        if batch.codec == NONE:
            return QuickBatch(batch, batch.data)
        chunks = chunks_of(batch.codec, batch.packed)
        kept: list[bytes | memoryview] = []
        size = 0
        try:
            for chunk in chunks:
                kept.append(chunk)
                size += len(chunk)
                if size > WHOLE_BYTES:
                    self._tell(batch)
                    return StreamedBatch(batch, chain(kept, chunks))
        except Unreadable:
            # Records before the damage are read first; then the damage is met again.
            return StreamedBatch(batch)
        return QuickBatch(batch, batch.unpacked(b"".join(kept)))

    def _tell(self, batch: RecordBatch) -> None:
        """Log that a large batch is read in slices; not for each of many."""
        topic, partition = self._where
        self._log.info(
            "large", "a batch unpacks to some megabytes; it is read in slices",
            topic=topic, of=partition, first_offset=batch.base_offset,
            packed_bytes=len(batch.data), records=batch.record_count,
        )  # fmt: skip

    def _refusal(self, batch: RecordBatch, cause: str) -> list[SourceRecord]:
        """The record that stands for all unreadable records of a batch."""
        topic, partition = self._where
        first, last = max(self.position, batch.base_offset), batch.next_offset - 1
        if first > last:
            return []
        self._log.error(
            "unreadable", "a batch cannot be read; its requests are refused as one",
            topic=topic, of=partition, first_offset=first, last_offset=last, cause=cause,
        )  # fmt: skip
        reason = (
            f"Offsets {first} to {last} of {topic}/{partition} lie in a batch that cannot be read:"
            f" {cause}. They are refused as one. Send these requests again, with another"
            " compression or in smaller batches."
        )
        return [(first, batch.largest_ms, None, None, [unread(UNREADABLE_BATCH, reason)])]
