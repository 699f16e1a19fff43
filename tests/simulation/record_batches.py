"""Record batches as a broker stores them, of one record each, or of none that is left."""

from __future__ import annotations

import struct
from typing import Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder

BROKERS_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20
_ATTRIBUTES_AT: Final = 21
# Behind the base offset: length, epoch, magic, checksum, attributes, last offset delta, first and
# largest timestamp, producer, its epoch, base sequence, count.
_EMPTY: Final = struct.Struct(">qiibIhiqqqhii")
Headers = list[tuple[str, bytes | None]]


def stored(
    offset: int,
    timestamp_ms: int,
    record: tuple[bytes | None, bytes | None, Headers | None],
    producer: int = -1,
    more: int = BROKERS_TIME,
) -> bytes:
    """One record as a batch, with the broker's append time; of a transaction if a producer is."""
    key, value, headers = record
    built = DefaultRecordBatchBuilder(2, 0, int(producer >= 0), producer, 0, 0, 1 << 30)
    built.append(0, timestamp_ms, key, value, headers or [])
    data = built.build()
    struct.pack_into(">q", data, 0, offset)
    data[_ATTRIBUTES_AT + 1] |= more
    return bytes(data)


def control_of(offset: int, timestamp_ms: int, producer: int, *, commits: bool) -> bytes:
    """The marker that ends a transaction."""
    key = struct.pack(">hh", 0, int(commits))
    record = (key, b"\0" * 6, None)
    return stored(offset, timestamp_ms, record, producer, BROKERS_TIME | CONTROL)


def emptied(offset: int, behind: int) -> bytes:
    """What compaction keeps of a batch whose records are gone: the offsets that it took."""
    length = _EMPTY.size - struct.calcsize(">qi")
    return _EMPTY.pack(offset, length, 0, 2, 0, 0, behind - 1 - offset, -1, -1, -1, -1, -1, 0)
