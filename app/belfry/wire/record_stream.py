"""Records out of a batch that is unpacked bit by bit: at most one of them is in memory.

    chunks ──► │ length │ record │ length │ record, larger than may be │ length │ record ──► tuples
                                            └ begin kept, rest skipped, refused

This is the slow way (20 µs a record), for batches that unpack to more than Kafka's client holds.  A
record that is larger than it may be keeps its beginning and its first headers, and one more header
by which it is refused (`wire/unread.py`). At most `MOST_BYTES` of one batch are unpacked, since
others wait meanwhile: gzip of 900 MB, which has one megabyte on the wire, would cost two seconds.
Lengths are believed only as far as bytes follow; `Unreadable` is raised for invalid ones.

A record within a batch (Kafka's format, version 2; all numbers but the first byte are varints):

    length │ attributes u8 │ timestamp delta │ offset delta │ key size, key │ value size, value │
    header count │ name size, name, value size, value │ …

Offset and timestamp are relative to the head of the batch (`record_batches`).  Numbers are zigzag
and base 128 as in Protocol Buffers; a size of -1 is a null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from belfry.wire.record import Headers, SourceRecord
from belfry.wire.record_batches import MAGIC, RecordBatch
from belfry.wire.unread import CUT, MOST_CARRIED, MOST_KEPT, NO_TEXT, unread

# Bytes that are kept of a record that is too large: of its key, its value and its headers.
KEPT_BYTES: Final = 250_000
# The most bytes that are unpacked of a batch: 32 times a broker's default limit of one batch.
MOST_BYTES: Final = 32_000_000
# A batch of a megabyte may claim a hundred million records, each of which would be answered.
MOST_RECORDS: Final = 1_000_000
_TOO_LONG: Final = f"it unpacks to more than {MOST_BYTES} bytes, and so many are read of one batch"
_MORE: Final = 0x80
_LONGEST: Final = 10


class Unreadable(ValueError):
    """Bytes that are not records."""


def records_of(
    batch: RecordBatch, chunks: Iterable[bytes | memoryview], most_bytes: int
) -> Iterator[SourceRecord]:
    """The records of a batch, out of its unpacked chunks; those above `most_bytes` are cut.

    A record that is cut still comes out, in its place: its request is refused by name, and not
    lost.

    Raises Unreadable if the chunks are not records, or fewer than the head says, and at the first
    record that does not end within `MOST_BYTES`.
    """
    if batch.magic != MAGIC:
        raise Unreadable("it has the format of before Kafka 0.11, or is damaged")
    if batch.record_count > MOST_RECORDS:
        raise Unreadable(
            f"it holds {batch.record_count} records, and {MOST_RECORDS} are read of one batch"
        )
    stream = _Chunks(chunks)
    for _ in range(batch.record_count):
        size = stream.number()
        if size < 0:
            raise Unreadable(f"a record has {size} bytes")
        if stream.passed + size > MOST_BYTES:
            raise Unreadable(_TOO_LONG)
        if size > most_bytes:
            record = _cut(batch, stream, size, most_bytes)
        else:
            record = _record(batch, stream.take(size))
        if not batch.base_offset <= record[0] < batch.next_offset:
            raise Unreadable(f"a record has the offset {record[0]}")
        yield record


def _record(batch: RecordBatch, data: bytes) -> SourceRecord:
    body = _Chunks((data,))
    offset, timestamp_ms = _place(batch, body)
    key, value = body.beginning(len(data)), body.beginning(len(data))
    headers = _headers(body, len(data))
    return (offset, timestamp_ms, key, value, headers)


def _place(batch: RecordBatch, body: _Chunks) -> tuple[int, int]:
    """Offset and timestamp, at the beginning of a record."""
    body.take(1)
    delta_ms, delta = body.number(), body.number()
    timestamp_ms = batch.largest_ms if batch.appended else batch.first_ms + delta_ms
    return batch.base_offset + delta, timestamp_ms


def _headers(body: _Chunks, room: int) -> Headers | None:
    """A record's headers; only the first ones of thousands, or of more than `room` bytes."""
    count = body.number()
    if count < 0:
        raise Unreadable(f"a record has {count} headers")
    headers: Headers = []
    readable = True
    for _ in range(MOST_KEPT if count > MOST_CARRIED else count):
        name = body.beginning(room)
        size = body.number()
        room -= len(name or b"") + max(0, size)
        if room < 0:
            break
        given = None if size < 0 else body.take(size)
        try:
            headers.append(((name or b"").decode(), given))
        except UnicodeDecodeError:
            readable = False
    if count > MOST_CARRIED:
        headers.append((CUT, b"cut from %d headers" % count))
    return (headers or None) if readable else [NO_TEXT]


def _cut(batch: RecordBatch, stream: _Chunks, size: int, most_bytes: int) -> SourceRecord:
    """The beginning of a record that is too large; the rest is skipped."""
    end = stream.passed + size
    offset, timestamp_ms = _place(batch, stream)
    kept = min(KEPT_BYTES, most_bytes)
    key, value = stream.beginning(kept), stream.beginning(kept)
    headers = _headers(stream, kept)
    stream.skip(end - stream.passed)
    reason = (
        f"The record takes {size} bytes; at most {most_bytes} are unpacked of one in a batch as"
        " large as its own. Send it in a smaller batch; or store its content elsewhere and schedule"
        " the address (claim check)."
    )
    told: Headers = [(CUT, b"cut from %d bytes" % size), unread("request_too_large", reason)]
    return (offset, timestamp_ms, key, value, [*(headers or ()), *told])


class _Chunks:
    """Chunks, read as numbers and runs of bytes."""

    def __init__(self, chunks: Iterable[bytes | memoryview]) -> None:
        self._chunks = iter(chunks)
        self._chunk: bytes | memoryview = b""
        self._at = 0
        self._before = 0

    @property
    def passed(self) -> int:
        """The number of bytes that were read or skipped."""
        return self._before + self._at

    def _next(self) -> None:
        """Go on to the next chunk that is not empty."""
        self._before += len(self._chunk)
        self._at -= len(self._chunk)
        self._chunk = next(self._chunks, b"")
        if not self._chunk:
            raise Unreadable("the records end in the middle of one")
        # A cut record may claim any length of its key, so many chunks may be skipped.
        if self._before > MOST_BYTES:
            raise Unreadable(_TOO_LONG)

    def number(self) -> int:
        """A signed number of variable length."""
        coded = shift = 0
        for _ in range(_LONGEST):
            while self._at >= len(self._chunk):
                self._next()
            byte = self._chunk[self._at]
            self._at += 1
            coded |= (byte & 0x7F) << shift
            if byte < _MORE:
                return (coded >> 1) ^ -(coded & 1)
            shift += 7
        raise Unreadable("a number has no end")

    def take(self, size: int) -> bytes:
        """So many bytes."""
        if size < 0:
            raise Unreadable(f"something has {size} bytes")
        end = self._at + size
        if end <= len(self._chunk):
            self._at, begin = end, self._at
            return bytes(self._chunk[begin:end])
        parts = []
        while size:
            while self._at >= len(self._chunk):
                self._next()
            part = self._chunk[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def skip(self, size: int) -> None:
        """Skip so many bytes."""
        if size < 0:
            raise Unreadable("a record is longer than it says")
        self._at += size
        while self._at > len(self._chunk):
            self._next()

    def beginning(self, most: int) -> bytes | None:
        """The first of some bytes, the rest is skipped; None for a null."""
        size = self.number()
        if size < 0:
            return None
        kept = self.take(min(size, most))
        self.skip(size - len(kept))
        return kept
