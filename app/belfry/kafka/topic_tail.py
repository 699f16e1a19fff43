"""The end of a topic, `read_committed`, read backwards in stretches: never the whole of it.

A stretch holds the next older offsets of each partition. Each record is shortened by the caller as
soon as it is there, so a stretch of large records takes little memory.

    partition 0   ···|·········|·········|····end
    partition 1      ···|·······|·······|·····end
                     rest        second   first stretch

    with TopicTail(properties, "belfry.rejected") as tail:
        while not tail.is_over and len(found) < 50:
            found += tail.stretch(100, shortened)
    page = found, tail.rest          # `rest` begins the next look: TopicTail(…, before=rest)

    record_at(properties, "belfry.rejected", (1, 7))    # one record, by partition and offset

A caller that looks often uses `tail_readers.py`, whose consumers stay connected.

A stretch of 100 offsets may hold fewer records: offsets of markers, of aborted transactions and of
compacted records have none. Methods block, `stretch` for `STRETCH_S` seconds at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.kafka.rights import READERS_GROUP

T = TypeVar("T")

# Seconds for one answer, and for a stretch to be read.
REACH_S: Final = 5.0
STRETCH_S: Final = 10.0
# Seconds until a partition is asked for again after its leader has moved.
AGAIN_S: Final = 0.1
MOVED: Final = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
)
# The most records that are taken from the client at once.
BATCH: Final = 200
# No group is joined and nothing is committed; the client reports a partition's end, so that a
# stretch ends.
_PROPERTIES: Final[dict[str, Any]] = {
    "group.id": READERS_GROUP,
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 10,
    # The most bytes that are fetched ahead of the reader, in all.
    "queued.max.messages.kbytes": 8_192,
}


class TopicTail:
    """Reads one topic from its end backwards; one thread uses it, and closes it after use."""

    def __init__(
        self,
        properties: Mapping[str, Any],
        topic: str,
        before: Mapping[int, int] | None = None,
        consumer: librdkafka.Consumer | None = None,
    ) -> None:
        """`before` has the offset of each partition to begin at; None: at the end of all.

        `consumer` is one of `connected`, and is not closed here; without it, one is made and
        closed. Raises ConnectionError if Kafka does not answer. A topic that is not there has no
        partitions, and a partition that `before` does not name is not read.
        """
        self._topic = topic
        self._consumer = connected(properties) if consumer is None else consumer
        self._low: dict[int, int] = {}
        # The offset of each partition before which records are still to be read.
        self.rest: dict[int, int] = {}
        try:
            for partition in self._partitions():
                if before is not None and partition not in before:
                    continue
                low, high = self._ends(partition)
                end = high if before is None else min(before[partition], high)
                self._low[partition], self.rest[partition] = low, max(low, end)
        except BaseException:
            if consumer is None:
                self._consumer.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._consumer.close()

    @property
    def is_over(self) -> bool:
        """Whether the topic has no older records."""
        return all(end <= self._low[partition] for partition, end in self.rest.items())

    def is_cut(self, partition: int) -> bool:
        """Whether older records of a partition have not been read."""
        return self.rest[partition] > self._low[partition]

    def stretch(self, offsets: int, short: Callable[[Message], T]) -> list[T]:
        """The next older `offsets` of each partition, shortened, in no order among partitions.

        Raises ConnectionError if they do not come in time.
        """
        until = {partition: end for partition, end in self.rest.items() if self.is_cut(partition)}
        start = {each: max(self._low[each], end - offsets) for each, end in until.items()}
        found = self._read(start, until, short)
        self.rest |= start
        return found

    def since(self, positions: Mapping[int, int], short: Callable[[Message], T]) -> list[T]:
        """Records between these offsets and the end of their partitions; raises like `stretch`."""
        start = {each: at for each, at in positions.items() if at < self.rest[each]}
        return self._read(start, {each: self.rest[each] for each in start}, short)

    def low(self, partition: int) -> int:
        """The first offset that a partition keeps."""
        return self._low[partition]

    def _read(
        self, start: Mapping[int, int], until: dict[int, int], short: Callable[[Message], T]
    ) -> list[T]:
        """Records from `start` to the offsets in `until`, which loses partitions that are done."""
        if not until:
            return []
        self._consumer.assign(
            [TopicPartition(self._topic, partition, offset) for partition, offset in start.items()]
        )
        found: list[T] = []
        deadline = machine.monotonic() + STRETCH_S
        while until:
            if machine.monotonic() > deadline:
                raise ConnectionError(f"{self._topic}: not read within {STRETCH_S} s")
            some = self._consumer.consume(BATCH, 0.01)
            found += [short(message) for message in some if self._is_within(message, until)]
        return found

    def _is_within(self, message: Message, until: dict[int, int]) -> bool:
        """Whether a record belongs to the stretch; partitions that are done leave `until`."""
        partition, offset = message.partition(), message.offset()
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            if error.fatal() or not error.retriable():
                raise ConnectionError(f"{self._topic}: {error.str()}")
            return False
        assert partition is not None
        assert offset is not None
        end = until.get(partition)
        if end is None:
            return False
        # Offsets of markers have no records: so a record beyond the stretch, or the log's end, ends
        # it too.
        if error is not None or offset >= end - 1:
            del until[partition]
        return error is None and offset < end

    def _partitions(self) -> list[int]:
        """Partitions of the topic, empty if it is not there; raises ConnectionError."""
        try:
            known = self._consumer.list_topics(self._topic, REACH_S).topics.get(self._topic)
        except KafkaException as error:
            raise ConnectionError(f"{self._topic}: {error.args[0].str()}") from error
        return [] if known is None or known.error is not None else sorted(known.partitions)

    def _ends(self, partition: int) -> tuple[int, int]:
        """First offset and end of a partition, for readers of committed records."""
        name = TopicPartition(self._topic, partition)
        deadline = machine.monotonic() + REACH_S
        while True:
            try:
                ends = self._consumer.get_watermark_offsets(name, REACH_S, cached=False)
            except KafkaException as error:
                # That happens right after a topic was made, and while leaders change.
                if error.args[0].code() in MOVED and machine.monotonic() < deadline:
                    machine.sleep(AGAIN_S)
                    continue
                raise ConnectionError(f"{self._topic}: {error.args[0].str()}") from error
            if ends is None:
                raise ConnectionError(f"{self._topic}: no answer within {REACH_S} s")
            return int(ends[0]), int(ends[1])


def connected(properties: Mapping[str, Any]) -> librdkafka.Consumer:
    """A consumer for tails of topics; it connects when it is first used."""
    return librdkafka.Consumer({**properties, **_PROPERTIES})


def record_at(properties: Mapping[str, Any], topic: str, place: tuple[int, int]) -> Message | None:
    """The committed record at a place (partition, offset); None if there is none.

    Other partitions are not asked, so it does not matter if they have no leader. Raises
    ConnectionError if Kafka does not answer.
    """
    partition, offset = place
    with TopicTail(properties, topic, {partition: offset + 1}) as tail:
        return last_before(tail, partition, offset + 1)


def last_before(tail: TopicTail, partition: int, end: int) -> Message | None:
    """The record right before an offset at which a tail of one partition was begun."""
    # `rest` differs if the log ends before the place, or begins behind it.
    if tail.is_over or tail.rest[partition] != end:
        return None
    found = tail.stretch(1, lambda message: message)
    return found[0] if found else None
