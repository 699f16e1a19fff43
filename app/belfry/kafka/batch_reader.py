"""Records out of batches as they are stored, a portion at a time, whatever they unpack to.

    batch ─► unpacks to 8 MB at most? ─ yes  ─► aiokafka's parser (C)      0.3 µs a record
                      │ no, or that parser cannot read it
                      └─────────────────────► a stream (`wire/record_stream.py`)   20 µs a record

A batch of a megabyte may unpack to a gigabyte, so it is unpacked in slices, and no more of it is
kept than a portion.  What of it cannot be read at all is one record that is to be refused: those
behind it are not lost by that, and a partition is never stopped by what somebody wrote to it.

Only requests are read so, since each of them can be refused.  Of what workers write, nothing may be
passed over.
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
    """Reads the records of one partition out of what was fetched of it.

    `position` is the offset of the next record for readers, `fetched` the one behind all that was
    added. It is used by one thread, and holds one batch unpacked at a time.
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
        """Whether all that was fetched has been read."""
        return self._opened is None and not self._batches

    def add(self, answer: Fetched) -> None:
        """Take in what was fetched next; batches of aborted transactions are passed over by
        `take`.
        """
        self.fetched = max(self.fetched, answer.behind)
        committed = CommittedBatches(answer.aborted)
        for batch in batches_in(answer.data):
            self._batches.append((batch, committed.holds(batch)))

    def take(self, at_most: int) -> list[SourceRecord]:
        """The next records, at most `at_most`, and some megabytes; no more than one large batch.

        An empty list where all has been read, or where many were passed over: `empty` tells which.
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
                # It goes on with the next call: to unpack many megabytes takes its time, in which
                # the other partitions are to be read as well.
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
            # The quick parser may stumble over what the stream can read; the stream begins at the
            # same position.
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
        """Open the next batch that has records for readers, False where there is none."""
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
        """What reads a batch: the quick parser where it unpacks to little, else a stream."""
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
            # What lies before the damage is read; then it is met again.
            return StreamedBatch(batch)
        return QuickBatch(batch, batch.unpacked(b"".join(kept)))

    def _tell(self, batch: RecordBatch) -> None:
        """Say in the log that a large batch is read in slices; not for each of many."""
        topic, partition = self._where
        self._log.info(
            "large", "a batch unpacks to some megabytes; it is read in slices",
            topic=topic, of=partition, first_offset=batch.base_offset,
            packed_bytes=len(batch.data), records=batch.record_count,
        )  # fmt: skip

    def _refusal(self, batch: RecordBatch, cause: str) -> list[SourceRecord]:
        """What stands for all records of the batch that cannot be read."""
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
