"""Reading topics to their ends, `read_committed` unless told otherwise.

Shares no code with belfry: what an auditor believes must not come from whom it audits.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Self

import fastavro
from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

REQUEST_S: Final = 10.0
PATIENCE_S: Final = 60.0
# So many topics are asked for one by one.
FEW: Final = 4
# Told of a connection, not of a partition: the client connects again by itself.
_PASSING: Final = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT}
SINGLE_OBJECT_HEAD: Final = 10
SILENT_MS: Final = 5_000
SCHEMAS: Final = Path(__file__).parents[3] / "schemas"

Headers = list[tuple[str, bytes | None]]


@dataclass(slots=True)
class Record:
    """A record as a consumer got it; `timestamp_ms` is the broker's where the topic says so."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    def header(self, name: str) -> bytes | None:
        """The last header of this name."""
        found = [value for given, value in self.headers if given == name]
        return found[-1] if found else None


class Reader:
    """Reads topics from where it left off to where they end now; leaving it closes it."""

    def __init__(self, bootstrap: str, isolation: str = "read_committed") -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "auditor-without-a-group",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # Who reads to the end waits for an answer without records.
                "fetch.wait.max.ms": 10,
                "auto.offset.reset": "error",
                # A broker that stands still keeps its connections: another one is asked then.
                "socket.timeout.ms": SILENT_MS,
            }
        )
        self._next: dict[tuple[str, int], int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def read(self, topics: Iterable[str], timeout_s: float = 120.0) -> list[Record]:
        """What was added to these topics since the last call; topics that are missing are empty."""
        ends = self._ends(list(topics))
        if not ends:
            return []
        starts = [TopicPartition(t, p, self._next.get((t, p), 0)) for t, p in ends]
        self._consumer.assign(starts)
        waiting = {place for place, end in ends.items() if self._next.get(place, 0) < end}
        found: list[Record] = []
        deadline = time.monotonic() + timeout_s
        while waiting:
            assert time.monotonic() < deadline, f"not read to the end in {timeout_s} s: {waiting}"
            for message in self._consumer.consume(5_000, 0.05):
                self._take(message, ends, waiting, found)
        self._consumer.unassign()
        return found

    def _take(
        self,
        message: Any,
        ends: dict[tuple[str, int], int],
        waiting: set[tuple[str, int]],
        found: list[Record],
    ) -> None:
        place = (message.topic(), message.partition())
        error = message.error()
        if error is not None:
            if error.code() in _PASSING:
                return
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            # Control records at the end of a log are never delivered; its end is told instead.
            self._next[place] = max(self._next.get(place, 0), message.offset())
        elif place in ends:
            self._next[place] = message.offset() + 1
            found.append(_record(message))
        if self._next.get(place, 0) >= ends.get(place, 0):
            waiting.discard(place)

    def _ends(self, topics: list[str]) -> dict[tuple[str, int], int]:
        """Where each partition ends, asked at once: looks are many, and a request costs a ms."""
        there = self._topics(topics)
        latest = [
            TopicPartition(topic, partition, OFFSET_END)
            for topic in topics
            for partition in (there[topic].partitions if topic in there else ())
        ]
        ends: dict[tuple[str, int], int] = {}
        for found in self._latest(latest):
            known = found.error is None and found.offset >= 0
            place = found.topic, found.partition
            ends[place] = found.offset if known else self._end(TopicPartition(*place))
        return ends

    def _latest(self, places: list[TopicPartition]) -> list[TopicPartition]:
        """These partitions with the offset of their ends, or as they are where nobody answers."""
        try:
            return list(self._consumer.offsets_for_times(places, REQUEST_S)) if places else []
        except KafkaException:
            return places

    def _topics(self, names: list[str]) -> dict[str, Any]:
        """What is known of these topics; a broker that is busy or restarts is asked again.

        Few are asked for by name: a broker of many tests has a thousand others.
        """
        deadline = time.monotonic() + PATIENCE_S
        asked: list[str | None] = [*names] if len(names) <= FEW else [None]
        while True:
            try:
                answers = [self._consumer.list_topics(name, REQUEST_S).topics for name in asked]
                return {topic: each for found in answers for topic, each in found.items()}
            except KafkaException:
                if time.monotonic() > deadline:
                    raise

    def _end(self, place: TopicPartition) -> int:
        """Where a partition ends; a new topic's leader may not know of its luck yet.

        Who leads it may have changed as well, which a client that is told nothing does not ask.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                low_high: Any = self._consumer.get_watermark_offsets(place, REQUEST_S)
                return int(low_high[1])
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                self._topics([place.topic])
                time.sleep(0.05)


def read_all(bootstrap: str, *topics: str, isolation: str = "read_committed") -> list[Record]:
    """All records of these topics."""
    with Reader(bootstrap, isolation) as reader:
        return reader.read(topics)


def lifecycle_of(record: Record) -> dict[str, Any]:
    """The LifecycleEvent in a record of the lifecycle topic (single-object or prefixed)."""
    value = record.value or b""
    body = value[SINGLE_OBJECT_HEAD:] if value[:2] == b"\xc3\x01" else value[5:]
    found: Any = fastavro.schemaless_reader(BytesIO(body), _LIFECYCLE, None)
    return dict(found)


def fired_event_of(value: bytes) -> dict[str, Any]:
    """The FiredEvent in the value of an envelope tenant's record."""
    body = value[SINGLE_OBJECT_HEAD:] if value[:2] == b"\xc3\x01" else value[5:]
    found: Any = fastavro.schemaless_reader(BytesIO(body), _FIRED, None)
    return dict(found)


def _record(message: Any) -> Record:
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        message.headers() or [],
    )


_LIFECYCLE: Final = fastavro.schema.load_schema(str(SCHEMAS / "io.belfry.LifecycleEvent.avsc"))
_FIRED: Final = fastavro.schema.load_schema(str(SCHEMAS / "io.belfry.FiredEvent.avsc"))
