"""The batch consumer: a thread per owned partition that reads requests ahead of the engine.

Every batch carries the chain (`start`, `next_position`), and at most `AHEAD` of them are under way,
so a slow engine stops the reading and nothing is ever dropped between fetch and engine.

    reader   read 40‥42 ─ hand over ─ read 43‥45 ─ hand over ─ waits ········ read 46‥
    owner               ─ step with 40‥42 ──────── committed: taken(1) ──┘

A batch is bounded in records and in bytes: it has as many bytes as a step may take in, and at most
one record more. Nothing is read ahead of a large one.

Each batch costs a transaction, so a trickle is read in sips of 20 ms: a request that comes alone is
handed over at once, and those that follow within that time go together. A few requests of some
megabytes are no trickle: what is slow about them is that others wait behind them.

A failure ends the thread and is kept as `failure`. The owner looks at it in each round, gives its
term up, and begins a new one with a new reader at the position of the last manifest.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from threading import Semaphore
from time import monotonic
from typing import Final

import structlog

from belfry.host.background import END, Background
from belfry.kafka.request_log import RequestLog
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord, size_of

# Batches that are handed over and not yet committed.
AHEAD: Final = 2
# Longest single wait for records or for room, so that an end is noticed.
WAIT_S: Final = 0.2
SIP_S: Final = 0.02
# What has fewer requests, and fewer bytes, is a trickle.
SIP_RECORDS: Final = 500
SIP_BYTES: Final = 500_000

log = structlog.get_logger(__name__)


class SourceReader:
    """Reads one source partition from a position on and hands batches over.

    `hand_over` is called in the reader's thread; `taken` and `ask_to_stop` come from the owner's.
    An object is for one term.
    """

    def __init__(
        self,
        source: RequestLog,
        batch_records: int,
        batch_bytes: int,
        hand_over: Callable[[SourceBatch], None],
    ) -> None:
        self._source = source
        self._batch_records = batch_records
        self._batch_bytes = batch_bytes
        self._hand_over = hand_over
        # What was read and not handed over: where it begins, its records and their sizes.
        self._start = 0
        self._read: list[SourceRecord] = []
        self._sizes: list[int] = []
        self._appended = True
        self._room = Semaphore(AHEAD)
        self._thread = Background("source", self._turn, log, "requests not read")
        self._stopping = self._thread.stopping
        self._next_sip = 0.0
        self.failure: Exception | None = None

    @property
    def end(self) -> int:
        """The offset up to which requests have been read ahead."""
        return self._source.position

    def log_end(self) -> int:
        """The offset up to which there are requests now, read or not."""
        return self._source.log_end()

    def start(self) -> None:
        """Begin to read; the source has been sought to the stored position."""
        self._thread.start()

    def taken(self, batches: int) -> None:
        """So many batches have been taken in: there is room for others."""
        if batches:
            self._room.release(batches)

    def ask_to_stop(self) -> None:
        """Stop soon, even where the reader waits for room that nobody will make any more."""
        self._stopping.set()
        self._room.release()

    def stop(self) -> None:
        """Stop reading and close the source."""
        self.ask_to_stop()
        self._thread.join()
        # It holds the frames that it passed through, and they hold whoever raised it.
        self.failure = None
        self._source.close()

    def _turn(self) -> object:
        """Read one batch and hand it over, once there is room."""
        try:
            if self._room.acquire(timeout=WAIT_S) and not self._stopping.is_set():
                batch = self._next()
                self._hand_over(batch)
                self._await_room(batch.parts - 1)
        except StopReading:
            return END
        except Exception as error:  # noqa: BLE001  # told to the owner, who starts over
            self.failure = error
            return END
        return None

    def _await_room(self, more: int) -> None:
        """Take the room of so many more batches."""
        while more and not self._stopping.is_set():
            more -= self._room.acquire(timeout=WAIT_S)

    def _next(self) -> SourceBatch:
        """The next batch: what is left of the last reading, or what is read now."""
        if not self._read:
            self._read_on()
        records, size = self._cut()
        behind = self._read[0][0] if self._read else self._source.position
        # A large one takes all the room: nothing is read ahead of it.
        parts = AHEAD if 2 * size > self._batch_bytes else 1
        batch = SourceBatch(self._start, behind, records, parts, self._appended, size)
        self._start = behind
        return batch

    def _read_on(self) -> None:
        """Read what is there next, or the positions behind it; StopReading if asked to stop."""
        self._start = self._source.position
        self._stopping.wait(max(0.0, self._next_sip - monotonic()))
        while not self._stopping.is_set():
            records = self._source.read(self._batch_records, WAIT_S)
            if self._source.position != self._start:
                self._read, self._appended = records, self._source.appended
                self._sizes = _sizes(records)
                if len(records) < SIP_RECORDS and sum(self._sizes) < SIP_BYTES:
                    self._next_sip = monotonic() + SIP_S
                return
        raise StopReading

    def _cut(self) -> tuple[list[SourceRecord], int]:
        """The first of what was read, as much as fits into a step, and its size; drops it."""
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


class StopReading(Exception):
    """The reader was asked to stop while it waited."""


def _sizes(records: list[SourceRecord]) -> list[int]:
    """Bytes of each record; most have no headers."""
    return [
        size_of(record) if record[4] else len(record[2] or b"") + len(record[3] or b"")
        for record in records
    ]
