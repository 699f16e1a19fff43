"""Where one partition of a topic begins and ends, and what it means to read from an offset of it.

    first offset ── … ── last stable offset ── what an open transaction holds back ── end
    └────── readers of committed records ──┘

An offset before the first one is gone, and one behind the end is of another log: nobody may go on
from there without a closer look.  An open transaction hides the end from readers, but what was read
before stays read.

Leaders move while brokers are restarted.  A client goes on asking the one that it knows until the
time of the question is over, also where that broker is gone.  So a question is a few short tries,
and between them the brokers are asked who leads:

    12:00:00.0  where does 3 end?  broker 1, which stops just now
    12:00:00.5  no answer: who leads 3?  broker 2
    12:00:00.6  broker 2 says where it ends: a take-over has waited for 0.6 s, and not for 10 s
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.host import machine
from belfry.kafka import librdkafka, offset_client
from belfry.kafka.client_properties import untold

Record = TypeVar("Record")
# Seconds for one answer, and for the first try; each further one has twice as long, since a broker
# that is slow is not gone.
REQUEST_S: Final = 10.0
TRY_S: Final = 0.5
# Seconds between two looks for a partition's leader.
LOOK_S: Final = 0.1
# What a rolling restart may answer: asked again for as long as a question may take, since a term
# that ended by it would have to open and read everything once more.
_PASSING: Final = (
    KafkaError._TIMED_OUT,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    # What librdkafka says itself, where the connection to the former leader ends amid the question.
    KafkaError._TRANSPORT,
    KafkaError._DESTROY,
    KafkaError._DESTROY_BROKER,
)
WITHOUT_GROUP: Final[dict[str, Any]] = {
    "group.id": "belfry-reads-without-a-group",
    "enable.auto.commit": False,
}


class LostRange(Exception):
    """The log no longer holds an offset that is still to be read."""


class AheadOfLog(LostRange):
    """An offset was read that the log does not reach: its end was cut off, or it is another log."""

    def __init__(self, what: str, end: int, offset: int) -> None:
        super().__init__(what)
        self.end = end
        self.offset = offset


class OutOfRange(LostRange):
    """The log that was being read has changed under its reader: seek anew to learn how."""


class LogEnds:
    """Where logs begin and end; two clients for a whole worker, for any thread."""

    def __init__(self, properties: dict[str, Any]) -> None:
        """`properties` are librdkafka's."""
        self._clients = {
            isolation: offset_client.OffsetClient({**properties, "isolation.level": isolation})
            for isolation in ("read_committed", "read_uncommitted")
        }

    def ends(self, topic: str, partition: int, wait_s: float = REQUEST_S) -> tuple[int, int]:
        """First offset of a log, and the first one that an open transaction holds back.

        Raises ConnectionError where nobody answers in so many seconds.
        """
        return self._asked("read_committed", TopicPartition(topic, partition), wait_s)

    def end(self, topic: str, partition: int, wait_s: float = REQUEST_S) -> int:
        """The offset after the last record, whether it is held back or not; raises as `ends`."""
        return self._asked("read_uncommitted", TopicPartition(topic, partition), wait_s)[1]

    def partitions(self, topic: str, wait_s: float = REQUEST_S) -> list[int]:
        """The partitions of a topic; none where there is no such topic. Raises KafkaException."""
        client, until = self._clients["read_uncommitted"], machine.monotonic() + wait_s
        while True:
            left_s = max(until - machine.monotonic(), LOOK_S)
            try:
                found = client.list_topics(topic, left_s).topics.get(topic)
            except KafkaException as error:
                # Brokers that take no connections may be starting.
                if error.args[0].code() not in _PASSING or machine.monotonic() >= until:
                    raise
                machine.sleep(LOOK_S)
            else:
                return [] if found is None else sorted(found.partitions)

    def _asked(self, isolation: str, where: TopicPartition, wait_s: float) -> tuple[int, int]:
        client = self._clients[isolation]
        try:
            return asked(client, where, wait_s)
        except ConnectionError:
            # A connection may lead nowhere: the next question makes another one.
            client.close()
            raise

    def close(self) -> None:
        """Close the connections; another question opens others."""
        for client in self._clients.values():
            client.close()


def asked(
    client: librdkafka.Consumer | offset_client.OffsetClient,
    where: TopicPartition,
    wait_s: float = REQUEST_S,
) -> tuple[int, int]:
    """Where a partition begins and ends, as a consumer's isolation has it; or ConnectionError."""
    until, try_s = machine.monotonic() + wait_s, TRY_S
    while True:
        most_s = min(try_s, max(until - machine.monotonic(), LOOK_S))
        why, passes = f"no answer within {wait_s} s", True
        try:
            ends = client.get_watermark_offsets(where, most_s, cached=False)
            if ends is not None:
                return ends[0], ends[1]
        except KafkaException as error:
            why, passes = error.args[0].str(), error.args[0].code() in _PASSING
        if not passes or machine.monotonic() >= until:
            raise ConnectionError(f"{where.topic}: {why}")
        machine.sleep(LOOK_S)
        with suppress(KafkaException):
            client.list_topics(where.topic, most_s)
        try_s *= 2


class LogBounds:
    """Where one partition of a topic begins and ends; any thread may ask.

    Without a worker's `log_ends` each question takes a connection of its own. Raises
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

    def _asked(self, isolation: str) -> tuple[int, int]:
        consumer = librdkafka.Consumer({**untold(self._properties), "isolation.level": isolation})
        try:
            return asked(consumer, self._name)
        finally:
            consumer.close()

    def check(self, offset: int) -> None:
        """Whether one can read from this offset on; raises LostRange or AheadOfLog."""
        low, high = self.ends()
        # An open transaction may hold the end back that readers see; what was read stays read.
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
        """Batches up to the offset `end`; it waits where `end` is not there yet, and the caller may
        stop.
        """
        while self.position < end:
            records = self.read(at_most, 0.1)
            if records or self.position >= end:
                yield records
