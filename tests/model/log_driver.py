"""Drives one partition's engine through a broker: the same steps, with real records.

    requests   produced to the source topic, and read back by the shell's reader
    a step     one transaction of the shell's producer, or one that is aborted
    a crash    a new producer, which fences the old one

`Driver` stays the yardstick: at the end `compare` holds what readers of committed records find in
the topics against what the steps were meant to write.  Whether the clients are confluent-kafka's or
the simulator's is decided by who calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from belfry.engine.effects import Effects
from belfry.engine.partition import PartitionEngine
from belfry.host.failpoints import Failpoints
from belfry.kafka import partition_log
from belfry.kafka.record_headers import headers_of
from belfry.kafka.step_producer import ProducerSurroundings
from belfry.kafka.step_records import OutputTopics
from belfry.kafka.transactions import PartitionProducer
from belfry.store.ordered_map import MemoryMap
from belfry.tenants.effective import Level
from belfry.wire import framing
from belfry.wire.accepted import whole
from belfry.wire.batch import SourceBatch
from belfry.wire.lifecycle import encode_lifecycle
from belfry.wire.record import Headers
from tests.unit.engine.driver import FIRED, T0, TOPIC, Driver

Row = tuple[bytes | None, bytes | None]


@dataclass(slots=True)
class Cluster:
    """Where the topics are: client properties, a clock, and how a user appends a request."""

    properties: dict[str, Any]
    clock: Any
    append: Callable[[str, tuple[bytes | None, bytes | None, Headers | None], int], None]
    create: Callable[[list[str]], None]
    prefix: str
    written: defaultdict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))

    def topic(self, name: str) -> str:
        """Full name of a topic of this run."""
        return self.prefix + name


class LogDriver(Driver):
    """One engine whose source, changelog and outputs are topics of one partition each."""

    def __init__(self, cluster: Cluster, level: Level, tenants: tuple[str, ...]) -> None:
        self.cluster = cluster
        self._producer: PartitionProducer | None = None
        self._outputs = [FIRED + tenant for tenant in tenants]
        self._head = framing.single_object("LifecycleEvent")
        others = ["changelog", "lifecycle", "rejected"]
        cluster.create([cluster.topic(name) for name in (TOPIC, *others, *self._outputs)])
        self._source = self._log(cluster.topic(TOPIC))
        super().__init__(level)

    def _log(self, topic: str) -> partition_log.PartitionLog:
        return partition_log.PartitionLog(self.cluster.properties, topic, 0)

    def start(self, rows: MemoryMap) -> PartitionEngine:
        """A new owner: its producer fences the one before."""
        topic = self.cluster.topic
        output_topics = OutputTopics(
            changelog=topic("changelog"),
            schedules=topic(TOPIC),
            rejected=topic("rejected"),
            lifecycle=topic("lifecycle"),
            lifecycle_head=self._head,
            deliveries=topic("deliveries"),
            deliveries_head=b"",
            partitions_of=lambda _: 1,
        )
        former, surroundings = (
            self._producer,
            ProducerSurroundings(output_topics, self.cluster.clock, Failpoints()),
        )
        properties = {
            **self.cluster.properties,
            "transactional.id": topic("0"),
            "transaction.timeout.ms": 10_000,
            "linger.ms": 0,
        }
        self._producer = PartitionProducer(properties, 0, surroundings)
        self._producer.open()
        if former is not None:
            former.close()
        return super().start(rows)

    def send(
        self,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        timestamp_ms: int = T0,
    ) -> int:
        """Append a request to the source topic."""
        self.cluster.append(self.cluster.topic(TOPIC), (key, value, headers), timestamp_ms)
        return super().send(value, key, headers, timestamp_ms)

    def batch(self, take: int | None = None) -> SourceBatch:
        """The next records of the source topic; they are what was sent."""
        wanted = super().batch(take)
        if self._source.position != wanted.start or not wanted.start:
            self._source.seek(wanted.start)
        messages: list[Any] = []
        while self._source.position < wanted.next_position:
            messages += self._source.read(wanted.next_position - self._source.position, 0.2)
        records = [
            (m.offset(), m.timestamp()[1], m.key(), m.value(), headers)
            for m, headers in zip(messages, headers_of(messages), strict=True)
        ]
        assert records == list(wanted.records)
        return SourceBatch(wanted.start, self._source.position, records)

    def end(self, now_ms: int, *, commit: bool = True) -> None:
        """Write the step as one transaction; commit it, or abort it."""
        effects = self.engine.claim(None)
        self.engine.seal(owner_epoch=1)
        assert self._producer is not None
        self._rename(effects)
        if commit:
            self._producer.commit(effects)
            self._expect(effects)
        else:
            self._abort(self._producer, effects)
        self._rename(effects, back=True)
        super().end(now_ms, commit=commit)

    def _abort(self, producer: PartitionProducer, effects: Effects) -> None:
        producer._producer.begin_transaction()
        producer._produce_outputs(effects)
        producer._record(effects)
        producer._producer.flush(10)
        producer._producer.abort_transaction(10)

    def _rename(self, effects: Effects, *, back: bool = False) -> None:
        """Give the outputs the names of this run's topics, or their own."""
        for at, (topic, *rest) in enumerate(effects.fired):
            name = topic.removeprefix(self.cluster.prefix) if back else self.cluster.topic(topic)
            effects.fired[at] = (name, *rest)  # type: ignore[assignment]

    def _expect(self, effects: Effects) -> None:
        written, topic = self.cluster.written, self.cluster.topic
        for name, key, _, value, _ in effects.fired:
            written[name].append((key, value))
        for event in effects.lifecycle:
            name = f"{event.tenant}/{event.schedule_id}"
            value = self._head + encode_lifecycle(whole(event))
            written[topic("lifecycle")].append((name.encode(), value))
        written[topic("changelog")] += effects.rows.items()

    def compare(self) -> None:
        """Readers of committed records find what was committed, all of it and in its order."""
        topics = [self.cluster.topic(each) for each in ("changelog", "lifecycle", *self._outputs)]
        for topic in topics:
            log = self._log(topic)
            end = log.log_end()
            # A commit is acknowledged before its markers have reached every partition.
            while log.ends()[1] < end:
                end = log.log_end()
            log.seek(log.ends()[0])
            found = [(m.key(), m.value()) for some in log.read_until(end, 1_000) for m in some]
            log.close()
            assert found == self.cluster.written[topic], f"{topic} differs"

    def close(self) -> None:
        """Give producer and source up."""
        self._source.close()
        if self._producer is not None:
            self._producer.close()
