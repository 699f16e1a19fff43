"""Policies written to their topic, signed where a secret is given (`wire/policy_signatures.py`).

A signature covers the offset of its record.  So records are signed for the offsets that come next,
sent in order, and looked at where they have come to lie.  Those that lie elsewhere, because others
wrote at the same time, count for nothing and are written again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster, flush
from belfry.schedules.identity import partition_of
from belfry.wire.policy_signatures import RecordLocation, policy_signature

WRITE_S: Final = 12.0
ROUNDS: Final = 30

Values = Mapping[str, bytes | None]


def write_policies(
    cluster: Cluster, topic: str, values: Values, key: bytes, end: Callable[[int], int]
) -> None:
    """Write records by tenant (None: a tombstone); raises `Unavailable`.

    `key` signs, unless it is empty.  `end` tells where a partition ends now.
    """
    writer = _Writer(cluster, topic, key, end)
    left = dict(values)
    for _ in range(ROUNDS):
        left = writer.write(left)
        if not left:
            return
    raise Unavailable(
        f"{len(left)} policies could not be signed: others write to {topic} all the time. Find out"
        " who they are, and repeat the command."
    )


class _Writer:
    def __init__(self, cluster: Cluster, topic: str, key: bytes, end: Callable[[int], int]) -> None:
        self._cluster, self._topic, self._key, self._end = cluster, topic, key, end
        self._producer = cluster.producer()
        self._partitions = len(cluster.partitions(self._producer, topic))
        self._errors: list[KafkaError] = []
        self._misplaced: dict[str, bytes | None] = {}

    def write(self, values: Values) -> dict[str, bytes | None]:
        """Write records; those that have come to lie elsewhere than they were signed for."""
        self._misplaced = {}
        by_partition: dict[int, list[str]] = defaultdict(list)
        for name in values:
            by_partition[partition_of(name.encode(), self._partitions)].append(name)
        for partition, names in by_partition.items():
            start = self._end(partition) if self._key else 0
            for offset, name in enumerate(names, start):
                self._send(RecordLocation(self._topic, partition, offset), name, values[name])
        try:
            left = flush(self._producer, WRITE_S)
        except KafkaException as error:
            raise self._cluster.unavailable(error.args[0], self._topic, operation="Write") from None
        if self._errors:
            raise self._cluster.unavailable(self._errors[0], self._topic, operation="Write")
        if left:
            raise Unavailable(f"Kafka has not confirmed {left} policies in {WRITE_S:.0f} s.")
        return self._misplaced

    def _send(self, location: RecordLocation, name: str, value: bytes | None) -> None:
        def told(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                self._errors.append(error)
            elif self._key and message.offset() != location.offset:
                self._misplaced[name] = value

        tenant = name.encode()
        headers: Any = policy_signature(self._key, location, tenant, value) if self._key else []
        self._producer.produce(
            self._topic,
            value,
            tenant,
            partition=location.partition,
            headers=headers,
            on_delivery=told,
        )
        self._producer.poll(0)
