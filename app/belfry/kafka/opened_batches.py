"""A batch that is open for reading: by a quick parser if it is small, else as a stream.

                 quick (aiokafka's parser, C)          streamed (`wire/record_stream.py`)
    unpacked     as a whole, 8 MB at most              slice by slice
    costs        0.3 µs a record                       20 µs a record
    fails        for a name that is not UTF-8          at damaged bytes, when it meets them

Both give records from a position on, and say when the batch is at its end. One thread reads many
partitions in turns, so a stream looks at most at some thousand records in one go.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import lt
from typing import Any, Final

from aiokafka.record.default_records import DefaultRecordBatch

from belfry.kafka.unpacking import chunks_of
from belfry.wire.record import SourceRecord, size_of
from belfry.wire.record_batches import RecordBatch
from belfry.wire.record_stream import Unreadable, records_of
from belfry.wire.unread import MOST_CARRIED, bounded

# The most bytes of a portion's records; one more batch or record may exceed it.
SLICE_BYTES: Final = 4_000_000
RECORD_BYTES: Final = 2_000_000
# For a stream: records that are looked at in one go, also those before the position.
PASSED_AT_ONCE: Final = 4_000


class QuickBatch:
    """A batch that is small enough to be read by aiokafka's parser."""

    def __init__(self, batch: RecordBatch, data: bytes) -> None:
        self.batch = batch
        self._size = len(data)
        batch_of_client: Any = DefaultRecordBatch(data)
        # Made once: the parser can only be started once, and a batch may take several portions.
        self._records = (
            (each.offset, each.timestamp, each.key, each.value, each.headers or None)
            for each in batch_of_client
        )

    def take(self, at_most: int, position: int) -> tuple[list[SourceRecord], int, bool]:
        """Records from a position on, their size, and whether the batch is at its end.

        Unreadable if this parser fails: a name that is not UTF-8 is enough for that.
        """
        try:
            some = list(islice(self._records, at_most))
        except Exception as error:  # noqa: BLE001  # whatever the error, the stream is tried next
            raise Unreadable(str(error)) from None
        _check([each[0] for each in some], self.batch)
        ended = len(some) < at_most
        size, self._size = self._size, 0
        if some and some[0][0] < position:
            some = [each for each in some if each[0] >= position]
        return [_bounded(each) if each[4] else each for each in some], size, ended


def _check(offsets: list[int], batch: RecordBatch) -> None:
    """Unreadable if offsets do not rise, or leave their batch; brokers take no such batch."""
    if offsets and not (
        batch.base_offset <= offsets[0]
        and offsets[-1] < batch.next_offset
        and all(map(lt, offsets, islice(offsets, 1, None)))
    ):
        raise Unreadable("its offsets do not rise")


def _bounded(record: SourceRecord) -> SourceRecord:
    """A record, with at most as many headers as are carried."""
    if len(record[4] or ()) <= MOST_CARRIED:
        return record
    return (*record[:4], bounded(record[4]))


class StreamedBatch:
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
        """Records from a position on, some megabytes at most; Unreadable if none can be read."""
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
