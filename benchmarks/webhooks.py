"""How fast webhooks are delivered, and what hosts that hang do to the others.

    make bench-webhooks POSTS=20000

Two measurements, a JSON line each, with one process that fires, one that delivers, and a sink in a
process of its own that answers 204:

- `deliveries`: POSTS events with one target are due at one instant; posts a second at the sink.
- `half_hang`: TARGETS hosts get one event each within SPREAD_S seconds, and half of them accept
  connections and never answer; how late the others' posts are.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import uvloop
from confluent_kafka import Producer

from belfry.bench.cluster import BenchCluster
from belfry.bench.worker import BenchWorker
from belfry.schedules.identity import partition_of
from belfry.settings import Settings
from belfry.wire import catalogue, framing

POSTS: Final = int(os.environ.get("POSTS", "20000"))
TARGETS: Final = int(os.environ.get("TARGETS", "10000"))
SPREAD_S: Final = int(os.environ.get("SPREAD_S", "20"))
AHEAD_MS: Final = 12_000
PARTITIONS: Final = 4
TENANTS: Final = 16
NETWORKS: Final = '["127.0.0.0/8"]'
ANSWER: Final = b"HTTP/1.1 204 No Content\r\n\r\n"


class Answering(asyncio.Protocol):
    """Answers 204, and notes when each post came and when it was due, as its path says."""

    seen: Final[list[tuple[float, int]]] = []

    def connection_made(self, transport: Any) -> None:
        """A client is there."""
        self._transport = transport
        self._left = b""

    def data_received(self, data: bytes) -> None:
        """Some bytes of posts; bodies are of a size that their header tells."""
        self._left += data
        while (end := self._left.find(b"\r\n\r\n")) >= 0:
            head = self._left[:end].lower()
            size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            if len(self._left) < end + 4 + size:
                return
            self._left = self._left[end + 4 + size :]
            self.seen.append((time.time(), int(head.split(b" ", 2)[1].rpartition(b"/")[2])))
            self._transport.write(ANSWER)


class Hanging(asyncio.Protocol):
    """Takes a connection and says nothing."""


def sink(pipe: Connection) -> None:
    """Serve until told to end; tells its two ports first, and what it has seen when asked."""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_server(kind, "0.0.0.0", 0, backlog=4_096)  # noqa: S104  # all of 127/8
            for kind in (Answering, Hanging)
        ]
        pipe.send([server.sockets[0].getsockname()[1] for server in servers])
        while True:
            await asyncio.sleep(0.1)
            while pipe.poll():
                if pipe.recv() == "end":
                    return
                pipe.send(list(Answering.seen))
                Answering.seen.clear()

    uvloop.run(serve())


class Sink:
    """The sink, in a process of its own."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=sink, args=(theirs,), daemon=True)
        self._process.start()
        self.port, self.silent_port = self._pipe.recv()
        self.seen: list[tuple[float, int]] = []

    def await_posts(self, number: int, patience_s: float) -> None:
        """Wait until so many posts came, or none for so long."""
        last = time.monotonic()
        while len(self.seen) < number and time.monotonic() - last < patience_s:
            time.sleep(0.3)
            self._pipe.send("seen")
            fresh = self._pipe.recv()
            self.seen += fresh
            if fresh:
                last = time.monotonic()

    def end(self) -> None:
        """End the process."""
        self._pipe.send("end")
        self._process.join()


def schedule(cluster: BenchCluster, targets: list[tuple[str, int]]) -> None:
    """Ask for one event for each (address, due instant); the address is its only target."""
    producer = Producer({**cluster.properties, "linger.ms": 20})
    topic, head = cluster.settings.topic("schedules"), framing.single_object("ScheduleRequest")
    for number, (url, due_ms) in enumerate(targets):
        tenant = f"tenant-{number % TENANTS}"
        fields = {
            "tenant": tenant,
            "schedule_id": f"hook-{number:07d}",
            "at": due_ms,
            "payload": b'{"order":4711,"paid":true}',
            "http_targets": [{"url": f"{url}/{due_ms}", "timeout_ms": 3_000, "max_attempts": 2}],
        }
        value = head + catalogue.encode("ScheduleRequest", fields)
        producer.produce(topic, value, partition=partition_of(tenant.encode(), PARTITIONS))
        producer.poll(0)
    producer.flush()


def start(cluster: BenchCluster) -> BenchWorker:
    """Start who fires and who delivers; the latter is to be stopped."""
    os.environ["BELFRY_ROLE"] = "schedule"
    cluster.start_workers()
    cluster.await_ready()
    os.environ["BELFRY_ROLE"] = "deliver"
    return BenchWorker(cluster.settings, Path(tempfile.mkdtemp(prefix="belfry-bench-")), 0)


def late(seen: list[tuple[float, int]]) -> dict[str, float]:
    """Lateness of posts, in milliseconds."""
    ordered = sorted(at * 1000 - due_ms for at, due_ms in seen) or [-1.0]
    shares = {"p50_ms": 0.5, "p99_ms": 0.99, "max_ms": 1.0}
    last = len(ordered) - 1
    return {name: round(ordered[min(last, int(len(ordered) * s))]) for name, s in shares.items()}


def deliveries() -> dict[str, Any]:
    """All due at once, for one host."""
    with BenchCluster(Settings(), 1, PARTITIONS) as cluster:
        there = Sink()
        cluster.open_topics([f"fired.tenant-{number}" for number in range(TENANTS)])
        deliverer = start(cluster)
        due_ms = time.time_ns() // 1_000_000 + AHEAD_MS
        schedule(cluster, [(f"http://127.0.0.1:{there.port}/one", due_ms)] * POSTS)
        there.await_posts(POSTS, 30)
        there.end()
        deliverer.stop()
        times = sorted(at for at, _ in there.seen)
        seconds = times[-1] - due_ms / 1000
        return {
            "bench": "deliveries",
            "posts": len(times),
            "seconds": round(seconds, 2),
            "per_second": round(len(times) / seconds),
        }


def half_hang() -> dict[str, Any]:
    """Half of the hosts hang."""
    with BenchCluster(Settings(), 1, PARTITIONS) as cluster:
        there = Sink()
        cluster.open_topics([f"fired.tenant-{number}" for number in range(TENANTS)])
        deliverer = start(cluster)
        due_ms = time.time_ns() // 1_000_000 + AHEAD_MS
        targets = []
        for number in range(TARGETS):
            port = there.silent_port if number % 2 else there.port
            host = f"127.{1 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}"
            targets.append(
                (f"http://{host}:{port}/one", due_ms + number * SPREAD_S * 1000 // TARGETS)
            )
        schedule(cluster, targets)
        there.await_posts(TARGETS // 2, 30)
        there.end()
        deliverer.stop()
        return {
            "bench": "half_hang",
            "targets": TARGETS,
            "posts": len(there.seen),
            "seconds": SPREAD_S,
            **late(there.seen),
        }


if __name__ == "__main__":
    os.environ["BELFRY_WEBHOOK_PRIVATE_NETWORKS"] = NETWORKS
    for measure in (deliveries, half_hang):
        print(json.dumps(measure()), flush=True)
