"""The requests of one partition from a position on, out of what a fetcher brings of it.

Requests are written by strangers, so their batches are fetched as they are stored (`fetcher.py`)
and opened with bounds (`batch_reader.py`).  What workers write is read by
`ChangelogReader` (rows) and `PartitionLog` (all else).

    fetcher ── answers of many partitions ──► add() ─► log of partition 3 ─► take(): records
                                                       log of partition 7

A log has no connection of its own: partitions that are read in one process share a fetcher.  The
next offset to ask for is known after every portion, also where only control records passed.
"""

from __future__ import annotations

from typing import Any

from belfry.kafka.batch_reader import BatchReader
from belfry.kafka.fetch_position import Fetched, OffsetGone
from belfry.kafka.log_bounds import LogBounds, OutOfRange
from belfry.kafka.log_ends import LogEnds
from belfry.wire.record import SourceRecord


class RequestLog(LogBounds):
    """One partition of requests; one thread at a time may use it, after a `seek`."""

    def __init__(
        self,
        properties: dict[str, Any],
        topic: str,
        partition: int,
        log_ends: LogEnds | None = None,
    ) -> None:
        """`properties` are librdkafka's; without `log_ends` each question is a connection."""
        super().__init__(properties, topic, partition, log_ends)
        self.where = topic, partition
        self._reader = BatchReader(self.where, 0)

    @property
    def position(self) -> int:
        """The offset behind what was taken."""
        return self._reader.position

    @property
    def fetched(self) -> int:
        """The offset behind what was added: where to fetch from."""
        return self._reader.fetched

    @property
    def empty(self) -> bool:
        """Whether all that was added has been taken."""
        return self._reader.empty

    @property
    def appended(self) -> bool:
        """Whether the records that were taken last have the broker's append times."""
        return self._reader.appended

    def seek(self, offset: int, known: tuple[int, int] | None = None) -> None:
        """Read from this offset on; LostRange if the log begins later, AheadOfLog if it ends.

        `known` is where it begins and ends, if that was asked just now.
        """
        self.check(offset, known)
        self._reader = BatchReader(self.where, offset)

    def add(self, answer: Fetched) -> None:
        """Take in what was fetched next; raises OutOfRange or ConnectionError where it failed."""
        if isinstance(answer.error, OffsetGone):
            raise OutOfRange(str(answer.error))
        if answer.error is not None:
            raise answer.error
        self._reader.add(answer)

    def take(self, at_most: int) -> list[SourceRecord]:
        """The next records, at most `at_most`; `position` moves behind them.

        None may come, though the position has moved.
        """
        return self._reader.take(at_most)
