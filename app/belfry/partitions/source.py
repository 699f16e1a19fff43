"""The requests of one owned partition, read ahead of the engine in batches of bounded size.

Every batch carries its begin and the begin of the next one (`start`, `next_position`).  At most two
batches are under way, so a slow engine stops the reading, and no request is dropped between fetch
and engine.

    reader   read 40‥42 ─ hand over ─ read 43‥45 ─ hand over ─ waits ········ read 46‥
    owner               ─ step with 40‥42 ──────── committed: taken(1) ──┘

A batch is bounded in records and in bytes: it has as many bytes as a step may take in, and at most
one record more. Nothing is read ahead of a large one.

Up to eight small batches may be under way. While a commit takes long, requests come in sips; with
two of them at most, the requests behind would miss the next step and wait for the one after it:

    step 1 commits     sip a ─ sip b ─ sip c
    step 2             takes a, b and c together, not a alone

A reader has no thread: `request_readers.py` gives all readers of a worker their turns, one batch
each. A failure ends the reading and is kept as `failure`. The owner looks at it in each round,
gives its term up, and begins a new one with a new reader at the position of the last manifest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import accumulate
from typing import Final, Protocol

from belfry.host import machine
from belfry.kafka.fetch_position import HANGS_S, SIP_BYTES, Fetched, Where
from belfry.kafka.request_log import RequestLog
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord, size_of

# Room for batches that are handed over and not yet committed, in parts: a small batch takes one
# part, a larger one half of the room, a large one all of it.
AHEAD: Final = 8
# Bytes that a record takes in memory besides its content.
RECORD_BYTES: Final = 500


class Readers(Protocol):
    """The port that gives readers their turns (`request_readers.py`); for any thread."""

    def enter(self, reader: SourceReader) -> None:
        """Read for it."""

    def leave(self, reader: SourceReader) -> None:
        """Stop reading for it."""

    def wake(self) -> None:
        """A reader has room again."""

    @property
    def crowded(self) -> bool:
        """Whether some reader waits for room that all of them share."""


class SourceReader:
    """Reads one source partition from a position on and hands batches over.

    `start`, `taken`, `ask_to_stop` and `stop` come from the owner's thread, `add` and `turn` from
    the readers' thread, which calls `hand_over` as well. Each object serves one term.
    """

    def __init__(
        self,
        source: RequestLog,
        batch_records: int,
        batch_bytes: int,
        hand_over: Callable[[SourceBatch], None],
        readers: Readers,
    ) -> None:
        self._source = source
        self._batch_records = batch_records
        self._batch_bytes = batch_bytes
        self._hand_over = hand_over
        self._readers = readers
        # Records that were read and not handed over: where they begin, and their sizes.
        self._start = source.position
        self._read: list[SourceRecord] = []
        self._sizes: list[int] = []
        self._appended = True
        # Parts of the room that were ever taken, and given back: the difference is under way. One
        # thread writes each.
        self._handed = self._taken = 0
        self._waits = False
        # Each batch under way: its parts, its bytes, and since when. Then all bytes, as above.
        self._under_way: deque[tuple[int, int, float]] = deque()
        self._handed_bytes = self._taken_bytes = 0
        # Whether requests come as a trickle, which need not wait for the room that readers share.
        self.trickles = False
        self.failure: Exception | None = None

    @property
    def where(self) -> Where:
        """The partition that is read."""
        return self._source.where

    @property
    def end(self) -> int:
        """The offset up to which requests have been read ahead."""
        return self._source.position

    @property
    def fetched(self) -> int:
        """The offset up to which all has been fetched."""
        return self._source.fetched

    # -- the owner's thread ----------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read; the source has been sought to the stored position."""
        self._start = self._source.position
        self._readers.enter(self)

    def taken(self, parts: int) -> None:
        """Batches of so many parts have been committed: there is room for others."""
        self._taken += parts
        while parts > 0 and self._under_way:
            of_batch, size, _ = self._under_way.popleft()
            parts -= of_batch
            self._taken_bytes += size
        if self._waits or self._readers.crowded:
            self._readers.wake()

    def ask_to_stop(self) -> None:
        """Stop reading soon; a batch that is being handed over still comes."""
        self._readers.leave(self)

    def stop(self) -> None:
        """Stop reading."""
        self.ask_to_stop()
        # An error holds the frames that it passed through, and they hold the object that raised it.
        self.failure = None

    # -- the readers' thread ---------------------------------------------------------------------

    def has_room(self) -> bool:
        """Whether a batch may be handed over; where there is none, its owner wakes the readers."""
        # In this order: an owner that gives room back in between sees that the reader waits.
        self._waits = True
        self._waits = self._handed - self._taken >= AHEAD
        return not self._waits

    def held_bytes(self, now_s: float) -> int:
        """Bytes of memory that batches under way take; 0 for an owner that may hang."""
        try:
            _, _, since_s = self._under_way[0]
        except IndexError:
            return 0
        return self._handed_bytes - self._taken_bytes if now_s - since_s < HANGS_S else 0

    @property
    def has_read(self) -> bool:
        """Whether there are records to hand over or to unpack; if so, no more are to be fetched."""
        return bool(self._read) or not self._source.empty

    def may_turn(self) -> bool:
        """Whether there are records to hand over, and room for them."""
        return self.has_read and self.has_room()

    def add(self, answer: Fetched) -> None:
        """Take the next answer in; raises OutOfRange or ConnectionError where the fetch failed."""
        self._source.add(answer)
        self.trickles = len(answer.data) < SIP_BYTES

    def turn(self) -> None:
        """Hand one batch over, where there is one: records, or a range of offsets without any."""
        if not self._read:
            self._start = self._source.position
            self._read = self._source.take(self._batch_records)
            self._appended = self._source.appended
            self._sizes = _sizes(self._read)
            if self._source.position == self._start:
                # Records before the position were unpacked so far; the next turn goes on.
                return
        records, size = self._cut()
        behind = self._read[0][0] if self._read else self._source.position
        parts = self._parts(len(records), size)
        batch = SourceBatch(self._start, behind, records, parts, self._appended, size)
        self._start = behind
        self._handed += parts
        held = size + RECORD_BYTES * len(records)
        self._handed_bytes += held
        self._under_way.append((parts, held, machine.monotonic()))
        self._hand_over(batch)

    def _parts(self, records: int, size: int) -> int:
        """How many parts of the room a batch takes: small ones together hold no more than one."""
        if 2 * size > self._batch_bytes:
            return AHEAD
        small = AHEAD * records <= self._batch_records and AHEAD * size <= self._batch_bytes
        return 1 if small else AHEAD // 2

    def _cut(self) -> tuple[list[SourceRecord], int]:
        """Take the first records out, as many as fit into a step, with their size in bytes."""
        records, sizes = self._read, self._sizes
        count, size = len(records), sum(sizes)
        if size > self._batch_bytes:
            count, size = next(
                (number, end)
                for number, end in enumerate(accumulate(sizes), 1)
                if end >= self._batch_bytes
            )
        self._read, self._sizes = records[count:], sizes[count:]
        return records[:count], size


def _sizes(records: list[SourceRecord]) -> list[int]:
    """Bytes of each record; most have no headers."""
    return [
        size_of(record) if record[4] else len(record[2] or b"") + len(record[3] or b"")
        for record in records
    ]
