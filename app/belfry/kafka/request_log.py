"""The requests of one partition from a position on, out of the answers of a fetcher.

Any client may write requests, so their batches are fetched as they are stored (`fetcher.py`) and
opened with bounds (`batch_reader.py`). `ChangelogReader` (rows) and `PartitionLog` (other topics)
read records of workers.

    fetcher ── answers of many partitions ──► add() ─► log of partition 3 ─► take(): records
                                                       log of partition 7

A log has no connection of its own: partitions that are read in one process share a fetcher. The
position moves with every portion, also with control records only.
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
        """`properties` are librdkafka's; without `log_ends` each request takes a connection."""
        super().__init__(properties, topic, partition, log_ends)
        self.where = topic, partition
        self._reader = BatchReader(self.where, 0)

    @property
    def position(self) -> int:
        """The offset behind the records that were taken."""
        return self._reader.position

    @property
    def fetched(self) -> int:
        """The offset behind the batches that were added: the next one to fetch from."""
        return self._reader.fetched

    @property
    def empty(self) -> bool:
        """Whether all added records have been taken."""
        return self._reader.empty

    @property
    def appended(self) -> bool:
        """Whether the records that were taken last have the broker's append times."""
        return self._reader.appended

    def seek(self, offset: int, known: tuple[int, int] | None = None) -> None:
        """Read from this offset on; LostRange if the log begins later, AheadOfLog if it ends.

        `known` is the begin and the end of the log, if that was asked just now.
        """
        self.check(offset, known)
        self._reader = BatchReader(self.where, offset)

    def add(self, answer: Fetched) -> None:
        """Take in the next answer; raises OutOfRange or ConnectionError if it is an error."""
        if isinstance(answer.error, OffsetGone):
            raise OutOfRange(str(answer.error))
        if answer.error is not None:
            raise answer.error
        self._reader.add(answer)

    def take(self, at_most: int) -> list[SourceRecord]:
        """The next records, at most `at_most`; `position` moves behind them.

        The list may be empty although the position has moved.
        """
        return self._reader.take(at_most)
