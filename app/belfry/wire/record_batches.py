"""Record batches as Kafka stores them: their heads, read before anything is unpacked.

    base offset  length  epoch  magic  crc  attributes  …  count │ records, packed in one
    └──────────────── 61 bytes, never packed ─────────────────┘   └─ may unpack to 1 000 × ─┘

The head has offsets, count, times, codec and transaction. So a reader knows where a batch ends
before it knows the batch's content, and can go on behind an unreadable batch. Nothing here trusts a
length: a batch that goes on behind the bytes is left for a later fetch.

A reader with `read_committed` reads one fetch; the broker says that producer 7 aborts from offset
20 on:

    offset      10-14    20-22    23-25    26            27-29
    producer    5        7        5        7, control    7
    counts      yes      no       yes      ends it       yes: another transaction

The format is that of Kafka's protocol guide, "Record Batch" (magic 2), as KIP-98 has it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

# Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, first timestamp,
# largest timestamp, producer id, producer epoch, base sequence, count.
_HEAD: Final = struct.Struct(">qiibIhiqqqhii")
HEAD_BYTES: Final = _HEAD.size
_LENGTH: Final = struct.Struct(">qi")
_BEFORE_LENGTH_ENDS: Final = _LENGTH.size
_MAGIC_AT: Final = 16
# A batch with a smaller length does not reach its own magic.
_LEAST_LENGTH: Final = _MAGIC_AT + 1 - _BEFORE_LENGTH_ENDS
_CODEC_AT: Final = 22
_CODEC: Final = 0x07
_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
MAGIC: Final = 2
# In place of the magic of a batch that is shorter than its head.
_CUT: Final = -1


class RecordBatch(NamedTuple):
    """One batch: the fields of its head, and its bytes as they came.

    `next_offset` is the one behind its last record, `first_ms` and `largest_ms` are epoch ms.
    `record_count` is the head's claim; for a batch older than magic 2 it is 1.
    """

    base_offset: int
    next_offset: int
    magic: int
    attributes: int
    first_ms: int
    largest_ms: int
    producer: int
    record_count: int
    data: bytes

    @property
    def codec(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & _CODEC

    @property
    def appended(self) -> bool:
        """Whether the broker's append time is the timestamp of all records."""
        return bool(self.attributes & _APPEND_TIME)

    @property
    def transactional(self) -> bool:
        """Whether its producer wrote it in a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether the batch holds the end of a transaction, and no record."""
        return bool(self.attributes & _CONTROL)

    @property
    def aborts(self) -> bool:
        """Whether the batch is the end of a transaction that was rolled back."""
        # Length, attributes, two deltas and the key's length, a byte each; then version and type.
        return self.control and self.data[HEAD_BYTES + 7 : HEAD_BYTES + 9] == b"\0\0"

    @property
    def packed(self) -> memoryview:
        """The bytes behind the head."""
        return memoryview(self.data)[HEAD_BYTES:]

    def unpacked(self, records: bytes) -> bytes:
        """This batch with unpacked records; its checksum is not right any more."""
        head = bytearray(self.data[:HEAD_BYTES])
        _LENGTH.pack_into(
            head, 0, self.base_offset, HEAD_BYTES - _BEFORE_LENGTH_ENDS + len(records)
        )
        head[_CODEC_AT] &= ~_CODEC
        return bytes(head) + records


def batches_in(data: bytes) -> Iterator[RecordBatch]:
    """The whole batches in the bytes of one fetch; a rest belongs to the next fetch."""
    at, end = 0, len(data)
    while end - at > _MAGIC_AT:
        length = _LENGTH.unpack_from(data, at)[1]
        behind = at + _BEFORE_LENGTH_ENDS + length
        if length < _LEAST_LENGTH or behind > end:
            return
        yield _batch(data[at:behind])
        at = behind


def end_of(data: bytes) -> tuple[int, int]:
    """The offset behind the whole batches of a fetch, and the epoch of the last one's leader.

    -1 if there is no whole batch, or no epoch.
    """
    at, end, last = 0, len(data), -1
    while end - at > _MAGIC_AT:
        length: int = _LENGTH.unpack_from(data, at)[1]
        behind = at + _BEFORE_LENGTH_ENDS + length
        if length < _LEAST_LENGTH or behind > end:
            break
        last, at = at, behind
    if last < 0:
        return -1, -1
    if data[last + _MAGIC_AT] != MAGIC or at - last < HEAD_BYTES:
        return _batch(data[last:at]).next_offset, -1
    base_offset, _, epoch, _, _, _, delta, *_ = _HEAD.unpack_from(data, last)
    return base_offset + max(0, delta) + 1, epoch


def _batch(data: bytes) -> RecordBatch:
    base_offset = _LENGTH.unpack_from(data)[0]
    magic = data[_MAGIC_AT]
    if magic != MAGIC or len(data) < HEAD_BYTES:
        # Written before Kafka 0.11, whose offset is that of its last record, or damaged: parsers
        # of magic 2 would read behind the bytes of a head that is cut.
        cut = _CUT if magic == MAGIC else magic
        return RecordBatch(base_offset, base_offset + 1, cut, 0, -1, -1, -1, 1, data)
    head = _HEAD.unpack_from(data)
    _, _, _, _, _, attributes, delta, first_ms, largest_ms, producer, _, _, count = head
    behind = base_offset + max(0, delta) + 1
    return RecordBatch(
        base_offset, behind, magic, attributes, first_ms, largest_ms, producer, count, data
    )


class CommittedBatches:
    """Finds the batches of one fetch that belong to transactions that were rolled back.

    The broker names the producers of these transactions, each with its first offset. From there on
    all batches of the producer are ignored, up to the control batch that ends the transaction.
    """

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """`aborted` are producers and first offsets, as the broker tells them."""
        self._ahead = sorted(aborted, key=lambda each: each[1], reverse=True)
        self._aborting: set[int] = set()

    def holds(self, batch: RecordBatch) -> bool:
        """Whether a batch has records for readers; to be called for each batch, in order."""
        while self._ahead and self._ahead[-1][1] < batch.next_offset:
            self._aborting.add(self._ahead.pop()[0])
        if batch.control:
            if batch.aborts:
                self._aborting.discard(batch.producer)
            return False
        return not (batch.transactional and batch.producer in self._aborting)
