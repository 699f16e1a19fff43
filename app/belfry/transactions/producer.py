"""The producer of one partition by requests of belfry's own: one Produce for each broker.

It does what `kafka/transactions.py` does by librdkafka, with the same records in the same order and
the same ends.  Records are made into batches in the partition's thread; requests leave in the loop
that all writers of a worker share.

    begin ─► batches of all partitions ─► Produce, to each leader ─► acknowledged ─► EndTxn

The manifest lies in the changelog's last batch; behind it are fillers at most.  It is acknowledged
before EndTxn is sent, so where signed rows lie is looked at without a flush of their own.  All of a
step's requests leave in one turn of the loop: each hand-over waits for the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog
from aiokafka.errors import KafkaError
from confluent_kafka import KafkaException

from belfry.engine.effects import Effects
from belfry.engine.read_lease import ReadLease
from belfry.kafka.non_transactional import NonTransactionalProducer
from belfry.kafka.outcome import Aborted, Fenced, Misplaced, TopicGone, Unknown
from belfry.kafka.row_signing import RowSigner
from belfry.kafka.step_records import (
    OutputTopics,
    StepRecord,
    changelog_rows,
    delivery_records,
    fired_records,
    outcome_records,
)
from belfry.kafka.transactions import ProducerSurroundings, Receipt
from belfry.transactions.asking import Ended
from belfry.transactions.batches import ProducedBatch, StepBatches
from belfry.transactions.brokers import BrokerConnections
from belfry.transactions.errors import Meaning
from belfry.transactions.loop import WriterLoop
from belfry.transactions.packing import CODECS
from belfry.transactions.partitioner import partitioner
from belfry.transactions.writer import BEGIN_S, END_S, WRITE_S, TransactionWriter, WriterState

CONNECT_S: Final = 10.0
CLOSE_S: Final = 2.0
# The loop's own deadlines come first; this is for a loop that hangs.
MARGIN_S: Final = 5.0
_TIMEOUT: Final = "transaction.timeout.ms"

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Acknowledged:
    """Where the manifest lies, and when this worker heard of it."""

    manifest: ProducedBatch
    wall_ms: float
    monotonic_ms: float


class DirectProducer:
    """The transactional producer of one partition, by requests of belfry's own."""

    def __init__(
        self,
        properties: Mapping[str, Any],
        partition: int,
        surroundings: ProducerSurroundings,
        loop: WriterLoop,
    ) -> None:
        """`properties` are librdkafka's."""
        self.signer: RowSigner | None = None
        self.lease = ReadLease()
        self._properties = dict(properties)
        self._partition = partition
        self._output_topics: OutputTopics = surroundings.output_topics
        self._clock = surroundings.clock
        self._failpoint = surroundings.failpoints.reach
        self._codec = CODECS[codec_of(properties)]
        self._partition_of = partitioner()
        self._non_transactional: NonTransactionalProducer | None = None
        self._cluster: BrokerConnections | None = None
        self._writer: TransactionWriter | None = None
        self._steps = 0
        self._closed = False
        self._loop = loop
        loop.enter()

    # -- the port ----------------------------------------------------------------------------------

    def connect(self) -> None:
        """Learn of the cluster ahead of time, so that `open` finds its way at once."""
        try:
            self._run(self._connect(), CONNECT_S)
        except TimeoutError as error:
            raise ConnectionError(f"{self._output_topics.changelog}: {error}") from error

    def open(self) -> None:
        """Fence the former owner; from now on only this producer can commit."""
        self._failpoint("R1")
        try:
            self._run(self._begin(), BEGIN_S)
        except Ended as ended:
            raise self._end_of(ended) from ended
        except (OSError, TimeoutError) as error:
            raise Unknown(f"fence: {error}") from error

    def commit(self, effects: Effects) -> Receipt:
        """Make a sealed step's effects true in one transaction."""
        writer = self._writer
        assert writer is not None, "open comes first"
        try:
            self._failpoint("S1")
            self._steps += 1
            step = StepBatches(self._codec, writer.limits, int(self._clock.wall_ms()))
            self._add_outputs(step, effects)
            self._failpoint("S3")
            self._add_rows(step, effects)
            batches = writer.finish(step)
            self.lease.serves()
            self.lease.sent(self._clock.monotonic_ms())
            sent_ms = self._clock.wall_ms()
            self._failpoint("S4")
            acknowledged = self._run(self._write(writer, batches), WRITE_S)
            self._see_places(acknowledged.manifest)
            if effects.non_transactional and self._non_transactional is not None:
                self._non_transactional.settle()
            self._failpoint("S5")
            # From here on the transaction may become visible at any moment.
            self.lease.ends()
            self._run(writer.end(commit=True), END_S)
            self._failpoint("S7")
        except TimeoutError as error:
            raise Unknown(f"a transaction: {error}") from error
        except (Ended, TopicGone, Misplaced, BufferError, KafkaException) as error:
            raise self._roll_back(writer, error, effects) from error
        return self._receipt(acknowledged, sent_ms)

    def close(self) -> None:
        """Give the producer up; an open transaction is left to the next owner's fence."""
        if self._closed:
            return
        self._closed = True
        if self._non_transactional is not None:
            self._non_transactional.close()
        try:
            if self._cluster is not None:
                self._run(self._cluster.close(), CLOSE_S)
        except (TimeoutError, OSError, KafkaError):
            log.warning("connections not closed in order", partition=self._partition)
        finally:
            self._loop.leave()

    # -- records -----------------------------------------------------------------------------------

    def _add_outputs(self, step: StepBatches, effects: Effects) -> None:
        fired = effects.fired
        if effects.non_transactional:
            non_transactional = effects.non_transactional
            if self._non_transactional is None:
                self._non_transactional = NonTransactionalProducer(
                    self._properties, self._output_topics.partitions_of
                )
            self._non_transactional.send(each for each in fired if each[0] in non_transactional)
            fired = [each for each in fired if each[0] not in non_transactional]
        self._add(step, fired_records(fired, self._output_topics))
        self._add(step, delivery_records(effects, self._output_topics))
        self._failpoint("S2")
        self._add(step, outcome_records(effects, self._output_topics))

    def _add(self, step: StepBatches, records: Iterable[StepRecord]) -> None:
        partitions: dict[str, int] = {}
        for topic, partition, key, value, headers in records:
            if topic not in partitions:
                partitions[topic] = self._partitions_of(topic)
            if partition is not None:
                where = partition
            elif key is not None:
                where = self._partition_of(key, partitions[topic])
            else:
                # Any will do; one for all of a step, as librdkafka keeps one for a while.
                where = self._steps % partitions[topic]
            step.add((topic, where), key, value, headers)

    def _partitions_of(self, topic: str) -> int:
        """How many partitions a topic has; raises TopicGone where it has none."""
        assert self._cluster is not None
        known = self._cluster.partitions_of(topic)
        if not known:
            self._run(self._cluster.know([topic]), CONNECT_S)
            known = self._cluster.partitions_of(topic)
        if not known:
            raise TopicGone(topic)
        return known

    def _add_rows(self, step: StepBatches, effects: Effects) -> None:
        where = self._output_topics.changelog, self._partition
        most = step.most(where[0])
        rows, tombstones, manifest, parts = changelog_rows(effects.rows, self.signer, most)
        if parts:
            for part in parts:
                step.add_apart(where, part)
            return
        step.add_rows(where, rows)
        for key, headers in tombstones:
            step.add(where, key, None, headers)
        step.add(where, manifest["key"], manifest["value"], [])

    def _manifest_at(self, last: ProducedBatch) -> int:
        """Where the manifest lies, in the last batch of the changelog."""
        return last.last_offset - (0 if self.signer is None else self.signer.fillers)

    def _see_places(self, last: ProducedBatch) -> None:
        """See that signed rows lie where they are believed, before the commit."""
        at = self._manifest_at(last)
        if self.signer is not None and not self.signer.lies_as_signed(at):
            raise Misplaced(f"the manifest lies at offset {at}, where it was not expected")

    def _receipt(self, acknowledged: _Acknowledged, sent_ms: float) -> Receipt:
        manifest = acknowledged.manifest
        offset = self._manifest_at(manifest)
        if self.signer is not None:
            self.signer.committed(offset)
        appended_ms = manifest.appended_ms if manifest.appended_ms >= 0 else int(sent_ms)
        wall_ms, monotonic_ms = acknowledged.wall_ms, acknowledged.monotonic_ms
        return Receipt(offset + 1, sent_ms, appended_ms, wall_ms, monotonic_ms)

    # -- ends --------------------------------------------------------------------------------------

    def _roll_back(
        self, writer: TransactionWriter, error: Exception, effects: Effects
    ) -> Exception:
        """Roll the step back; what its end is, by what the brokers say to that."""
        if self.signer is not None:
            self.signer.aborted()
        topics, blocked = self._refused(error, effects), False
        if isinstance(error, Ended):
            if writer.state is WriterState.OVER:
                return self._end_of(error)
            blocked = error.blocked
        if writer.state is WriterState.OPEN:
            try:
                self._run(writer.end(commit=False), END_S)
            except Ended as second:
                return self._end_of(second, blocked=blocked, first=f"{error}; ")
            except TimeoutError as second:
                return Unknown(f"{error}; roll-back: {second}", blocked=blocked)
        return Aborted(str(error), topics)

    def _refused(self, error: Exception, effects: Effects) -> dict[str, str]:
        """Output topics that refused a record."""
        topics: dict[str, str] = {}
        if isinstance(error, TopicGone):
            topics[error.topic] = str(error)
        if isinstance(error, Ended):
            fired = {each[0] for each in effects.fired}
            topics |= {topic: why for topic, why in error.topics.items() if topic in fired}
        if self._non_transactional is not None:
            topics |= self._non_transactional.refused
            self._non_transactional.start_over()
        return topics

    @staticmethod
    def _end_of(ended: Ended, *, blocked: bool = False, first: str = "") -> Exception:
        if ended.meaning is Meaning.FENCED:
            return Fenced(f"{first}{ended}")
        return Unknown(f"{first}{ended}", blocked=blocked)

    # -- in the loop -------------------------------------------------------------------------------

    def _run(self, work: Any, most_s: float) -> Any:
        return self._loop.run(work, most_s + MARGIN_S)

    async def _connect(self) -> BrokerConnections:
        if self._cluster is None:
            self._cluster = BrokerConnections(self._properties)
        cluster = self._cluster
        await cluster.start()
        await cluster.know([self._output_topics.changelog], CONNECT_S)
        if not cluster.partitions_of(self._output_topics.changelog):
            raise ConnectionError(f"{self._output_topics.changelog}: it is not there")
        return cluster

    async def _begin(self) -> None:
        cluster = await self._connect()
        name = str(self._properties["transactional.id"])
        timeout_ms = int(self._properties.get(_TIMEOUT, 60_000))
        own_epochs = await cluster.gives_own_epochs()
        writer = TransactionWriter(cluster, name, timeout_ms, own_epochs=own_epochs)
        await writer.begin()
        self._writer = writer

    async def _write(
        self, writer: TransactionWriter, batches: list[ProducedBatch]
    ) -> _Acknowledged:
        await writer.write(batches)
        where = self._output_topics.changelog, self._partition
        manifest = next(batch for batch in reversed(batches) if batch.where == where)
        return _Acknowledged(manifest, *self._clock.both_ms())


def codec_of(properties: Mapping[str, Any]) -> str:
    """The codec that librdkafka's properties name; ValueError for one that there is not."""
    given = properties.get("compression.type") or properties.get("compression.codec") or "none"
    codec = str(given).lower()
    if codec not in CODECS:
        raise ValueError(f"compression.type is {given}: {', '.join(CODECS)} are allowed.")
    return codec
