"""Records out of a batch of the changelog, all at once.

    packed ─► unpacked as a whole ─► aiokafka's parser (C) ─► records        0.3 µs each
                                      │ fails, say for a stranger's header name that is not UTF-8
                                      └─► record by record (`wire/record_stream.py`)     20 µs each

Workers write the changelog, in batches of a megabyte on the wire. Strangers may write as well if
they have the right, so there are bounds. A batch beyond them is not skipped but an error: it may
hold rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatch

from belfry.kafka.unpacking import NONE, chunks_of
from belfry.store.row_judge import LoggedRecord
from belfry.wire.record import Headers
from belfry.wire.record_batches import HEAD_BYTES, MAGIC, RecordBatch
from belfry.wire.record_stream import Unreadable, records_of

# The most bytes that a batch may unpack to: 256 times a worker's default batch.
MOST_UNPACKED_BYTES: Final = 256 * 1024 * 1024
# The largest window of zstd, that of a broker's level 22: a broker may pack workers' batches anew.
WINDOW_BYTES: Final = 128 * 1024 * 1024


class UnreadableRows(ValueError):
    """A batch of the changelog that cannot be read."""


class StreamedRecord(NamedTuple):
    """A record that was read by itself; it has the same fields as those of the parser."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None


def records_in(batch: RecordBatch) -> Sequence[LoggedRecord]:
    """The records of a batch, in the order of their offsets; raises UnreadableRows."""
    if batch.magic != MAGIC:
        raise UnreadableRows("it has the format of before Kafka 0.11, or is damaged")
    try:
        data = batch.data if batch.codec == NONE else batch.unpacked(_unpacked(batch))
        return _quickly(data) or _slowly(batch, data)
    except Unreadable as error:
        raise UnreadableRows(str(error)) from error


def _unpacked(batch: RecordBatch) -> bytes:
    kept: list[bytes | memoryview] = []
    size = 0
    for chunk in chunks_of(batch.codec, batch.packed, WINDOW_BYTES):
        kept.append(chunk)
        size += len(chunk)
        if size > MOST_UNPACKED_BYTES:
            raise UnreadableRows(f"it unpacks to more than {MOST_UNPACKED_BYTES} bytes")
    return b"".join(kept)


def _quickly(data: bytes) -> list[LoggedRecord]:
    """All records, or none if the parser fails for one of them."""
    records: Any = DefaultRecordBatch(data)
    try:
        return list(records)
    except Exception:  # noqa: BLE001  # whatever the error, each record is read by itself next
        return []


def _slowly(batch: RecordBatch, data: bytes) -> list[LoggedRecord]:
    records = memoryview(data)[HEAD_BYTES:]
    return [StreamedRecord(*each) for each in records_of(batch, (records,), MOST_UNPACKED_BYTES)]
