"""The producer of one partition by requests of belfry's own: one Produce for each broker.

It does the same as `kafka/transactions.py` does by librdkafka, with the same records in the same
order and the same ends.  Records are made into batches in the partition's thread; requests leave in
the loop that all writers of a worker share.

    begin ─► batches of all partitions ─► Produce, to each leader ─► acknowledged ─► EndTxn

The manifest lies in the changelog's last batch; only fillers may follow it. It is acknowledged
before EndTxn is sent, so the offsets of signed rows are checked without a flush of their own. A
step is handed over to the loop once, which appends its records and ends it: each hand-over makes
two threads wait for the interpreter's lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import structlog
from aiokafka.errors import KafkaError
from confluent_kafka import KafkaException

from belfry.engine.effects import Effects
from belfry.engine.read_lease import ReadLease
from belfry.kafka.causes import cause_of
from belfry.kafka.client_loop import ClientLoop
from belfry.kafka.non_transactional import NonTransactionalProducer
from belfry.kafka.outcome import Aborted, Misplaced, TopicGone, Unknown
from belfry.kafka.row_signing import RowSigner
from belfry.kafka.step_producer import ProducerSurroundings, Receipt
from belfry.kafka.step_records import (
    OutputTopics,
    delivery_records,
    letter_records,
    outcome_records,
    topics_of,
)
from belfry.transactions import brokers
from belfry.transactions.alternating import AlternatingWriter
from belfry.transactions.asking import Ended
from belfry.transactions.batches import ProducedBatch, StepBatches
from belfry.transactions.opening import CONNECT_S, connected, fenced
from belfry.transactions.packing import CODECS, codec_of
from belfry.transactions.placing import AcknowledgedStep, PlacedRecords
from belfry.transactions.writer import BEGIN_S, END_S, WRITE_S, WriterState

CLOSE_S: Final = 2.0
# The loop's own deadlines come first; this is for a loop that hangs.
MARGIN_S: Final = 5.0

log = structlog.get_logger(__name__)


class DirectProducer:
    """The transactional producer of one partition, by requests of belfry's own."""

    def __init__(
        self,
        properties: Mapping[str, Any],
        partition: int,
        surroundings: ProducerSurroundings,
        loop: ClientLoop,
        in_turn: int,
    ) -> None:
        """`properties` are librdkafka's; `in_turn` says how many transactional ids write."""
        self.signer: RowSigner | None = None
        self.lease = ReadLease()
        self._properties = dict(properties)
        self._partition = partition
        self._output_topics: OutputTopics = surroundings.output_topics
        self._clock = surroundings.clock
        self._failpoint = surroundings.failpoints.reach
        self._stops_amid_commit = partial(surroundings.failpoints.names, "S5")
        self._changelog = self._output_topics.changelog, partition
        self._codec = CODECS[codec_of(properties)]
        self._non_transactional = NonTransactionalProducer(
            properties, self._output_topics.partitions_of
        )
        self._cluster: brokers.BrokerConnections | None = None
        self._writer: AlternatingWriter | None = None
        self._steps = 0
        self._silent = self._closed = False
        self._in_turn = in_turn
        self._loop = loop
        loop.enter()

    # -- the port ----------------------------------------------------------------------------------

    def connect(self) -> None:
        """Learn of the cluster ahead of time, so that `open` needs no lookup."""
        try:
            self._run(self._connect(), CONNECT_S)
        except TimeoutError as error:
            raise ConnectionError(f"{self._output_topics.changelog}: {cause_of(error)}") from error

    def open(self) -> None:
        """Fence the former owner; from now on only this producer can commit."""
        self._failpoint("R1")
        try:
            self._run(self._begin(), BEGIN_S)
        except Ended as ended:
            raise ended.as_outcome() from ended
        except (OSError, TimeoutError) as error:
            raise Unknown(f"fence: {cause_of(error)}") from error

    def commit(self, effects: Effects) -> Receipt:
        """Commit a sealed step's effects in one transaction."""
        writer, cluster = self._writer, self._cluster
        assert writer is not None, "open comes first"
        assert cluster is not None
        try:
            self._failpoint("S1")
            self._steps += 1
            step = StepBatches(self._codec, writer.limits, int(self._clock.wall_ms()))
            topics = partial(topics_of, effects)
            placed = PlacedRecords(step, cluster, self._loop, self._steps, topics)
            self._add_outputs(placed, effects)
            self._failpoint("S3")
            placed.add_rows(self._changelog, effects.rows, self.signer)
            batches = writer.finish(step)
            self.lease.serves()
            self.lease.sent(self._clock.monotonic_ms())
            sent_ms = self._clock.wall_ms()
            self._failpoint("S4")
            acknowledged = self._written_and_ended(writer, batches, bool(effects.non_transactional))
            self._failpoint("S7")
        except TimeoutError as error:
            raise Unknown(f"a transaction: {cause_of(error)}") from error
        except (Ended, TopicGone, Misplaced, BufferError, KafkaException, brokers.Lost) as error:
            raise self._roll_back(writer, error, effects) from error
        self._silent = False
        return acknowledged.receipt(self.signer, sent_ms)

    def serve(self) -> None:
        """Report waiting figures of the client that sends at least once."""
        self._non_transactional.serve()

    def close(self) -> None:
        """Give the producer up; an open transaction is left to the next owner's fence."""
        if self._closed:
            return
        self._closed = True
        self._non_transactional.close()
        try:
            if self._cluster is not None:
                self._run(self._cluster.close(), CLOSE_S)
        except (TimeoutError, OSError, KafkaError):
            log.warning("connections not closed in order", partition=self._partition)
        finally:
            self._loop.leave()

    # -- records -----------------------------------------------------------------------------------

    def _add_outputs(self, placed: PlacedRecords, effects: Effects) -> None:
        fired = effects.fired
        if effects.non_transactional:
            non_transactional = effects.non_transactional
            self._non_transactional.send(each for each in fired if each[0] in non_transactional)
            fired = [each for each in fired if each[0] not in non_transactional]
        placed.add_fired(fired, self._output_topics.partitions_of)
        placed.add(letter_records(effects))
        placed.add(delivery_records(effects, self._output_topics))
        self._failpoint("S2")
        placed.add(outcome_records(effects, self._output_topics))
        placed.add_told(effects.lifecycle, self._output_topics)

    def _written_and_ended(
        self, writer: AlternatingWriter, batches: list[ProducedBatch], beside: bool
    ) -> AcknowledgedStep:
        """Have the batches appended and the transaction ended, in one hand-over to the loop.

        It takes two if something has to wait between them without holding the loop: for records
        that were sent `beside` the transaction, or at a failpoint.
        """
        if not beside and not self._stops_amid_commit():
            acknowledged: AcknowledgedStep = self._run(
                self._write_and_end(writer, batches), WRITE_S + END_S
            )
            return acknowledged
        acknowledged = self._run(self._write(writer, batches), WRITE_S)
        if beside:
            self._non_transactional.settle()
        self._before_end(acknowledged)
        self._run(self._end(writer), END_S)
        return acknowledged

    # -- ends --------------------------------------------------------------------------------------

    def _roll_back(
        self, writer: AlternatingWriter, error: Exception, effects: Effects
    ) -> Exception:
        """Roll the step back; returns its end, by the brokers' answers to that.

        If no broker answers about a topic twice in a row, brokers may have moved: the worker that
        takes the partition over anew looks for them at the addresses of the start, and these
        connections do not.
        """
        if self.signer is not None:
            self.signer.aborted()
        topics, blocked = self._refused(error, effects), False
        was_silent, self._silent = self._silent, isinstance(error, brokers.Lost)
        if was_silent and self._silent:
            return Unknown(str(error))
        if isinstance(error, Ended):
            if writer.state is WriterState.OVER:
                return error.as_outcome()
            blocked = error.blocked
        if writer.state is WriterState.OPEN:
            try:
                self._run(writer.end(commit=False, signed=self.signer is not None), END_S)
            except Ended as second:
                return second.as_outcome(blocked=blocked, first=f"{error}; ")
            except TimeoutError as second:
                return Unknown(f"{error}; roll-back: {cause_of(second)}", blocked=blocked)
        return Aborted(str(error), topics, blocked=blocked)

    def _refused(self, error: Exception, effects: Effects) -> dict[str, str]:
        """Output topics that refused a record."""
        topics: dict[str, str] = {}
        if isinstance(error, TopicGone):
            topics[error.topic] = str(error)
        if isinstance(error, Ended):
            of_tenants = topics_of(effects)
            topics |= {topic: why for topic, why in error.topics.items() if topic in of_tenants}
        topics |= self._non_transactional.refused
        self._non_transactional.start_over()
        return topics

    # -- in the loop -------------------------------------------------------------------------------

    def _run(self, work: Any, most_s: float) -> Any:
        return self._loop.run(work, most_s + MARGIN_S)

    async def _connect(self) -> brokers.BrokerConnections:
        if self._cluster is None:
            self._cluster = brokers.BrokerConnections(self._properties)
        await connected(self._cluster, self._output_topics.changelog)
        return self._cluster

    async def _begin(self) -> None:
        cluster = await self._connect()
        self._writer = await fenced(cluster, self._properties, self._in_turn)

    async def _write(
        self, writer: AlternatingWriter, batches: list[ProducedBatch]
    ) -> AcknowledgedStep:
        await writer.write(batches)
        manifest = next(batch for batch in reversed(batches) if batch.where == self._changelog)
        return AcknowledgedStep(manifest, *self._clock.both_ms())

    async def _write_and_end(
        self, writer: AlternatingWriter, batches: list[ProducedBatch]
    ) -> AcknowledgedStep:
        acknowledged = await self._write(writer, batches)
        # If an answer comes together with a cancellation, `wait_for` forgets the cancellation.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        self._before_end(acknowledged)
        await self._end(writer)
        return acknowledged

    def _before_end(self, acknowledged: AcknowledgedStep) -> None:
        """Raise Misplaced if rows lie at other offsets than they are signed for."""
        acknowledged.compare(self.signer)
        self._failpoint("S5")
        # From here on the transaction may become visible at any moment.
        self.lease.ends()

    async def _end(self, writer: AlternatingWriter) -> None:
        await writer.end(commit=True, signed=self.signer is not None)
