"""One transaction per step: fired records, outcomes, forwarded requests, changelog, manifest.

There is one producer per partition, which only that partition's thread uses. `open` fences the
former owner and ends its open transaction. `commit` distinguishes committed, `Aborted` for certain,
and `Unknown`, after which this producer is never used again.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message

from belfry.engine.effects import Effects, Fired
from belfry.engine.read_lease import ReadLease
from belfry.kafka import librdkafka
from belfry.kafka.error_ends import end_of, is_blocked
from belfry.kafka.fencing import fence
from belfry.kafka.full_queue import produce_in_time, produce_rows
from belfry.kafka.giving_up import PURGED, give_up
from belfry.kafka.non_transactional import NonTransactionalProducer
from belfry.kafka.outcome import Aborted, Misplaced, TopicGone, Unknown
from belfry.kafka.row_signing import Record, RowSigner
from belfry.kafka.step_producer import ProducerSurroundings, Receipt
from belfry.kafka.step_records import (
    changelog_rows,
    delivery_records,
    fired_records,
    letter_records,
    outcome_records,
    told_records,
)
from belfry.store.layout import keys

COMMIT_S: Final = 9.5
CONNECT_S: Final = 10.0


class PartitionProducer:
    """The transactional producer of one partition, by librdkafka."""

    def __init__(
        self, properties: dict[str, Any], partition: int, surroundings: ProducerSurroundings
    ) -> None:
        self._properties = properties
        self._producer = librdkafka.Producer(properties)
        beside = NonTransactionalProducer(properties, surroundings.output_topics.partitions_of)
        self._non_transactional = beside
        self._partition = partition
        self._output_topics = surroundings.output_topics
        self._clock = surroundings.clock
        self._failpoint = surroundings.failpoints.reach
        self._acknowledged: tuple[Message, float, float] | None = None
        # Signs the rows, if workers sign; set together with the partition.
        self.signer: RowSigner | None = None
        self._refused: dict[str, str] = {}
        self._refusal: KafkaError | None = None
        self._watchful = False
        self.lease = ReadLease()

    def connect(self) -> None:
        """Learn of the cluster ahead of time, so that `open` needs no lookup."""
        topic = self._output_topics.changelog
        try:
            self._producer.list_topics(topic, CONNECT_S)
        except KafkaException as error:
            raise ConnectionError(f"{topic}: {error.args[0].str()}") from error

    def open(self) -> None:
        """Fence the former owner; from now on only this producer can commit."""
        self._failpoint("R1")
        try:
            fence(self._producer, self._properties)
        except KafkaException as error:
            raise end_of(error, during="init_transactions") from error

    def commit(self, effects: Effects) -> Receipt:
        """Commit a sealed step's effects in one transaction."""
        self._acknowledged, self._refused, self._refusal = None, {}, None
        try:
            self._failpoint("S1")
            self._producer.begin_transaction()
            self._produce_outputs(effects)
            self._failpoint("S3")
            sent_ms = self._record(effects)
            self._check_places()
            if effects.non_transactional:
                self._non_transactional.settle()
            self._failpoint("S5")
            self._producer.commit_transaction(COMMIT_S)
            self._failpoint("S7")
        except (KafkaException, BufferError, TopicGone, Misplaced) as error:
            raise self._roll_back(error) from error
        self._watchful = False
        return self._receipt(sent_ms)

    def _produce_outputs(self, effects: Effects) -> None:
        output_topics, produce = self._output_topics, self._produce
        watch: dict[str, Any] = {"on_delivery": self._on_output} if self._watchful else {}
        fired = (
            self._send_non_transactional(effects) if effects.non_transactional else effects.fired
        )
        of_tenants = chain(fired_records(fired, output_topics), letter_records(effects))
        for topic, where, key, value, headers in of_tenants:
            placed = watch if where is None else {"partition": where, **watch}
            produce(topic, value, key, headers=headers, **placed)
        for topic, _, key, value, headers in delivery_records(effects, output_topics):
            produce(topic, value, key, headers=headers)
        self._failpoint("S2")
        told = told_records(effects, output_topics)
        for topic, where, key, value, headers in chain(
            outcome_records(effects, output_topics), told
        ):
            placed = {} if where is None else {"partition": where}
            produce(topic, value, key, headers=headers, **placed)

    def _produce(self, *args: Any, **options: Any) -> None:
        """Produce a record; if the queue is full, wait until it has room."""
        try:
            self._producer.produce(*args, **options)
        except BufferError:
            produce_in_time(self._producer, partial(self._producer.produce, *args, **options))

    def _send_non_transactional(self, effects: Effects) -> list[Fired]:
        """Send records that need not be in the transaction; returns those that have to be in it."""
        non_transactional = effects.non_transactional
        self._non_transactional.send(each for each in effects.fired if each[0] in non_transactional)
        return [each for each in effects.fired if each[0] not in non_transactional]

    def _record(self, effects: Effects) -> float:
        """Put the changelog's rows into the transaction, which are the partition's next state."""
        # The manifest is the last row, and its acknowledgement gives offset and append time.
        topic = self._output_topics.changelog
        rows, tombstones, manifest, parts = changelog_rows(effects.rows, self.signer)
        if parts:
            return self._record_parts(parts)
        if rows and not produce_rows(self._producer, topic, self._partition, rows):
            self._out_of_order()
        for key, headers in tombstones:
            self._produce(topic, None, key, partition=self._partition, headers=headers)
        sent_ms = self._sends_manifest()
        told = {"partition": self._partition, "on_delivery": self._on_manifest}
        key, value = manifest
        self._produce(topic, value, key, **told)
        self._failpoint("S4")
        return sent_ms

    def _sends_manifest(self) -> float:
        self.lease.serves()
        self.lease.sent(self._clock.monotonic_ms())
        return self._clock.wall_ms()

    def _record_parts(self, parts: list[list[Record]]) -> float:
        """Put rows and fillers into the transaction, each part as one batch.

        Queued records leave by `flush`: a part is smaller than a batch, and is queued before it
        could leave because of its age.
        """
        topic, sent_ms = self._output_topics.changelog, 0.0
        produce: Any = self._producer.produce
        for part in parts:
            if self._producer.flush(COMMIT_S):
                raise BufferError("records were not acknowledged in time")
            if part is parts[-1]:
                sent_ms = self._sends_manifest()
            for key, value, headers in part:
                told: dict[str, Any] = {"partition": self._partition, "headers": headers}
                if key.startswith(keys.MANIFEST_PREFIX):
                    told["on_delivery"] = self._on_manifest
                produce(topic, value, key, **told)
        self._failpoint("S4")
        return sent_ms

    def _out_of_order(self) -> None:
        """Note that rows came into the queue in several parts, so their offsets are unknown."""
        if self.signer is not None:
            self.signer.lies_as_signed(None)
            raise Misplaced("the queue was full: rows are not in order")

    def _check_places(self) -> None:
        """Check before the commit that signed rows lie where they are believed.

        The commit itself reports refusals of the broker.
        """
        if self.signer is None:
            return
        self._producer.flush(COMMIT_S)
        if self._refusal is not None:
            return
        at = None if self._acknowledged is None else self._acknowledged[0].offset()
        if not self.signer.lies_as_signed(at):
            raise Misplaced(f"the manifest lies at offset {at}, where it was not expected")

    def _on_manifest(self, error: KafkaError | None, message: Message) -> None:
        # This is called before the commit itself is sent, which makes the transaction visible.
        self.lease.ends()
        if error is None:
            self._acknowledged = (message, *self._clock.both_ms())
        self._refusal = error

    def _on_output(self, error: KafkaError | None, message: Message) -> None:
        # A purged record was not refused: it was in the same transaction as a refused one.
        if error is not None and error.code() not in PURGED:
            self._refused[message.topic() or ""] = error.str()

    def _receipt(self, sent_ms: float) -> Receipt:
        if self._acknowledged is None:
            raise Unknown("the manifest was committed without an acknowledgement")
        message, wall_ms, monotonic_ms = self._acknowledged
        offset = message.offset()
        assert offset is not None
        if self.signer is not None:
            self.signer.committed(offset)
        return Receipt(offset + 1, sent_ms, message.timestamp()[1], wall_ms, monotonic_ms)

    def _roll_back(self, error: KafkaException | BufferError | TopicGone | Misplaced) -> Exception:
        if self.signer is not None:
            self.signer.aborted()
        if isinstance(error, KafkaException):
            self._look_for_partition(error)
            end = end_of(error, during="a transaction")
            if not isinstance(end, Aborted):
                return end
        if isinstance(error, TopicGone):
            self._refused[error.topic] = str(error)
        self._refused |= self._non_transactional.refused
        self._non_transactional.start_over()
        try:
            self._producer.abort_transaction(COMMIT_S)
        except KafkaException as second:
            # If nothing else was in the transaction, the broker has no transaction to abort.
            end = end_of(second, during="abort_transaction", final=True)
            blocked = isinstance(end, Unknown) and is_blocked(error)
            return Unknown(f"{error}; {end}", blocked=True) if blocked else end
        self._watchful = True
        return Aborted(str(error), dict(self._refused), blocked=is_blocked(error))

    def _look_for_partition(self, error: KafkaException) -> None:
        """Learn of partitions that were added since this client looked last: by itself it would
        look in some minutes, and until then a step that writes to one of them would fail.
        """
        if error.args[0].code() == KafkaError._UNKNOWN_PARTITION:  # noqa: SLF001  # its name
            with suppress(KafkaException):
                self._producer.list_topics(self._output_topics.schedules, CONNECT_S)

    def serve(self) -> None:
        """Report figures that wait in its clients; they would pile up in an idle one."""
        self._producer.poll(0)
        self._non_transactional.serve()

    def close(self) -> None:
        """Give the producer up; an open transaction is left to the next owner's fence."""
        give_up(self._producer)
        self._non_transactional.close()
