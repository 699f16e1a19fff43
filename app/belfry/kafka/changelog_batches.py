"""Records out of a batch of the changelog, all at once.

    packed ─► unpacked as a whole ─► aiokafka's parser (C) ─► records        0.3 µs each
                                      │ a stranger's header, say, has a name that is no UTF-8
                                      └─► record by record (`wire/record_stream.py`)     20 µs each

Workers write the changelog, in batches of a megabyte as they are sent.  Strangers may as well,
where they have the right, so there are bounds all the same.  Nothing beyond them is skipped: it may
be a row.
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

# A batch may unpack to so much: 256 times what a worker sends at once by default.
MOST_UNPACKED_BYTES: Final = 256 * 1024 * 1024
# And zstd may refer so far back in it, as at a broker's level 22: it packs anew what workers write.
WINDOW_BYTES: Final = 128 * 1024 * 1024


class UnreadableRows(ValueError):
    """A batch of the changelog that cannot be read."""


class StreamedRecord(NamedTuple):
    """A record that was read by itself; it looks like those of the parser."""

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
    """All records, or none where the parser stumbles over one of them."""
    records: Any = DefaultRecordBatch(data)
    try:
        return list(records)
    except Exception:  # noqa: BLE001  # whatever it says, each record is looked at next
        return []


def _slowly(batch: RecordBatch, data: bytes) -> list[LoggedRecord]:
    records = memoryview(data)[HEAD_BYTES:]
    return [StreamedRecord(*each) for each in records_of(batch, (records,), MOST_UNPACKED_BYTES)]
