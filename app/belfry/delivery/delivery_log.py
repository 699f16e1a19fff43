"""Kafka as deliveries need it: records in, and what follows from them out, in one transaction.

The positions in the topic of deliveries move in the same transaction as the outcomes and retries
that explain them, as offsets of the group; the group's generation fences who has lost a partition.
The transactional id belongs to this worker's data directory, so a restart ends at once what a crash
left open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from belfry.delivery.follow_ups import Produced
from belfry.delivery.progress import DeliveryPosition
from belfry.kafka.client_properties import MESSAGE_TIMEOUT_MS
from belfry.settings import DeliverySettings

DELIVERIES: Final = "deliveries"
# Seconds to end what a former life left open, for a commit, and for committed positions.
INIT_S: Final = 30.0
LOOK_S: Final = 1.0
COMMIT_S: Final = 9.5
COMMITTED_S: Final = 10.0
# After so long without reading the consumer is polled, or the group would drop this member.
LONGEST_SILENCE_S: Final = 1.0
# Who reads requests waits for open transactions, so a dead process's must end soon.
TRANSACTION_MS: Final = 5_000
# Errors that the client reports while it looks for brokers.
_PASSING: Final = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT}


class DeliveryLog:
    """A member of the group that delivers, used by one thread alone.

    A transaction of this member, and the fence where another one has got its partitions:

        12:00:00.00  read offsets 10 to 14 of partition 2, in generation 5 of the group
        12:00:00.20  transaction: outcomes, retries, position 12 with a note of what else has ended
        12:00:30.00  the group shares anew: partition 2 goes to another member, generation 6
        12:00:30.10  transaction with the position of generation 5: refused as a whole (KIP-447)

    So nobody moves a position that is another one's, and what was posted in between is posted again
    by the new member, with the same id.
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

        `on_assign` gets {partition: DeliveryPosition}, `on_revoke` nothing.  `of` is
        which of belfry's topics is read; each has a group of its own.
        """
        self._topic = settings.topic(of)
        self._on_assign, self._on_revoke = on_assign, on_revoke
        apart = "" if of == DELIVERIES else f".{of}"
        self._producer = Producer({**_producer_properties(settings, apart), **told})
        self._consumer = Consumer({**_consumer_properties(settings, apart), **told})
        self._paused = False
        self._full_since = 0.0

    def open(self, stopping: Event) -> None:
        """End what a former life left open, then join the group; raises KafkaException.

        A look that has no answer within `LOOK_S` is gone on with by the next one.  Where it is to
        stop meanwhile, the group is not joined.
        """
        until = monotonic() + INIT_S
        while not stopping.is_set():
            try:
                self._producer.init_transactions(LOOK_S)
                break
            except KafkaException as error:
                if not error.args[0].retriable() or monotonic() > until:
                    raise
        else:
            return
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def read(self, at_most: int, timeout_s: float) -> list[Message]:
        """Records, or none; with no room for any the group still hears from here.

        At most `at_most` records come, within `timeout_s` seconds. Raises KafkaException for an
        error that does not pass by itself.
        """
        # Figures would pile up in a client that nobody polls.
        self._producer.poll(0)
        if at_most <= 0:
            return self._wait()
        self._full_since = 0.0
        self._pause(paused=False)
        found = []
        for message in self._consumer.consume(at_most, timeout_s):
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() not in _PASSING:
                raise KafkaException(error)
        return found

    def commit(self, records: Iterable[Produced], progress: dict[int, DeliveryPosition]) -> None:
        """Write records and positions in one transaction; raises KafkaException if it is not.

        After an error the object is of no use any more: close it, and open another one.
        """
        producer: Any = self._producer
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

    def close(self) -> None:
        """Leave the group; what is open in a transaction is ended by the next `open`."""
        self._producer.purge()
        self._consumer.close()

    def _wait(self) -> list[Message]:
        """Read nothing; where that lasts, hear what the group wants all the same.

        A pause throws away what was read ahead, so a short wait goes without one.
        """
        self._full_since = self._full_since or monotonic()
        if monotonic() - self._full_since < LONGEST_SILENCE_S:
            return []
        self._pause(paused=True)
        unasked = self._consumer.poll(0)
        return [] if unasked is None or unasked.error() else [unasked]

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
            if found.offset != OFFSET_INVALID:
                progress[found.partition] = DeliveryPosition(found.offset, found.metadata or "")
            else:
                low, _ = consumer.get_watermark_offsets(found, COMMITTED_S)
                progress[found.partition] = DeliveryPosition(low)
        self._paused = False
        consumer.assign(
            [TopicPartition(self._topic, p, each.position) for p, each in progress.items()]
        )
        self._on_assign(progress)

    def _revoked(self, _consumer: Any, _partitions: list[TopicPartition]) -> None:
        """The group takes partitions away; called amid `read`, before others get them."""
        self._on_revoke()


def _producer_properties(settings: DeliverySettings, apart: str) -> dict[str, Any]:
    """A short transaction time-out, and one transactional id for each data directory."""
    own = _own_id(settings.data_dir, apart)
    return {
        "linger.ms": 5,
        "compression.type": "lz4",
        **settings.kafka_properties(),
        "transactional.id": f"{settings.cluster.app_id}.deliver{apart}.{own}",
        "transaction.timeout.ms": TRANSACTION_MS,
        "message.timeout.ms": min(MESSAGE_TIMEOUT_MS, TRANSACTION_MS),
        "partitioner": "murmur2_random",
        "message.max.bytes": 4_000_000,
    }


def _consumer_properties(settings: DeliverySettings, apart: str) -> dict[str, Any]:
    """A static member (KIP-345) that reads what is committed and commits nothing by itself."""
    return {
        "fetch.wait.max.ms": 100,
        "queued.max.messages.kbytes": 16 * 1024,
        **settings.kafka_properties(),
        "group.id": f"{settings.cluster.app_id}.deliver{apart}",
        # Who restarts gets its partitions back at once, instead of waiting for its own ghost.
        "group.instance.id": _own_id(settings.data_dir, apart),
        "session.timeout.ms": max(settings.session_timeout_ms, 6_000),
        "heartbeat.interval.ms": settings.heartbeat_interval_ms,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }


def _own_id(data_dir: Path, apart: str) -> str:
    """A name of this data directory's own, the same after a restart; one for each topic read."""
    path = data_dir / f"deliverer{apart}"
    if not path.exists():
        path.write_text(uuid4().hex)
    return path.read_text()
