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
from collections.abc import Iterator
from itertools import chain, islice
from operator import lt
from typing import Any, Final

import structlog
from aiokafka.record.default_records import DefaultRecordBatch

from belfry.kafka.fetcher import Fetched, Where
from belfry.kafka.unpacking import NONE, chunks_of
from belfry.telemetry.limited import LimitedLogger
from belfry.wire.record import SourceRecord, size_of
from belfry.wire.record_batches import MAGIC, CommittedBatches, RecordBatch, batches_in
from belfry.wire.record_stream import Unreadable, records_of
from belfry.wire.unread import MOST_CARRIED, UNREADABLE_BATCH, bounded, unread

# How much of a portion's records there is at most, but for one batch or one record more.
SLICE_BYTES: Final = 4_000_000
RECORD_BYTES: Final = 2_000_000
# Of a stream: records that are looked at in one go, also where they lie before the position.
PASSED_AT_ONCE: Final = 20_000
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
        self._opened: _Quick | _Stream | None = None
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
        """The next records, at most `at_most`, and some megabytes.

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
            if not some and self._opened is opened:
                # It goes on passing over records with the next call.
                break
        return found

    def _some(self, opened: _Quick | _Stream, at_most: int) -> tuple[list[SourceRecord], int]:
        """The next records of the batch that is open, and their size; closes it at its end."""
        batch, position = opened.batch, self.position
        try:
            some, size, ended = opened.take(at_most, position)
        except Unreadable as error:
            some, size, ended = [], 0, True
            # The quick parser may stumble over what the stream can read; the stream begins at the
            # same position.
            if isinstance(opened, _Quick):
                self._opened = _Stream(batch)
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

    def _open(self, batch: RecordBatch) -> _Quick | _Stream:
        """What reads a batch: the quick parser where it unpacks to little, else a stream."""
        if batch.magic != MAGIC:
            return _Stream(batch)
        if batch.codec == NONE:
            return _Quick(batch, batch.data)
        chunks = chunks_of(batch.codec, batch.packed)
        kept: list[bytes | memoryview] = []
        size = 0
        try:
            for chunk in chunks:
                kept.append(chunk)
                size += len(chunk)
                if size > WHOLE_BYTES:
                    self._tell(batch)
                    return _Stream(batch, chain(kept, chunks))
        except Unreadable:
            # What lies before the damage is read; then it is met again.
            return _Stream(batch)
        return _Quick(batch, batch.unpacked(b"".join(kept)))

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


class _Quick:
    """A batch that is small enough to be read by aiokafka's parser."""

    def __init__(self, batch: RecordBatch, data: bytes) -> None:
        self.batch = batch
        self._size = len(data)
        self._records: Any = DefaultRecordBatch(data)

    def take(self, at_most: int, position: int) -> tuple[list[SourceRecord], int, bool]:
        """So many records from a position on, their size, and whether the batch is at its end.

        Unreadable where this parser stumbles: a name that is no UTF-8 is enough for that.
        """
        try:
            some = [
                (each.offset, each.timestamp, each.key, each.value, each.headers or None)
                for each in islice(self._records, at_most)
            ]
        except Exception as error:  # noqa: BLE001  # whatever it says, the stream is asked next
            raise Unreadable(str(error)) from None
        _check([each[0] for each in some], self.batch)
        ended = len(some) < at_most
        size, self._size = self._size, 0
        if some and some[0][0] < position:
            some = [each for each in some if each[0] >= position]
        return [_bounded(each) if each[4] else each for each in some], size, ended


def _check(offsets: list[int], batch: RecordBatch) -> None:
    """Unreadable where offsets do not rise, or leave their batch; brokers take no such batch."""
    if offsets and not (
        batch.base_offset <= offsets[0]
        and offsets[-1] < batch.next_offset
        and all(map(lt, offsets, islice(offsets, 1, None)))
    ):
        raise Unreadable("its offsets do not rise")


def _bounded(record: SourceRecord) -> SourceRecord:
    """A record with as many headers as are carried."""
    if len(record[4] or ()) <= MOST_CARRIED:
        return record
    return (*record[:4], bounded(record[4]))


class _Stream:
    """A batch that is read record by record, out of slices."""

    def __init__(
        self, batch: RecordBatch, chunks: Iterator[bytes | memoryview] | None = None
    ) -> None:
        self.batch = batch
        if chunks is None:
            chunks = chunks_of(batch.codec, batch.packed)
        self._records = records_of(batch, chunks, RECORD_BYTES)
        self._failed: Unreadable | None = None
        self._last = batch.base_offset - 1

    def take(self, at_most: int, position: int) -> tuple[list[SourceRecord], int, bool]:
        """So many records from a position on, some megabytes at most; Unreadable where none is."""
        if self._failed is not None:
            raise self._failed
        found: list[SourceRecord] = []
        size = 0
        try:
            for _ in range(PASSED_AT_ONCE):
                if len(found) >= at_most or size >= SLICE_BYTES:
                    break
                record = next(self._records, None)
                if record is None:
                    return found, size, True
                if record[0] <= self._last:
                    raise Unreadable("its offsets do not rise")
                self._last = record[0]
                if record[0] >= position:
                    found.append(record)
                    size += size_of(record)
        except Unreadable as error:
            if not found:
                raise
            self._failed = error
        return found, size, False
