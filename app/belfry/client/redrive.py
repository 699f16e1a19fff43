"""Redrive: requests that were refused are sent again, each once, as they were received.

    belfry.rejected/0   41 other tenant   42   43                    57 mark of 42   58 mark of 43
                                          │    │                        ▲               ▲
                                          └────┴─── one transaction ────┴───────────────┘
    belfry.schedules                                └─► request of 42, request of 43

A request goes back to the topic in which it was first received, with the key, value and headers
that it had, and one header more: `belfry-origin-redriven`, with the place of its refusal.
Signatures leave such headers out, so a signed request still proves whose it is.

The mark of a refusal lies in the same partition, behind it.  Who redrives reads all marks first, up
to the end of the log.  So a range may be asked for again after a crash, or together with another
range.  All redrives have one transactional id, so one that begins ends the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic, sleep
from typing import Any, Final, TypedDict

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster, headers_of
from belfry.client.refusals import RedriveRange, refused_request

PER_SECOND: Final = 100
# Requests of one transaction.
TOGETHER: Final = 100
_BATCH: Final = 500
_POLL_S: Final = 0.2
_TIMEOUT_S: Final = 30.0
_FENCED: Final = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}

Place = tuple[int, int]


class RedriveOptions(TypedDict, total=False):
    """How refused requests are sent again."""

    per_second: int
    """Requests a second (100)."""
    reason: str | None
    """Why, in words of your own; it stands in the marks."""
    told: Callable[[int], None]
    """Called with the number that has been sent so far."""


@dataclass(slots=True)
class RedriveCount:
    """What a range holds: `codes` of what is to be sent, what was `redriven`, and what cannot be.

    `stuck` counts by reason: ``cut`` (belfry.rejected has not all of it), ``elsewhere`` (it came
    from no topic of requests).  `places` are partition and offset of what is to be sent.
    """

    codes: Counter[str] = field(default_factory=Counter)
    redriven: int = 0
    stuck: Counter[str] = field(default_factory=Counter)
    places: list[Place] = field(default_factory=list, repr=False)


class Redrive:
    """Sends requests again that were refused; belongs to one thread."""

    def __init__(self, cluster: Cluster, prefix: str, group: str) -> None:
        """Topics and the transactional id begin with `prefix`."""
        self._cluster = cluster
        self._prefix = prefix
        self._group = group
        self._rejected = f"{prefix}rejected"

    def count(self, asked: RedriveRange) -> RedriveCount:
        """What `send` would do now; nothing changes.  Raises `Unavailable`."""
        found = RedriveCount()
        consumer = self._cluster.consumer(self._group, from_beginning=True, tells_ends=True)
        try:
            for partition in self._cluster.partitions(consumer, self._rejected):
                self._look(consumer, partition, asked, found)
        except KafkaException as error:
            raise self._cluster.unavailable(error.args[0]) from None
        finally:
            consumer.close()
        return found

    def send(
        self,
        asked: RedriveRange,
        *,
        per_second: int = PER_SECOND,
        reason: str | None = None,
        told: Callable[[int], None] = lambda _sent: None,
    ) -> RedriveCount:
        """Send what the range holds; `codes` of the answer counts what was sent.

        Raises `Unavailable`: ask again then, for what was sent is marked.
        """
        producer = self._cluster.transactional(f"{self._prefix}redrive")
        consumer = self._cluster.consumer(self._group, from_beginning=True, tells_ends=True)
        try:
            # This ends an earlier redrive and its transaction, so all marks are there to be seen.
            producer.init_transactions(_TIMEOUT_S)
            found, sent = self.count(asked), 0
            todo = self._requests(consumer, found.places)
            while some := list(islice(todo, min(TOGETHER, per_second))):
                began = monotonic()
                self._send(producer, some, reason)
                sent += len(some)
                told(sent)
                if sent < len(found.places):
                    sleep(max(0.0, began + len(some) / per_second - monotonic()))
        except KafkaException as error:
            raise self._failure(error.args[0]) from None
        finally:
            consumer.close()
        return found

    def _look(
        self, consumer: Consumer, partition: int, asked: RedriveRange, found: RedriveCount
    ) -> None:
        """Add what a partition holds; marks lie behind what they mark."""
        wanted: dict[int, tuple[str, str | None]] = {}
        for message in self._read(consumer, partition, asked.from_ms):
            refused = refused_request(headers_of(message))
            if refused is None:
                continue
            if refused.marked is not None:
                found.redriven += wanted.pop(refused.marked, None) is not None
            elif message.timestamp()[1] < asked.until_ms and refused.wanted(asked):
                hindrance = refused.hindrance(f"{self._prefix}schedules")
                wanted[message.offset() or 0] = refused.text("code"), hindrance
        for offset, (code, hindrance) in wanted.items():
            if hindrance is None:
                found.codes[code] += 1
                found.places.append((partition, offset))
            else:
                found.stuck[hindrance] += 1

    def _read(self, consumer: Consumer, partition: int, from_ms: int) -> Iterator[Message]:
        """Committed records from an instant on, up to where the log ends now."""
        since = TopicPartition(self._rejected, partition, from_ms)
        (start,) = consumer.offsets_for_times([since], _TIMEOUT_S)
        if start.offset < 0:
            return
        end = self._end(partition)
        consumer.assign([start])
        yield from _up_to(consumer, start.offset, end)

    def _end(self, partition: int) -> int:
        """Where the log ends, behind transactions that are open: a mark may lie behind them."""
        looks = self._cluster.consumer(self._group, uncommitted=True)
        try:
            place = TopicPartition(self._rejected, partition)
            end: int = looks.get_watermark_offsets(place, _TIMEOUT_S, cached=False)[1]
            return end
        finally:
            looks.close()

    def _requests(self, consumer: Consumer, places: list[Place]) -> Iterator[Message]:
        """The records at these places, in their order."""
        by_partition: dict[int, set[int]] = {}
        for partition, offset in places:
            by_partition.setdefault(partition, set()).add(offset)
        for partition, offsets in by_partition.items():
            first, end = min(offsets), max(offsets) + 1
            consumer.assign([TopicPartition(self._rejected, partition, first)])
            for message in _up_to(consumer, first, end):
                if message.offset() in offsets:
                    yield message

    def _send(self, producer: Producer, some: list[Message], reason: str | None) -> None:
        """Send requests and their marks as one transaction."""
        producer.begin_transaction()
        try:
            for message in some:
                self._write(producer, message, reason)
            producer.commit_transaction(_TIMEOUT_S)
        except (KafkaException, BufferError) as error:
            _undo(producer)
            if isinstance(error, BufferError):
                raise KafkaException(KafkaError(KafkaError._QUEUE_FULL)) from None
            raise

    def _write(self, producer: Producer, message: Message, reason: str | None) -> None:
        refused = refused_request(headers_of(message))
        assert refused is not None, "it was looked at before"
        partition, offset = message.partition() or 0, message.offset() or 0
        place = f"{self._rejected}/{partition}@{offset}"
        # Kafka's client takes null values of headers, and key and value of a message as they are.
        key: Any = message.key()
        again: Any = refused.again(place)
        mark: Any = refused.mark(place, offset, reason)
        producer.produce(refused.text("topic"), message.value(), key, headers=again)
        producer.produce(self._rejected, None, key, partition, headers=mark)

    def _failure(self, error: KafkaError) -> Unavailable:
        if error.code() in _FENCED:
            return Unavailable(
                "Another redrive has begun, so this one ended: one works at a time. What was sent"
                " is marked. Ask again when the other has ended."
            )
        return self._cluster.unavailable(error)


def _up_to(consumer: Consumer, reached: int, end: int) -> Iterator[Message]:
    """Records up to an offset; raises KafkaException if nothing comes for long."""
    deadline = monotonic() + _TIMEOUT_S
    while reached < end:
        messages = consumer.consume(_BATCH, _POLL_S)
        if not messages and monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        for message in messages:
            deadline, offset, error = (
                monotonic() + _TIMEOUT_S,
                message.offset() or 0,
                message.error(),
            )
            if error is None:
                reached = offset + 1
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                reached = max(reached, offset)
            elif error.fatal() or not error.retriable():
                raise KafkaException(error)


def _undo(producer: Producer) -> None:
    """Roll back; where that fails, the next redrive does it."""
    try:
        producer.abort_transaction(_TIMEOUT_S)
    except KafkaException:
        return
