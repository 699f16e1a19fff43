"""Redrive: records of a range are sent again, each once: refused requests, or fired events.

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

An event that has fired goes to the partition in which it lies, behind it (`refired.py`), and so is
a mark itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic, sleep
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster, headers_of
from belfry.client.redrive_source import (
    AnotherRedrive,
    Place,
    RedriveCount,
    RedriveSource,
    Resent,
    TooMuchToRedrive,
)
from belfry.kafka.rights import TRANSACTIONAL_ID

PER_SECOND: Final = 100
# The partition that the key says.
BY_KEY: Final = -1
# Records of one transaction.
TOGETHER: Final = 100
_BATCH: Final = 500
_POLL_S: Final = 0.2
_TIMEOUT_S: Final = 30.0
_FENCED: Final = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}


class Redrive:
    """Sends the records of a source again; belongs to one thread."""

    def __init__(
        self,
        cluster: Cluster,
        names: tuple[str, str],
        source: RedriveSource,
        most_read: int | None = None,
    ) -> None:
        """`names` are the transactional id, and the group that readers name.

        Of more than `most_read` records nothing is counted or sent.
        """
        self._cluster = cluster
        self._id, self._group = names
        self._source = source
        self._most_read = most_read
        self._read_so_far = 0

    def count(self) -> RedriveCount:
        """What `send` would do now; nothing changes.

        Raises `Unavailable`, and `TooMuchToRedrive`.
        """
        self._read_so_far = 0
        found = RedriveCount()
        consumer = self._cluster.consumer(self._group, from_beginning=True, tells_ends=True)
        try:
            for partition in self._cluster.partitions(consumer, self._source.topic):
                self._look(consumer, partition, found)
        except KafkaException as error:
            raise self._cluster.unavailable(error.args[0], self._source.topic) from None
        finally:
            consumer.close()
        return found

    def send(
        self,
        *,
        per_second: int = PER_SECOND,
        told: Callable[[int], None] = lambda _sent: None,
        at_most: int | None = None,
    ) -> RedriveCount:
        """Send what the range holds, the first `at_most` of it; what it held is the answer.

        Raises `Unavailable`: ask again then, for what was sent is marked; and `TooMuchToRedrive`.
        """
        producer = self._cluster.transactional(self._id)
        consumer = self._cluster.consumer(self._group, from_beginning=True, tells_ends=True)
        try:
            # This ends an earlier redrive and its transaction, so all marks are there to be seen.
            producer.init_transactions(_TIMEOUT_S)
            found, sent = self.count(), 0
            places = found.places[:at_most]
            todo = self._records(consumer, places)
            while some := list(islice(todo, min(TOGETHER, per_second))):
                began = monotonic()
                self._send(producer, some)
                sent += len(some)
                told(sent)
                if sent < len(places):
                    sleep(max(0.0, began + len(some) / per_second - monotonic()))
        except KafkaException as error:
            raise self._failure(error.args[0]) from None
        finally:
            consumer.close()
        return found

    def _look(self, consumer: Consumer, partition: int, found: RedriveCount) -> None:
        """Add what a partition holds; marks lie behind what they mark."""
        wanted: dict[int, tuple[str, str | None]] = {}
        for message in self._read(consumer, partition):
            self._read_so_far += 1
            if self._most_read is not None and self._read_so_far > self._most_read:
                raise TooMuchToRedrive(self._most_read)
            headers = headers_of(message)
            marked = self._source.marked(headers)
            if marked is not None:
                found.redriven += wanted.pop(marked, None) is not None
            elif each := self._source.wanted(message.timestamp()[1], headers):
                wanted[message.offset() or 0] = each
        for offset, (code, hindrance) in wanted.items():
            if hindrance is None:
                found.codes[code] += 1
                found.places.append((partition, offset))
            else:
                found.stuck[hindrance] += 1

    def _read(self, consumer: Consumer, partition: int) -> Iterator[Message]:
        """Committed records of the range, and what lies behind it, up to where the log ends now."""
        since = TopicPartition(self._source.topic, partition, self._source.from_ms)
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
            place = TopicPartition(self._source.topic, partition)
            end: int = looks.get_watermark_offsets(place, _TIMEOUT_S, cached=False)[1]
            return end
        finally:
            looks.close()

    def _records(self, consumer: Consumer, places: list[Place]) -> Iterator[Message]:
        """The records at these places, in their order."""
        by_partition: dict[int, set[int]] = {}
        for partition, offset in places:
            by_partition.setdefault(partition, set()).add(offset)
        for partition, offsets in by_partition.items():
            first, end = min(offsets), max(offsets) + 1
            consumer.assign([TopicPartition(self._source.topic, partition, first)])
            for message in _up_to(consumer, first, end):
                if message.offset() in offsets:
                    yield message

    def _send(self, producer: Producer, some: list[Message]) -> None:
        """Send records again, with their marks, as one transaction."""
        producer.begin_transaction()
        try:
            for message in some:
                for each in self._source.again(message, headers_of(message)):
                    _write(producer, each)
            producer.commit_transaction(_TIMEOUT_S)
        except (KafkaException, BufferError) as error:
            _undo(producer)
            if isinstance(error, BufferError):
                raise KafkaException(KafkaError(KafkaError._QUEUE_FULL)) from None
            raise

    def _failure(self, error: KafkaError) -> Unavailable:
        if error.code() in _FENCED:
            return AnotherRedrive(
                "Another redrive has begun, so this one ended: one works at a time. What was sent"
                " is marked. Ask again when the other has ended."
            )
        if error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return self._cluster.refused("Write", TRANSACTIONAL_ID, self._id)
        return self._cluster.unavailable(error)


def _write(producer: Producer, each: Resent) -> None:
    # Kafka's client takes null values of headers, whatever its types say.
    headers: Any = each.headers
    partition = BY_KEY if each.partition is None else each.partition
    producer.produce(each.topic, each.value, each.key, partition, headers=headers)


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
