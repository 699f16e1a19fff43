"""The workload: 97 tenants, events of about 500 bytes, keys and ids as services write them.

A prime number of tenants spreads them unevenly over 4 partitions, as real names do. Requests are
numbered, and tenant, id and key follow from the number. So each run writes the same requests,
except for their instants and random payloads.

Requests are encoded while they are written, and never lie in memory together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Producer

from belfry.bench.plan import Tell, silent
from belfry.schedules.identity import partition_of
from belfry.wire import catalogue, framing

TENANTS: Final = 97
PAYLOAD_BYTES: Final = 400
# Payloads are windows of one random pool: no two are alike, and none can be compressed.
POOL_BYTES: Final = 1 << 20
DAY_MS: Final = 86_400_000
WRITTEN: Final = "requests written"


@dataclass(frozen=True, slots=True)
class Workload:
    """The written requests: how many, for how many tenants, how large, due when."""

    events: int
    # The due instant, in epoch ms; each request is up to `spread_ms` later, by its number.
    due_ms: int
    spread_ms: int = 0
    tenants: int = TENANTS
    payload_bytes: int = PAYLOAD_BYTES
    partitions: int = 4
    # Each request has an id, and so gets a verdict.
    with_ids: bool = False
    kind: str = "AT"
    # The begin of ids, so that two workloads of one run do not share ids.
    stem: str = "order"

    def requests(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Home partition, key and value of each request.

        The home is worked out here as a client's partitioner would, so that no request has to be
        forwarded.
        """
        names = [f"tenant-{number}" for number in range(self.tenants)]
        homes = [partition_of(name.encode(), self.partitions) for name in names]
        keys = [name.encode() for name in names]
        head = framing.single_object("ScheduleRequest")
        pool = os.urandom(self.payload_bytes + POOL_BYTES)
        size = self.payload_bytes
        for number in range(self.events):
            which = number % self.tenants
            fields: dict[str, Any] = {
                "tenant": names[which],
                "schedule_id": f"{self.stem}-{number:012d}",
                **self._when(number),
                "key": b"k%09d" % number,
                "payload": pool[(start := number * 7919 % POOL_BYTES) : start + size],
            }
            if self.with_ids:
                fields["request_id"] = f"request-{number}"
            yield homes[which], keys[which], head + catalogue.encode("ScheduleRequest", fields)

    def _when(self, number: int) -> dict[str, Any]:
        """The fields that say when a schedule is due: once, or daily from this instant on."""
        if self.kind == "EVERY":
            return {"kind": "EVERY", "interval_ms": DAY_MS, "start_at": self.due_ms}
        if self.kind == "CRON":
            minute = self.due_ms // 60_000
            return {"kind": "CRON", "cron": f"{minute % 60} {minute // 60 % 24} * * *"}
        return {"at": self.due_ms + (number * 7919) % (self.spread_ms + 1)}


def write(properties: dict[str, Any], topic: str, workload: Workload, tell: Tell = silent) -> None:
    """Write a workload to a topic, each request to its home; returns when all are acknowledged.

    The producer is not transactional, so a request may be there twice after an error. The second
    request of an id is UNCHANGED, and does not count. `tell` is called with the number of written
    requests.
    """
    producer = Producer(
        {
            **properties,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for number, (home, key, value) in enumerate(workload.requests()):
        while True:
            try:
                producer.produce(topic, value, key, partition=home)
                break
            except BufferError:
                producer.poll(0.05)
        if not number & 0xFFF:
            producer.poll(0)
            tell(WRITTEN, number, workload.events)
    producer.flush()
    tell(WRITTEN, workload.events, workload.events)
