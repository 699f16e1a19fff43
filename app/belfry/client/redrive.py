"""Redrive: records of a range are sent again, each once: refused requests, or fired events.

    belfry.rejected/0   41 other tenant   42   43                    57 mark of 42   58 mark of 43
                                          │    │                        ▲               ▲
                                          └────┴─── one transaction ────┴───────────────┘
    belfry.schedules                                └─► request of 42, request of 43

A request goes back to the topic in which it was first received, with the key, value and headers
that it had, and one header more: `belfry-origin-redriven`, with the place of its refusal.
Signatures leave such headers out, so a signed request still proves whose it is.

The mark of a refusal lies in the same partition, behind it.  Who redrives reads all marks first, up
to the end of the log (`redrive_reading.py`).  So a range may be asked for again after a crash, or
together with another range.  All redrives have one transactional id, so one that begins ends the
one before.  One that finds nothing to send does not begin.

An event that has fired goes to the partition in which it lies, behind it (`refired.py`), and so is
a mark itself.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from math import inf
from time import monotonic, sleep
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster, headers_of
from belfry.client.redrive_reading import TIMEOUT_S, Pause, RangeReader
from belfry.client.redrive_source import (
    AnotherRedrive,
    RedriveCount,
    RedriveSource,
    Resent,
)
from belfry.kafka.rights import TRANSACTIONAL_ID

PER_SECOND: Final = 100
# The partition that the key says.
BY_KEY: Final = -1
# Records of one transaction.
TOGETHER: Final = 100
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
        pause: Pause | None = None,
    ) -> None:
        """`names` are the transactional id, and the group that readers name.

        With more than `most_read` records it counts and sends none.  `pause` waits so many seconds
        between two transactions and says whether to end there; it is asked while reading, too.
        """
        self._cluster = cluster
        self._id, group = names
        self._source = source
        self._pause = pause or _slept
        self._reader = RangeReader(cluster, group, source, most_read, self._pause)

    def count(self) -> RedriveCount:
        """Count what `send` would send now; it sends nothing.

        Raises `Unavailable`, and `TooMuchToRedrive`.
        """
        return self._reader.count()

    def send(
        self,
        *,
        per_second: int = PER_SECOND,
        told: Callable[[int], None] = lambda _sent: None,
        at_most: int | None = None,
        at_most_s: float = inf,
    ) -> RedriveCount:
        """Send records of the range, the first `at_most`; returns the counts of the range.

        After `at_most_s` seconds of sending no further transaction begins.
        Raises `Unavailable`: ask again then, for sent records are marked; and `TooMuchToRedrive`.
        """
        # Another one is ended only where there is something to send.
        found = self._reader.count(until_any=True)
        if not found.places:
            return found
        producer = self._cluster.transactional(self._id)
        consumer = self._reader.consumer()
        try:
            # This ends an earlier redrive and its transaction, so all marks are there to be seen.
            producer.init_transactions(TIMEOUT_S)
            found, sent = self.count(), 0
            places = found.places[:at_most]
            todo = self._reader.records(consumer, places)
            until = monotonic() + at_most_s
            while some := list(islice(todo, min(TOGETHER, per_second))):
                began = monotonic()
                self._send(producer, some)
                sent += len(some)
                told(sent)
                goes_on = max(began + len(some) / per_second, monotonic())
                if sent == len(places) or goes_on >= until:
                    break
                if self._pause(max(0.0, goes_on - monotonic())):
                    break
        except KafkaException as error:
            raise self._failure(error.args[0]) from None
        finally:
            consumer.close()
        return found

    def _send(self, producer: Producer, some: list[Message]) -> None:
        """Send records again, with their marks, as one transaction."""
        producer.begin_transaction()
        try:
            for message in some:
                for each in self._source.again(message, headers_of(message)):
                    _write(producer, each)
            producer.commit_transaction(TIMEOUT_S)
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


def _slept(seconds: float) -> bool:
    """Wait; nothing ends it."""
    if seconds > 0:
        sleep(seconds)
    return False


def _write(producer: Producer, each: Resent) -> None:
    # Kafka's client takes null values of headers, whatever its types say.
    headers: Any = each.headers
    partition = BY_KEY if each.partition is None else each.partition
    producer.produce(each.topic, each.value, each.key, partition, headers=headers)


def _undo(producer: Producer) -> None:
    """Roll back; where that fails, the next redrive does it."""
    try:
        producer.abort_transaction(TIMEOUT_S)
    except KafkaException:
        return
