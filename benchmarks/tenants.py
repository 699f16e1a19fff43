"""What many tenants, and very different ones, do to each other.

    make bench-tenants CROWD=1000000

Two measurements, a JSON line each, on a belfry of its own with one partition:

- `policies`: how long a worker reads POLICIES policies before it may fire.
- `crowd`: CROWD events of one tenant and ten of another are due within the same second.  A live
  `read_committed` reader notes when each of the ten is there.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from belfry.bench.cluster import BenchCluster
from belfry.bench.workload import Workload, write
from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.settings import Settings
from belfry.tenants.policy import TenantPolicy
from belfry.wire import catalogue, framing

POLICIES: Final = int(os.environ.get("POLICIES", "100000"))
CROWD: Final = int(os.environ.get("CROWD", "1000000"))
QUIET: Final = 10
# For the requests of the crowd to be written and taken in.
AHEAD_MS: Final = 20_000 + CROWD // 20


def policies(settings: Settings) -> dict[str, Any]:
    """Seconds from a worker's first look at the topic to its end, as the worker's log says."""
    with BenchCluster(settings, 1, 1) as cluster:
        servers = cluster.properties["bootstrap.servers"]
        prefix = cluster.settings.cluster.topic_prefix
        written = [TenantPolicy(f"tenant-{n}", max_pending=1_000 + n) for n in range(POLICIES)]
        TenantPolicies(Cluster(servers), prefix).put(*written)
        os.environ["BELFRY_BENCH_LOG_LEVEL"] = "info"
        cluster.start_workers()
        cluster.await_ready()
        del os.environ["BELFRY_BENCH_LOG_LEVEL"]
        lines = cluster.workers[0].log.read_text().splitlines()
        (told,) = [line for line in map(json.loads, lines) if line.get("event") == "policies read"]
        return {"bench": "policies", "policies": told["policies"], "seconds": told["seconds"]}


def crowd(settings: Settings) -> dict[str, Any]:
    """How late the ten events of the quiet tenant were, and how long the crowd took."""
    with BenchCluster(settings, 1, 1) as cluster:
        quiet = cluster.settings.topic("fired.quiet")
        cluster.open_topics(["fired.tenant-0", "fired.quiet"])
        cluster.start_workers()
        cluster.await_ready()
        due_ms = time.time_ns() // 1_000_000 + AHEAD_MS
        topic = cluster.settings.topic("schedules")
        flood = Workload(CROWD, due_ms, 999, tenants=1, payload_bytes=100, partitions=1)
        write(cluster.properties, topic, flood)
        ask_quietly(cluster.properties, topic, due_ms)
        while cluster.pending() < CROWD + QUIET:
            time.sleep(0.2)
        late = watch(cluster.properties, quiet)
        while cluster.pending():
            time.sleep(0.2)
        took = time.time() - due_ms / 1000
        return {
            "bench": "crowd",
            "crowd": CROWD,
            "quiet_ms": sorted(round(each) for each in late),
            "crowd_seconds": round(took, 1),
        }


def ask_quietly(properties: dict[str, Any], topic: str, due_ms: int) -> None:
    """Ten requests of the other tenant, spread over the same second; the instant is the payload."""
    producer = Producer(properties)
    head = framing.single_object("ScheduleRequest")
    for number in range(QUIET):
        at = due_ms + 100 * number
        fields = {
            "tenant": "quiet",
            "schedule_id": f"{number}",
            "at": at,
            "payload": b"%d" % at,
        }
        producer.produce(topic, head + catalogue.encode("ScheduleRequest", fields), b"quiet")
    producer.flush()


def watch(properties: dict[str, Any], topic: str) -> list[float]:
    """Lateness of the ten, by the clock of who reads them."""
    consumer = Consumer(
        {**properties, "group.id": "watch", "isolation.level": "read_committed"}
        | {"enable.auto.commit": False, "fetch.wait.max.ms": 10}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[float] = []
    while len(found) < QUIET:
        message = consumer.poll(1)
        if message is not None and message.error() is None and message.value():
            found.append(time.time_ns() / 1e6 - int(message.value() or b""))
    consumer.close()
    return found


if __name__ == "__main__":
    given = Settings()
    print(json.dumps(policies(given)), flush=True)
    print(json.dumps(crowd(given)), flush=True)
