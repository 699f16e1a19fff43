"""The batch consumer: a thread per owned partition that reads requests ahead of the engine.

Every batch carries the chain (`start`, `next_position`), and at most `AHEAD` of them are under way,
so a slow engine stops the reading and nothing is ever dropped between fetch and engine.

Each batch costs a transaction, so a trickle is read in sips of 20 ms: a request that comes alone is
handed over at once, and those that follow within that time go together.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Semaphore, Thread
from time import monotonic
from typing import Any, Final

import structlog
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord
from belfry.worker.partition_log import PartitionLog, headers_of

AHEAD: Final = 2
WAIT_S: Final = 0.2
SIP_S: Final = 0.02
SIP_RECORDS: Final = 500

log = structlog.get_logger(__name__)


class SourceReader:
    """Reads one source partition from a position on and hands batches over."""

    def __init__(
        self, source: PartitionLog, batch_records: int, hand_over: Callable[[SourceBatch], None]
    ) -> None:
        self._source = source
        self._batch_records = batch_records
        self._hand_over = hand_over
        self._room = Semaphore(AHEAD)
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="belfry-source", daemon=True)
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
        self._room.release(batches)

    def ask_to_stop(self) -> None:
        """Stop soon, even where the reader waits for room that nobody will make any more."""
        self._stopping.set()
        self._room.release()

    def stop(self) -> None:
        """Stop reading and close the source."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join()
        # It holds the frames that it passed through, and they hold whoever raised it.
        self.failure = None
        self._source.close()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._room.acquire(timeout=WAIT_S):
                    self._hand_over(self._next())
        except StopReading:
            pass
        except Exception as error:  # noqa: BLE001  # told to the owner, who starts over
            self.failure = error

    def _next(self) -> SourceBatch:
        start = self._source.position
        self._stopping.wait(max(0.0, self._next_sip - monotonic()))
        while not self._stopping.is_set():
            messages = self._source.read(self._batch_records, WAIT_S)
            if self._source.position != start:
                records = _records(messages)
                if len(records) < SIP_RECORDS:
                    self._next_sip = monotonic() + SIP_S
                return SourceBatch(
                    start, self._source.position, records, appended=_appended(messages)
                )
        raise StopReading


class StopReading(Exception):
    """The reader was asked to stop while it waited."""


def _appended(messages: list[Message]) -> bool:
    """Whether a batch has the broker's append times: a topic's setting, so two records tell."""
    ends = (messages[:1], messages[-1:])
    return all(m.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME for end in ends for m in end)


def _records(messages: list[Message]) -> list[SourceRecord]:
    given: Any = messages
    return [
        (m.offset(), m.timestamp()[1], m.key(), m.value(), headers)
        for m, headers in zip(given, headers_of(messages), strict=True)
    ]
