"""A batch whose records are bytes already: they are joined once, when it is finished.

If thousands of records go to few partitions, loops that know their common bytes put them together
(`event_batches.py`, `told_batches.py`).  Their pieces are kept in a list: a buffer that grows with
each record would be moved again and again, as hundreds of buffers grow in turn.

    parts    length │ body │ length │ body │ …       body: a record without its length
"""

from __future__ import annotations

from typing import Final

from belfry.transactions.packing import batch_of
from belfry.transactions.record_bytes import record_body, varint
from belfry.wire.record import Headers

# Bytes of a batch before its first record.
BATCH_HEAD: Final = 61
# The longest varint of a record's length.
LENGTH_BYTES: Final = 5


class JoinedBatch:
    """Pieces of records, the number of records, and the number of bytes that still fit in."""

    __slots__ = ("count", "now_ms", "parts", "room")

    def __init__(self, most: int, now_ms: int) -> None:
        """A batch of `most` bytes, whose records have this time (epoch ms)."""
        self.now_ms = now_ms
        self.parts: list[bytes] = []
        self.count = 0
        self.room = most - BATCH_HEAD

    def append(
        self, number: int, _: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> bool | None:
        """Put any record behind the others, or return None if it does not fit; the caller raises
        `count`, as with aiokafka's builder.
        """
        body = record_body(number, key, value, headers)
        size = len(body)
        if size + LENGTH_BYTES > self.room and number:
            return None
        self.parts += (varint(size), body)
        self.room -= size + LENGTH_BYTES
        return True

    def put_first(self, body: bytes) -> None:
        """Put the first record in, which is taken whatever its size."""
        self.parts += (varint(len(body)), body)
        self.room -= len(body) + LENGTH_BYTES
        self.count = 1

    def finished(self, writer: tuple[int, int], sequence: int, codec: int) -> bytes | bytearray:
        """The batch; `sequence` is that of its first record."""
        records = b"".join(self.parts)
        return batch_of(records, self.count, self.now_ms, (*writer, sequence), codec)
