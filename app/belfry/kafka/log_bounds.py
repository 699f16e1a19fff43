"""The bounds of one partition of a topic, and checks of an offset to read from.

    first offset ── … ── last stable offset ── held back by an open transaction ── end
    └────── readers of committed records ──┘

An offset before the first one is gone, and an offset behind the end belongs to another log: a
reader must not go on from there without a closer look. An open transaction hides the end from
readers, but records that were read before stay read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import TopicPartition

from belfry.kafka import librdkafka
from belfry.kafka.client_properties import untold
from belfry.kafka.log_ends import LogEnds, asked

Record = TypeVar("Record")
WITHOUT_GROUP: Final[dict[str, Any]] = {
    "group.id": "belfry-reads-without-a-group",
    "enable.auto.commit": False,
}


class LostRange(Exception):
    """The log no longer holds an offset that is still to be read."""


class AheadOfLog(LostRange):
    """The log ends before an offset that was read: its end was cut off, or it is another log."""

    def __init__(self, what: str, end: int, offset: int) -> None:
        super().__init__(what)
        self.end = end
        self.offset = offset


class OutOfRange(LostRange):
    """The log has changed under its reader: seek anew to learn how."""


class LogBounds:
    """The begin and the end of one partition of a topic; any thread may ask.

    Without a worker's `log_ends` each request takes a connection of its own. Raises
    ConnectionError.
    """

    def __init__(
        self,
        properties: dict[str, Any],
        topic: str,
        partition: int,
        log_ends: LogEnds | None = None,
    ) -> None:
        """`properties` are librdkafka's."""
        self._properties = {**properties, **WITHOUT_GROUP}
        self._name = TopicPartition(topic, partition)
        self._log_ends = log_ends

    @property
    def topic(self) -> str:
        """Name of the topic."""
        return str(self._name.topic)

    def ends(self) -> tuple[int, int]:
        """First offset of the log, and the first one that an open transaction holds back."""
        if self._log_ends is not None:
            return self._log_ends.ends(self.topic, self._name.partition)
        return self._asked("read_committed")

    def log_end(self) -> int:
        """The offset after the last record, whether an open transaction holds it back or not.

        Any thread may ask, while another one reads.
        """
        if self._log_ends is not None:
            return self._log_ends.end(self.topic, self._name.partition)
        return self._asked("read_uncommitted")[1]

    def bounds(self) -> tuple[int, int]:
        """First offset of the log, and `log_end`, by one request."""
        if self._log_ends is not None:
            return self._log_ends.bounds(self.topic, self._name.partition)
        return self._asked("read_uncommitted")

    def _asked(self, isolation: str) -> tuple[int, int]:
        consumer = librdkafka.Consumer({**untold(self._properties), "isolation.level": isolation})
        try:
            return asked(consumer, self._name)
        finally:
            consumer.close()

    def check(self, offset: int, known: tuple[int, int] | None = None) -> None:
        """Check that a reader can begin at this offset; raises LostRange or AheadOfLog.

        `known` is the fresh answer of `ends` or `bounds`.
        """
        low, high = self.ends() if known is None else known
        # An open transaction may hold back the end that readers see; records that were read stay
        # read.
        if offset > high and offset > (high := self.log_end()):
            raise AheadOfLog(
                f"{self._name.topic}/{self._name.partition} ends at offset {high}, but offset"
                f" {offset} was read before: this is another topic, or it was created anew",
                high,
                offset,
            )
        if offset < low:
            raise LostRange(
                f"{self._name.topic}/{self._name.partition} begins at offset {low}; offsets"
                f" {offset} to {low - 1} are gone before they were read"
            )


class LogReader(LogBounds, ABC, Generic[Record]):
    """Reads one partition from a position on; `position` is the offset to be read next."""

    position = 0

    @abstractmethod
    def read(self, at_most: int, wait_s: float) -> list[Record]:
        """The next records; `position` moves behind them."""

    def read_until(self, end: int, at_most: int) -> Iterator[list[Record]]:
        """Batches up to the offset `end`; it waits if `end` is not there yet, and the caller may
        stop.
        """
        while self.position < end:
            records = self.read(at_most, 0.1)
            if records or self.position >= end:
                yield records
