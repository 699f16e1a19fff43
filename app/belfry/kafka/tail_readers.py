"""Consumers that stay connected between looks at the ends of topics, whichever topic is next.

To connect takes longer than to look: a new consumer asks for brokers, opens a connection to each of
them, and learns the leaders. So a look takes a consumer that an earlier look has left, and leaves
it again:

    look 1   makes a consumer          120 ms
    look 2   takes it                   15 ms
    look 3   beside look 2: makes one  120 ms     both are kept, `MOST_IDLE` at most

If a look fails, its consumer is closed, and the look is made once more with a new one: a consumer
may not recover after a broker has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaException, Message

from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.kafka.topic_tail import TopicTail, connected, last_before

R = TypeVar("R")
MOST_IDLE: Final = 4


class TailReaders:
    """Looks at the ends of topics; any thread may look, each with a consumer of its own."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        """`properties` are librdkafka's."""
        self._properties = dict(properties)
        self._lock = machine.Lock()
        self._idle: list[librdkafka.Consumer] = []

    def look(
        self, topic: str, work: Callable[[TopicTail], R], before: Mapping[int, int] | None = None
    ) -> R:
        """The result of `work` for the end of a topic, or for the records before some offsets.

        `work` may be called a second time, with another tail. Raises ConnectionError and
        KafkaException if Kafka does not answer.
        """
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        if idle is not None:
            try:
                return self._look(idle, topic, work, before)
            except (ConnectionError, KafkaException):
                pass
        return self._look(connected(self._properties), topic, work, before)

    def record_at(self, topic: str, place: tuple[int, int]) -> Message | None:
        """The committed record at a place (partition, offset); None if there is none."""
        partition, end = place[0], place[1] + 1
        work = partial(last_before, partition=partition, end=end)
        return self.look(topic, work, {partition: end})

    def _look(
        self,
        consumer: librdkafka.Consumer,
        topic: str,
        work: Callable[[TopicTail], R],
        before: Mapping[int, int] | None,
    ) -> R:
        try:
            found = work(TopicTail(self._properties, topic, before, consumer))
            consumer.unassign()
        except BaseException:
            consumer.close()
            raise
        with self._lock:
            kept = len(self._idle) < MOST_IDLE
            if kept:
                self._idle.append(consumer)
        if not kept:
            consumer.close()
        return found
