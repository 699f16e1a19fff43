"""Live load: requests at a steady rate, due a little later, and a reader that sees them fire.

    12:00:00.000  request written, due at 12:00:03.000, which stands in its payload
    12:00:03.000  due
    12:00:03.006  committed
    12:00:03.008  the reader has it, and notes 8 ms

So lateness is measured at a consumer, and includes the broker and the consumer's fetch. Writer and
reader run on this machine and use one clock. `pour` runs in the main thread, and the reader in one
of its own.

The first seconds are left out: then the group, the caches and the broker's Java compiler warm up.
"""

from __future__ import annotations

import os
import time
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from belfry.bench.cluster import BenchCluster
from belfry.bench.plan import COMMON_TOPIC, BenchPlan
from belfry.schedules.identity import partition_of
from belfry.wire import catalogue, framing

# A request is due so long after it is written.
AHEAD_MS: Final = 3_000
SEEN_TENANTS: Final = 8
# Seconds that are left out at the begin, or a third of a short run.
SETTLE_S: Final = 5.0
# Seconds for further records after the first one, so that a record is not kept waiting.
POLL_S: Final = 0.002


def pour(cluster: BenchCluster, plan: BenchPlan) -> None:
    """Write `rate` requests a second for `seconds`; due 3 s later, the instant in the payload."""
    producer = Producer({**cluster.properties, "linger.ms": 2, "compression.type": "lz4"})
    partitions = cluster.settings.cluster.partitions
    names = [f"tenant-{number}" for number in range(plan.tenants)]
    homes = [partition_of(name.encode(), partitions) for name in names]
    head, topic = framing.single_object("ScheduleRequest"), cluster.settings.topic("schedules")
    filling = os.urandom(max(0, plan.payload_bytes - 16))
    began, sent, total = time.monotonic(), 0, plan.rate * plan.seconds
    while sent < total:
        wanted = min(total, int((time.monotonic() - began) * plan.rate) + 1)
        for number in range(sent, wanted):
            due_ms = time.time_ns() // 1_000_000 + AHEAD_MS
            fields = {
                "tenant": names[number % plan.tenants],
                "schedule_id": f"live-{number:09d}",
                "at": due_ms,
                "key": b"k%09d" % number,
                "payload": due_ms.to_bytes(8, "big") + number.to_bytes(8, "big") + filling,
            }
            value = head + catalogue.encode("ScheduleRequest", fields)
            producer.produce(topic, value, partition=homes[number % plan.tenants])
        sent = wanted
        producer.poll(0)
        time.sleep(0.002)
    producer.flush()


def seen_topics(plan: BenchPlan) -> list[str]:
    """The output topics that are read: a consumer of very many would measure itself."""
    if plan.common_topic:
        return [COMMON_TOPIC]
    return [f"fired.tenant-{number}" for number in range(min(plan.tenants, SEEN_TENANTS))]


def seen_events(plan: BenchPlan) -> int:
    """How many events are written to the topics that are read."""
    total = plan.rate * plan.seconds
    if plan.common_topic:
        return total
    return sum(1 for number in range(total) if number % plan.tenants < SEEN_TENANTS)


class LiveReader:
    """Reads some tenants' topics as they fire, `read_committed`; notes how late each event is.

    `expected` is how many events there have to be, and `lateness_ms` has one figure for each event
    that came.
    """

    def __init__(self, cluster: BenchCluster, plan: BenchPlan) -> None:
        self._plan = plan
        self._consumer = Consumer(
            {
                **cluster.properties,
                "group.id": f"{cluster.settings.cluster.app_id}-live",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        partitions = range(cluster.settings.cluster.partitions)
        self._consumer.assign(
            [
                TopicPartition(cluster.settings.topic(topic), partition, 0)
                for topic in seen_topics(plan)
                for partition in partitions
            ]
        )
        self.expected = seen_events(plan)
        self.lateness_ms: list[float] = []
        self._numbers: list[int] = []

    def run(self) -> None:
        """Read until all events have come, or none came for ten seconds."""
        last = time.monotonic() + AHEAD_MS / 1000
        while len(self.lateness_ms) < self.expected and time.monotonic() - last < 10:
            first = self._consumer.poll(0.1)
            if first is None:
                continue
            messages = [first, *self._consumer.consume(2_000, POLL_S)]
            now_ms = time.time_ns() / 1e6
            last = time.monotonic()
            for message in messages:
                value = message.value()
                if message.error() is None and value is not None:
                    self.lateness_ms.append(now_ms - int.from_bytes(value[:8], "big"))
                    self._numbers.append(int.from_bytes(value[8:16], "big"))
        self._consumer.close()

    def steady_ms(self) -> list[float]:
        """Lateness of the events after the first seconds."""
        start = int(min(SETTLE_S, self._plan.seconds / 3) * self._plan.rate)
        pairs = zip(self._numbers, self.lateness_ms, strict=True)
        return [late for number, late in pairs if number >= start]
