"""A topic of one partition in memory, for redrives: transactions are whole, and a newer one fences.

log = RedrivenLog([event("a"), event("b")])
Redrive(log, NAMES, FiredSource(TOPIC, RefireRange(0, 9))).send()
log.records                          a, b, copy of a, copy of b
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from belfry.client.kafka import Cluster
from belfry.wire.record import Headers

TOPIC: Final = "belfry.fired.demo"
NAMES: Final = ("belfry.redrive", "readers")


def event(schedule_id: str) -> Headers:
    """The headers of an event that has fired."""
    return [
        ("belfry-fire-id", schedule_id.encode()),
        ("belfry-schedule-id", schedule_id.encode()),
    ]


def _record(offset: int, headers: Headers | None, at_ms: int = 1) -> Message:
    """A record of the log; the end of it where it has no headers."""
    given: dict[str, Any] = {"headers": headers, "timestamp": (1, at_ms)}
    if headers is None:
        given = {"error": KafkaError(KafkaError._PARTITION_EOF)}
    return Message(topic=TOPIC, partition=0, offset=offset, **given)


class RedrivenLog(Cluster):
    """A cluster with one topic of one partition; its clients are made by it as by `Cluster`."""

    def __init__(self, records: list[Headers]) -> None:
        super().__init__("127.0.0.1:1", {})
        self.records = list(records)
        # How often a redrive has begun, by `init_transactions`.
        self.begun = 0
        self.transactions: list[int] = []
        self.read = 0
        # Called before each transaction is committed.
        self.commits: Callable[[], None] = lambda: None

    def partitions(self, *_: Any) -> list[int]:
        return [0]

    def consumer(self, *_: Any, **__: Any) -> Any:
        return LogConsumer(self)

    def transactional(self, *_: Any) -> Any:
        return LogProducer(self)


class LogConsumer:
    """Reads the log from where it is assigned."""

    def __init__(self, log: RedrivenLog) -> None:
        self._log, self._next = log, 0

    def close(self) -> None:
        """Nothing is open."""

    def offsets_for_times(self, asked: list[TopicPartition], *_: Any) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, 0, 0 if self._log.records else -1) for _ in asked]

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        return 0, len(self._log.records)

    def assign(self, places: list[TopicPartition]) -> None:
        self._next = places[0].offset

    def consume(self, most: int, _: float) -> list[Message]:
        found = self._log.records[self._next :][:most]
        begin, self._next = self._next, self._next + len(found)
        self._log.read += len(found)
        return [_record(begin + n, headers) for n, headers in enumerate(found)] or [
            _record(self._next, None)
        ]


class LogProducer:
    """Writes whole transactions, until a newer one has begun."""

    def __init__(self, log: RedrivenLog) -> None:
        self._log, self._epoch = log, 0
        self._open: list[Headers] = []

    def init_transactions(self, _: float) -> None:
        self._log.begun += 1
        self._epoch = self._log.begun

    def begin_transaction(self) -> None:
        self._open = []

    def produce(self, *_: Any, headers: Headers) -> None:
        self._open.append(headers)

    def commit_transaction(self, _: float) -> None:
        self._log.commits()
        if self._epoch != self._log.begun:
            raise KafkaException(KafkaError(KafkaError._FENCED))
        self._log.records += self._open
        self._log.transactions.append(len(self._open))

    def abort_transaction(self, _: float) -> None:
        self._open = []
