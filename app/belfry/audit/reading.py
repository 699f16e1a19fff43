"""Reads the audit log: events in the topic since an instant, and those that come from now on.

    listed     from the first record of the instant to the present ends: a list, the oldest first
    followed   the same, and then on for ever: events as they come

For the command line, with Kafka's rights; no worker is asked.  Events of one tenant lie in one
partition, so their order holds; events of several partitions are sorted by their instants.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import OFFSET_END, KafkaException, TopicPartition

from belfry.client.decoding import Decoder
from belfry.client.faults import permanent
from belfry.client.kafka import NO_GROUP, Cluster, headers_of
from belfry.client.watermarks import offsets_since, watermarks
from belfry.wire.audit import AuditEvent, audit_of

POLL_S: Final = 0.5
REQUEST_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which events are wanted; None stands for all.

    `since_ms` is compared with the instant of the event, in epoch milliseconds; records are
    searched by their timestamps in Kafka, which are a moment later.
    """

    tenant: str | None = None
    caller: str | None = None
    result: str | None = None
    since_ms: int | None = None

    def takes(self, event: AuditEvent) -> bool:
        """Whether an event is one of these."""
        given = (self.tenant, self.caller, self.result)
        found = (event.tenant, event.caller, event.result)
        since_ms = 0 if self.since_ms is None else self.since_ms
        return event.at >= since_ms and all(
            want in (None, have) for want, have in zip(given, found, strict=True)
        )


class AuditReader:
    """Events of the topic; belongs to one thread, which waits in its methods.

    Each method has a consumer of its own, without a group, and closes it at its end.
    """

    def __init__(self, cluster: Cluster, topic: str, decoder: Decoder) -> None:
        self._cluster = cluster
        self._topic = topic
        self._decoder = decoder

    def listed(self, wanted: AuditFilter) -> list[AuditEvent]:
        """Events that lie in the topic now, the oldest first; blocks until all are read.

        Raises `Unavailable` where Kafka's error is permanent.
        """
        found: list[AuditEvent] = []
        with closing(self._cluster.consumer(NO_GROUP)) as consumer:
            ends = self._ends(consumer)
            places = self._begin(consumer, wanted.since_ms)
            left = {each.partition for each in places if each.offset < ends[each.partition]}
            consumer.assign(places)
            while left:
                found += self._read(consumer, wanted)
                position = consumer.position(places)
                left -= {each.partition for each in position if _at_end(each, ends)}
        return sorted(found, key=lambda event: event.at)

    def followed(self, wanted: AuditFilter) -> Iterator[AuditEvent | None]:
        """Events as they come, from `since_ms` on or from now on; None where none came lately.

        The None gives the caller a turn about each half second, so that it can notice a stop.
        """
        with closing(self._cluster.consumer(NO_GROUP)) as consumer:
            if wanted.since_ms is None:
                consumer.assign(self._cluster.ends(consumer, self._topic))
            else:
                consumer.assign(self._begin(consumer, wanted.since_ms))
            while True:
                found = self._read(consumer, wanted)
                yield from found or (None,)

    def _read(self, consumer: Any, wanted: AuditFilter) -> list[AuditEvent]:
        found = []
        for message in consumer.consume(1_000, POLL_S):
            error = message.error()
            if error is not None:
                if permanent(error):
                    raise self._cluster.unavailable(error, self._topic)
                continue
            event = self._event(message)
            if event is not None and wanted.takes(event):
                found.append(event)
        return found

    def _event(self, message: Any) -> AuditEvent | None:
        value = message.value()
        record = None if value is None else self._decoder.record(value, headers_of(message))
        return None if record is None else audit_of(record)

    def _begin(self, consumer: Any, since_ms: int | None) -> list[TopicPartition]:
        """The offset in each partition where events of an instant and later begin."""
        ends = self._ends(consumer)
        asked = [TopicPartition(self._topic, each, max(0, since_ms or 0)) for each in ends]
        try:
            found = offsets_since(consumer, asked, REQUEST_S)
        except KafkaException as error:
            raise self._cluster.unavailable(error.args[0], self._topic) from None
        return [
            TopicPartition(
                each.topic,
                each.partition,
                ends[each.partition] if each.offset == OFFSET_END else each.offset,
            )
            for each in found
        ]

    def _ends(self, consumer: Any) -> dict[int, int]:
        partitions = self._cluster.partitions(consumer, self._topic)
        places = {each: TopicPartition(self._topic, each) for each in partitions}
        try:
            return {n: watermarks(consumer, place, REQUEST_S)[1] for n, place in places.items()}
        except KafkaException as error:
            raise self._cluster.unavailable(error.args[0], self._topic) from None


def _at_end(place: TopicPartition, ends: dict[int, int]) -> bool:
    return place.offset >= ends[place.partition]
