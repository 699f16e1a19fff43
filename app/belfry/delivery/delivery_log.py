"""Kafka as deliveries need it: records in, and follow-up records out, in one transaction.

The positions in the topic of deliveries move in the same transaction as the outcomes and retries
that explain them, as offsets of the group; the group's generation fences a member that has lost a
partition. The transactional id belongs to this worker's data directory, so a restart ends at once
the transaction that a crash left open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import structlog
from confluent_kafka import (
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from belfry.delivery.follow_ups import Produced
from belfry.delivery.log_clients import consumer_properties, producer_properties
from belfry.delivery.progress import DeliveryPosition
from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.settings import DeliverySettings

DELIVERIES: Final = "deliveries"
# Seconds to end an earlier run's transaction, for a commit, and for committed positions.
INIT_S: Final = 30.0
LOOK_S: Final = 1.0
COMMIT_S: Final = 9.5
COMMITTED_S: Final = 10.0
# After so long without reading the consumer is polled, or the group would drop this member.
LONGEST_SILENCE_S: Final = 1.0
# After so long without a transaction its producer is let go.
IDLE_S: Final = 10.0
# Errors that the client reports while it looks for brokers.
_PASSING: Final = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT}

log = structlog.get_logger(__name__)


class DeliveryLog:
    """A member of the group that delivers, used by one thread alone.

    A transaction of this member, and the fence where another one has got its partitions:

        12:00:00.00  read offsets 10 to 14 of partition 2, in generation 5 of the group
        12:00:00.20  transaction: outcomes, retries, position 12 with a note of other ended ones
        12:00:30.00  the group shares anew: partition 2 goes to another member, generation 6
        12:00:30.10  transaction with the position of generation 5: refused as a whole (KIP-447)

    So no member moves a position of another one, and the new member repeats the posts made in
    between, with the same id.

    Records that retention removes before they were read are seen in one place, where partitions are
    assigned: a position that is not in the log any more ends the member, and the next one begins at
    the first record that is left, and counts the others.
    """

    def __init__(
        self,
        settings: DeliverySettings,
        told: Mapping[str, Any],
        on_assign: Any,
        on_revoke: Any,
        of: str = DELIVERIES,
    ) -> None:
        """`told` are properties by which its clients tell figures.

        `on_assign` gets {partition: DeliveryPosition}, `on_revoke` nothing.  `of` names the topic
        of belfry to read; each has a group of its own.
        """
        self._topic = settings.topic(of)
        self._on_assign, self._on_revoke = on_assign, on_revoke
        apart = "" if of == DELIVERIES else f".{of}"
        self._properties = {**producer_properties(settings, apart), **told}
        # Released while there is no record to write: it has threads of its own.
        self._producer: librdkafka.Producer | None = None
        self._written_s = 0.0
        self._consumer = librdkafka.Consumer({**consumer_properties(settings, apart), **told})
        self._paused = False
        self._full_since = 0.0
        # Partitions whose end the last `read` has met, with the offset up to which all is read.
        self.ends: dict[int, int] = {}

    def open(self, stopping: machine.Event) -> None:
        """End an earlier run's transaction, then join the group; raises KafkaException.

        A look that has no answer within `LOOK_S` is gone on with by the next one.  Where it is to
        stop meanwhile, the group is not joined.
        """
        if self._begin_writing(INIT_S, stopping.is_set) is None:
            return
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def read(self, at_most: int, timeout_s: float) -> list[librdkafka.Message]:
        """Records, or none; with no room for any the group still hears from here.

        At most `at_most` records come, within `timeout_s` seconds. Raises KafkaException for an
        error that does not pass by itself.
        """
        if self._producer is not None:
            # Figures would pile up in a client that is not polled.
            self._producer.poll(0)
            if machine.monotonic() - self._written_s > IDLE_S:
                self._producer = None
        self.ends.clear()
        if at_most <= 0:
            return self._wait()
        self._full_since = 0.0
        self._pause(paused=False)
        return self._records_of(self._consumer.consume(at_most, timeout_s))

    def commit(self, records: Iterable[Produced], progress: dict[int, DeliveryPosition]) -> None:
        """Write records and positions in one transaction; raises KafkaException if it is not.

        After an error the object is of no use any more: close it, and open another one.
        """
        producer: Any = self._producer or self._begin_writing(COMMIT_S)
        producer.begin_transaction()
        for record in records:
            producer.produce(record.topic, record.value, record.key, headers=record.headers)
        offsets = [
            TopicPartition(self._topic, partition, each.position, each.metadata())
            for partition, each in progress.items()
        ]
        group = self._consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(offsets, group, COMMIT_S)
        producer.commit_transaction(COMMIT_S)
        self._written_s = machine.monotonic()

    def close(self) -> None:
        """Leave the group; the next `open` ends an open transaction."""
        if self._producer is not None:
            self._producer.purge()
        self._consumer.close()

    def _begin_writing(
        self, within_s: float, stopping: Callable[[], bool] = lambda: False
    ) -> librdkafka.Producer | None:
        """A producer that may begin transactions, once its earlier one has ended.

        None where it is to stop meanwhile.
        """
        producer, until = librdkafka.Producer(self._properties), machine.monotonic() + within_s
        while not stopping():
            try:
                producer.init_transactions(LOOK_S)
            except KafkaException as error:
                if not error.args[0].retriable() or machine.monotonic() > until:
                    raise
            else:
                self._producer, self._written_s = producer, machine.monotonic()
                return producer
        return None

    def _wait(self) -> list[librdkafka.Message]:
        """Read no records; if that lasts, serve the group all the same.

        A pause throws away records that were read ahead, so a short wait goes without one.
        """
        self._full_since = self._full_since or machine.monotonic()
        if machine.monotonic() - self._full_since < LONGEST_SILENCE_S:
            return []
        self._pause(paused=True)
        unasked = self._consumer.poll(0)
        found = [] if unasked is None else self._records_of([unasked])
        # Whether all up to an end was read is not asked amid a pause, which throws records away.
        self.ends.clear()
        return found

    def _records_of(self, messages: Iterable[librdkafka.Message]) -> list[librdkafka.Message]:
        """The records; raises KafkaException for an error that does not pass by itself.

        A reader that has no room has to hear of these as well: after an offset that is out of range
        the client reads its partition no more.
        """
        found = []
        for message in messages:
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self.ends[message.partition() or 0] = message.offset() or 0
            elif error.code() not in _PASSING:
                raise KafkaException(error)
        return found

    def _pause(self, *, paused: bool) -> None:
        if paused != self._paused:
            self._paused = paused
            change = self._consumer.pause if paused else self._consumer.resume
            change(self._consumer.assignment())

    def _assigned(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Begin at the committed positions of the partitions that the group has given; called amid
        `read`.
        """
        progress: dict[int, DeliveryPosition] = {}
        for found in consumer.committed(partitions, COMMITTED_S) if partitions else ():
            if found.error is not None:
                raise KafkaException(found.error)
            low, high = consumer.get_watermark_offsets(found, COMMITTED_S)
            progress[found.partition] = self._begin(found, low, high)
        self._paused = False
        consumer.assign(
            [TopicPartition(self._topic, p, each.position) for p, each in progress.items()]
        )
        self._on_assign(progress)

    def _begin(self, committed: TopicPartition, low: int, high: int) -> DeliveryPosition:
        """Where a partition goes on whose log holds offsets from `low` up to `high`."""
        if committed.offset == OFFSET_INVALID or committed.offset > high:
            # It is new or forgotten, or the topic was made anew: deliver all records that are left.
            return DeliveryPosition(low, kept=False)
        here = DeliveryPosition(committed.offset, committed.metadata or "")
        here.kept_from(low)
        if here.removed:
            log.error(
                "records were removed by their topic's retention before they were read",
                topic=self._topic,
                partition=committed.partition,
                at_most=here.removed,
                position=committed.offset,
                kept_from=low,
            )
        return here

    def _revoked(self, _consumer: Any, _partitions: list[TopicPartition]) -> None:
        """The group takes partitions away; called amid `read`, before others get them."""
        self._on_revoke()
