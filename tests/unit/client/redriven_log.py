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


def refusal(request: Headers) -> Headers:
    """The headers of a request that was refused."""
    why = {"code": b"too_many_pending", "tenant": b"demo", "topic": b"belfry.schedules"}
    return [*request, *((f"belfry-error-{name}", value) for name, value in why.items())]


class RedrivenLog(Cluster):
    """A cluster with one topic of one partition; its clients are made by it as by `Cluster`."""

    def __init__(self, records: list[Headers], topic: str = TOPIC) -> None:
        super().__init__("127.0.0.1:1", {})
        self.records, self.topic = list(records), topic
        # How often a redrive has begun, by `init_transactions`.
        self.begun = 0
        self.transactions: list[int] = []
        self.read = 0
        # When each record was written, by its offset.
        self.at_ms: Callable[[int], int] = lambda _offset: 1
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

    def offsets_for_times(self, asked: list[TopicPartition], **_: Any) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, 0, 0 if self._log.records else -1) for _ in asked]

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        return 0, len(self._log.records)

    def assign(self, places: list[TopicPartition]) -> None:
        self._next = places[0].offset

    def consume(self, most: int, _: float) -> list[Message]:
        found = self._log.records[self._next :][:most]
        begin, self._next = self._next, self._next + len(found)
        self._log.read += len(found)
        end = Message(offset=begin, error=KafkaError(KafkaError._PARTITION_EOF))
        return [self._record(begin + n, headers) for n, headers in enumerate(found)] or [end]

    def _record(self, offset: int, headers: Headers) -> Message:
        said: Any = {"headers": headers, "timestamp": (1, self._log.at_ms(offset))}
        return Message(topic=self._log.topic, partition=0, offset=offset, **said)


class LogProducer:
    """Writes whole transactions, until a newer one has begun."""

    def __init__(self, log: RedrivenLog) -> None:
        self._log, self._epoch = log, 0
        self._open: list[Headers] = []
        self._asked: list[Headers] = []

    def init_transactions(self, _: float) -> None:
        self._log.begun += 1
        self._epoch = self._log.begun

    def begin_transaction(self) -> None:
        self._open, self._asked = [], []

    def produce(self, topic: str, *_: Any, headers: Headers) -> None:
        if topic == self._log.topic:
            self._open.append(headers)
        else:
            self._asked.append(headers)

    def commit_transaction(self, _: float) -> None:
        self._log.commits()
        if self._epoch != self._log.begun:
            raise KafkaException(KafkaError(KafkaError._FENCED))
        # What is asked for once more is refused once more.
        self._log.records += self._open + [refusal(each) for each in self._asked]
        self._log.transactions.append(len(self._open))

    def abort_transaction(self, _: float) -> None:
        self._open, self._asked = [], []
