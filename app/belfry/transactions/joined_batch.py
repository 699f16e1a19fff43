"""A batch whose records are bytes already: they are joined once, when it is finished.

Where thousands of records go to few partitions, their bytes are put together in loops that know
what these have in common (`event_batches.py`, `told_batches.py`).  A buffer that grows with each
record would be moved again and again, as hundreds of them grow in turn.

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
    """Pieces of records, how many records there are, and how many bytes still fit in."""

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
        """Put any record behind the others, and None where it does not fit; `count` is the caller's
        to raise, as with aiokafka's builder.
        """
        body = record_body(number, key, value, headers)
        size = len(body)
        if size + LENGTH_BYTES > self.room and number:
            return None
        self.parts += (varint(size), body)
        self.room -= size + LENGTH_BYTES
        return True

    def put_first(self, body: bytes) -> None:
        """Put the first record in, which fits whatever its size."""
        self.parts += (varint(len(body)), body)
        self.room -= len(body) + LENGTH_BYTES
        self.count = 1

    def finished(self, writer: tuple[int, int], sequence: int, codec: int) -> bytes | bytearray:
        """The batch; `sequence` is that of its first record."""
        records = b"".join(self.parts)
        return batch_of(records, self.count, self.now_ms, (*writer, sequence), codec)
