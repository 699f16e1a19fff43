"""Reading the requests of one partition from a position on, `read_committed`, without a group.

Requests are written by strangers, so their batches are fetched as they are stored (`fetcher.py`)
and opened with bounds (`batch_reader.py`).  What workers write is read by `PartitionLog`.

The next offset to ask for is told with every portion, also where only control records passed.
"""

from __future__ import annotations

from typing import Any

from belfry.kafka.batch_reader import BatchReader
from belfry.kafka.fetcher import Fetcher, OffsetGone
from belfry.kafka.partition_log import LogBounds, OutOfRange
from belfry.wire.record import SourceRecord


class RequestLog(LogBounds):
    """A reader of one partition of requests; one thread at a time may read.

    Nothing is fetched before the first `seek`. It has a connection of its own to the brokers.
    """

    def __init__(self, properties: dict[str, Any], topic: str, partition: int) -> None:
        super().__init__(properties, topic, partition)
        self._where = topic, partition
        self._fetcher = Fetcher(properties)
        self._reader = BatchReader(self._where, 0)

    @property
    def position(self) -> int:
        """The offset behind what was read."""
        return self._reader.position

    @property
    def appended(self) -> bool:
        """Whether the records that were read last have the broker's append times."""
        return self._reader.appended

    def seek(self, offset: int) -> None:
        """Read from this offset on; LostRange if the log begins later, AheadOfLog if it ends."""
        self.check(offset)
        self._reader = BatchReader(self._where, offset)
        self._fetcher.follow({})
        self._fetcher.follow({self._where: offset})

    def read(self, at_most: int, wait_s: float) -> list[SourceRecord]:
        """The next records, at most `at_most`; `position` moves behind them.

        None may come, though the position has moved.  Raises OutOfRange, or ConnectionError, after
        which one may read on.
        """
        if self._reader.empty:
            answer = self._fetcher.take(wait_s)
            if answer is None:
                return []
            if isinstance(answer.error, OffsetGone):
                raise OutOfRange(str(answer.error))
            if answer.error is not None:
                raise answer.error
            self._reader.add(answer)
        return self._reader.take(at_most)

    def close(self) -> None:
        """Close the connections."""
        self._fetcher.close()
