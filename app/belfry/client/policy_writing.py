"""Policies written to their topic, signed where a secret is given (`wire/policy_signatures.py`).

A signature covers the offset of its record. So records are signed for the offsets that come next,
sent in order, and checked at their offsets. Those that lie elsewhere, because others wrote at the
same time, do not count and are written again.

    partition 3 ends at 41
    12:00:00.000  a signed for 41, b signed for 42                sent
    12:00:00.004  somebody else's record lies at 41
    12:00:00.005  a lies at 42, b at 43: neither signature holds
    12:00:00.010  a signed for 44, b signed for 45                sent again
    12:00:00.015  a lies at 44, b at 45: done

A copy of a signed record at another offset does not count, so nobody can put an old policy back by
copying it. Without a secret the first round is the last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from time import monotonic, sleep
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from belfry.client.acknowledged import flush
from belfry.client.errors import Unavailable
from belfry.client.faults import MOVING
from belfry.client.kafka import NO_GROUP, REACH_S, RETRY_S, Cluster
from belfry.client.watermarks import watermarks
from belfry.kafka.causes import cause_of
from belfry.schedules.identity import partition_of
from belfry.wire.policies import reason_header
from belfry.wire.policy_signatures import RecordLocation, policy_signature
from belfry.wire.record import Headers

# Seconds for a broker to say where a partition ends.
READ_S: Final = 30.0
WRITE_S: Final = 12.0
# Rounds before it is said that others write all the time.
ROUNDS: Final = 30

Values = Mapping[str, bytes | None]


class PolicyWriter:
    """Writes policies to their topic; `key` signs them, unless it is empty.

    Its producer stays: a new one takes up to half a second to be known to the broker.  It is given
    up once something has failed, for a producer's failure may be its last.
    """

    def __init__(self, cluster: Cluster, topic: str, key: bytes) -> None:
        self._cluster, self._topic, self._key = cluster, topic, key
        self._producer: Producer | None = None

    def write(self, values: Values, reason: str | None = None) -> None:
        """Write records by tenant (None: a tombstone), with the reason; raises `Unavailable`.

        To repeat it is safe: the last record of a tenant counts. It blocks until all are
        acknowledged.
        """
        producer = self._producer or self._cluster.producer()
        self._producer = None
        one = _Writing(self._cluster, producer, self._topic, self._key, reason_header(reason))
        left = dict(values)
        for _ in range(ROUNDS):
            left = one.round(left)
            if not left:
                self._producer = producer
                return
        raise Unavailable(
            f"{len(left)} policies could not be signed: others write to {self._topic} all the time."
            " Find out who they are, and repeat the command."
        )


def log_bounds(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """The first offset of a partition and the one behind its last; raises `Unavailable`."""
    place, deadline = TopicPartition(topic, partition), monotonic() + REACH_S
    while True:
        try:
            low, high = watermarks(consumer, place, READ_S)
        except (KafkaException, TypeError) as error:
            # A topic that was created this moment has leaders that do not know it yet.
            code = error.args[0].code() if isinstance(error, KafkaException) else None
            if code not in MOVING or monotonic() > deadline:
                raise Unavailable(f"{topic}: no answer: {cause_of(error)}.") from error
            sleep(RETRY_S)
        else:
            return low, high


class _Writing:
    """One write, by one producer."""

    def __init__(
        self, cluster: Cluster, producer: Producer, topic: str, key: bytes, more: Headers
    ) -> None:
        """`more` are headers of each record, besides its signature."""
        self._cluster, self._producer, self._topic, self._key = cluster, producer, topic, key
        self._more = more
        self._partitions = len(cluster.partitions(producer, topic))
        self._errors: list[KafkaError] = []
        self._misplaced: dict[str, bytes | None] = {}

    def round(self, values: Values) -> dict[str, bytes | None]:
        """Write records; returns those that lie at another offset than they were signed for."""
        self._misplaced = {}
        by_partition: dict[int, list[str]] = defaultdict(list)
        for name in values:
            by_partition[partition_of(name.encode(), self._partitions)].append(name)
        starts = self._ends(by_partition)
        try:
            for partition, names in by_partition.items():
                for offset, name in enumerate(names, starts[partition]):
                    self._send(RecordLocation(self._topic, partition, offset), name, values[name])
            left = flush(self._cluster, self._producer, WRITE_S)
        except KafkaException as error:
            raise self._cluster.unavailable(error.args[0], self._topic, operation="Write") from None
        if self._errors:
            raise self._cluster.unavailable(self._errors[0], self._topic, operation="Write")
        if left:
            raise Unavailable(f"Kafka has not confirmed {left} policies in {WRITE_S:.0f} s.")
        return self._misplaced

    def _ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """Where these end now; it counts for signatures alone."""
        if not self._key:
            return dict.fromkeys(partitions, 0)
        with closing(self._cluster.consumer(NO_GROUP, uncommitted=True)) as consumer:
            return {each: log_bounds(consumer, self._topic, each)[1] for each in partitions}

    def _send(self, location: RecordLocation, name: str, value: bytes | None) -> None:
        """Send one record, and note in its callback where it has come to lie."""

        def told(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                self._errors.append(error)
            elif self._key and message.offset() != location.offset:
                self._misplaced[name] = value

        tenant = name.encode()
        signed = policy_signature(self._key, location, tenant, value) if self._key else []
        headers: Any = [*signed, *self._more]
        self._producer.produce(
            self._topic,
            value,
            tenant,
            partition=location.partition,
            headers=headers,
            on_delivery=told,
        )
        self._producer.poll(0)
