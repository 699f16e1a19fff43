"""Requests that were handed to a producer, and what Kafka said of each.

librdkafka tells the result of a record by a callback, out of `flush` or `poll`. Several callers
share a producer, so any thread may be called back, and each caller looks at its own records alone:

    caller      produce a b c ─────────────── poll ── all_told ─► places: a 0@17, b 2@4, c 0@18
    librdkafka        └─► broker ─► acks ─────┘ calls `told` for each
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event
from time import monotonic
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from belfry.client.kafka import Cluster
from belfry.client.verdict import Verdict

# Seconds for which one look for results lasts.
POLL_S: Final = 0.01


class Place(NamedTuple):
    """What became of one record: where it lies, or why it does not."""

    error: KafkaError | None
    topic: str | None
    partition: int | None
    offset: int | None


class HandedOver:
    """Some requests that a producer has, in their order; `sizes` are bytes of their values."""

    def __init__(self, producer: Producer, sent: list[Verdict]) -> None:
        self._producer = producer
        self.sent = sent
        self.sizes: list[int] = []
        self.places: list[Place | None] = [None] * len(sent)
        self._failed = False
        # How many were told of: threads append at the same time, and none of them counts.
        self._told: list[None] = []
        self._all_told = Event()

    def callback(self, number: int) -> Callable[[KafkaError | None, Message], None]:
        """The callback of the record with this number, from 0."""
        return partial(self._tell, number)

    def _tell(self, number: int, error: KafkaError | None, message: Message) -> None:
        """Called by the thread that polls."""
        if error is None:
            place = Place(None, message.topic(), message.partition(), message.offset())
        else:
            place = Place(error, None, None, None)
            self._failed = True
        self.places[number] = place
        self._told.append(None)
        if len(self._told) == len(self.places):
            self._all_told.set()

    @property
    def failed(self) -> bool:
        """Whether one of them is not known to be written, once they were waited for."""
        return self._failed or len(self._told) < len(self.places)

    def flushed(self, cluster: Cluster, timeout_s: float) -> None:
        """Have them sent at once, and wait until all were told of; raises KafkaException.

        It may take `timeout_s` seconds for each of the two.
        """
        flush(cluster, self._producer, timeout_s)
        # Another thread may have been called back, and may not be through yet.
        self._all_told.wait(timeout_s)

    def heard(self, cluster: Cluster, timeout_s: float) -> None:
        """Poll until all were told of, for `timeout_s` seconds at most; raises KafkaException."""
        deadline = monotonic() + timeout_s
        while len(self._told) < len(self.places) and monotonic() < deadline:
            _served(cluster, self._producer.poll, POLL_S)


def flush(cluster: Cluster, producer: Producer, timeout_s: float) -> int:
    """Wait for records to be delivered; how many are not. Raises KafkaException if none can be."""
    return _served(cluster, producer.flush, timeout_s)


def _served(cluster: Cluster, call: Callable[[float], int], timeout_s: float) -> int:
    """A call of a producer that calls back.

    The client raises a fatal error amid a callback.  The next callback then fails for no reason of
    its own, or clears the error: then the cause is asked of a new producer.
    """
    try:
        return call(timeout_s)
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise cluster.fatal() from None
