"""What stands in for confluent-kafka's `Consumer`: partitions assigned by hand, no group.

A reader of committed records stops at the first undecided one; the end of a partition is told once,
with the position behind what markers and aborted records took.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_END,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from tests.simulation.broker import OFFSETS, Log
from tests.simulation.clients import SimMessage, failure, metadata
from tests.simulation.machine import machine
from tests.simulation.replication import LOOK_MS
from tests.simulation.stage import here


@dataclass(slots=True)
class Place:
    """How far a consumer has come with one partition."""

    log: Log
    position: int
    told_end: int = -1


class SimConsumer:
    """`Consumer` with partitions assigned by hand."""

    def __init__(self, properties: dict[str, Any], **_: Any) -> None:
        self._machine = machine()
        self._committed = properties.get("isolation.level", "read_committed") == "read_committed"
        self._group = properties.get("group.id", "")
        self._places: list[Place] = []

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """The cluster's metadata."""
        self._ask(timeout)
        return metadata(self._machine.broker)

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions from their offsets on."""
        here().check()
        log = self._machine.broker.log
        self._places = [
            Place(log(place.topic, place.partition), max(place.offset, 0)) for place in partitions
        ]

    def unassign(self) -> None:
        """Read nothing."""
        self._places = []

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """The offsets that are read next, of partitions that are read."""
        at = {(each.log.topic, each.log.partition): each.position for each in self._places}
        return [
            TopicPartition(each.topic, each.partition, at[each.topic, each.partition])
            for each in partitions
        ]

    def consumer_group_metadata(self) -> str:
        """What a transaction that commits offsets of its group is told."""
        return str(self._group)

    def committed(self, places: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Offsets of its group, once no transaction has them undecided; -1001 where it has none."""
        self._ask(timeout)
        broker, until_ms = self._machine.broker, here().now_ms + timeout * 1000
        while any(self._group == key[0] for log in broker.topics.get(OFFSETS, ())
                  for txn in log.open for key in txn.offsets):  # fmt: skip
            if here().now_ms >= until_ms:
                raise failure(KafkaError._TIMED_OUT, "offsets are not decided")
            here().sleep(LOOK_MS)
        self._ask(timeout)
        return [
            TopicPartition(
                *(each.topic, each.partition),
                *broker.offsets.get((self._group, each.topic, each.partition), (-1001, "")),
            )
            for each in places
        ]

    def _end(self, log: Log) -> int:
        return log.stable_end if self._committed else log.readable_end

    def poll(self, timeout: float = -1) -> SimMessage | None:
        """One message, or None."""
        found = self.consume(1, timeout)
        return found[0] if found else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[SimMessage]:
        """Messages that are there; waits for the first one only."""
        stage = here()
        deadline_ms = stage.now_ms + timeout * 1000
        while True:
            stage.check()
            found: list[SimMessage] = []
            for place in self._places if not self._machine.cut else ():
                found += self._fetch(place, num_messages - len(found))
            if found or stage.now_ms >= deadline_ms:
                return found
            self._wait(deadline_ms - stage.now_ms)

    def _wait(self, ms: float) -> None:
        stage = here()
        for place in self._places:
            place.log.readers.append(stage.current)
        stage.wait(ms)
        for place in self._places:
            if stage.current in place.log.readers:
                place.log.readers.remove(stage.current)

    def _fetch(self, place: Place, count: int) -> list[SimMessage]:
        log, end = place.log, self._end(place.log)
        found: list[SimMessage] = []
        while len(found) < count and place.position < end:
            entries = log.read(place.position, end, count)
            for entry in entries[: count - len(found)]:
                place.position = entry.offset + 1
                if entry.committed or (not self._committed and not entry.marker):
                    found.append(SimMessage(log, entry, None, entry.offset))
            if not entries:
                place.position = end
        if len(found) < count and place.position == end and place.told_end != end:
            place.told_end = end
            found.append(SimMessage(log, None, KafkaError(KafkaError._PARTITION_EOF), end))
        return found

    def get_watermark_offsets(
        self,
        partition: TopicPartition,
        timeout: float = -1,
        cached: bool = False,
        end_alone: bool = False,
    ) -> tuple[int, int]:
        """First offset, and where a reader of this isolation stops today."""
        del cached, end_alone
        weather = self._machine.weather
        if weather.strikes(weather.no_answer) or not self._machine.travel(timeout * 1000):
            raise failure(KafkaError._TRANSPORT, "no answer")
        log = self._machine.broker.log(partition.topic, partition.partition)
        if log.replicas is not None and not log.replicas.told:
            raise failure(KafkaError.OFFSET_NOT_AVAILABLE, "the leader is new", retriable=True)
        ends = (0, self._end(log))
        self._machine.travel(timeout * 1000)
        return ends

    def offsets_for_times(
        self, places: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """The first offset from an instant on (epoch ms) of each partition; -1 for none.

        For `OFFSET_END` instead of an instant it is where a reader of this isolation stops today.
        """
        if all(place.offset == OFFSET_END for place in places):
            return [self._ended(place, timeout) for place in places]
        self._ask(timeout)
        found = []
        for place in places:
            log = self._machine.broker.log(place.topic, place.partition)
            later = (e.offset for e in log.entries if e.timestamp_ms >= place.offset)
            found.append(TopicPartition(place.topic, place.partition, next(later, -1)))
        return found

    def _ended(self, place: TopicPartition, timeout: float) -> TopicPartition:
        """One of several ends; none where the broker does not answer."""
        try:
            end = self.get_watermark_offsets(place, timeout)[1]
        except KafkaException:
            end = OFFSET_INVALID
        return TopicPartition(place.topic, place.partition, end)

    def _ask(self, timeout: float) -> None:
        if not self._machine.travel(timeout * 1000):
            raise failure(KafkaError._TRANSPORT, "no answer")

    def close(self) -> None:
        """Nothing is kept open."""
