"""What the fetcher is tested against: a client that answers as it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from belfry.kafka.epoch_requests import OffsetsForEpochs
from belfry.kafka.fetch_position import Where
from tests.simulation.record_batches import stored

A, B = ("in", 0), ("in", 1)
# Partition, code, high watermark, last stable offset, aborted, data.
Row = tuple[int, int, int, int, list[Any], bytes]


def batch(offset: int, epoch: int = 7) -> bytes:
    data = bytearray(stored(offset, 1_000, (b"k", b"v", None), -1))
    data[12:16] = epoch.to_bytes(4, "big")
    return bytes(data)


class Cluster:
    """Logs, and brokers that lead them; `rows` answers what is fetched of a partition."""

    def __init__(self) -> None:
        self.leaders: dict[Where, int] = {A: 1, B: 1}
        self.logs: dict[Where, int] = {A: 0, B: 0}
        self.rows: dict[Where, Callable[[int], Row]] = {}
        self.ends: dict[Where, tuple[int, int]] = {}
        self.throttle_ms = 0
        # How long a request waits for something, if it may wait at all.
        self.waits_s = 0.01
        self.broken: list[Exception] = []
        self.asked: list[tuple[int, dict[Where, int]]] = []
        self.groups: list[Any] = []
        self.clients: list[Client] = []
        self.waits_ms: list[int] = []

    def row(self, where: Where, offset: int) -> Row:
        if where in self.rows:
            return self.rows[where](offset)
        end = self.logs[where]
        return (where[1], 0, end, end, [], batch(offset) if offset < end else b"")


class Client:
    """What of aiokafka's client the fetcher uses."""

    cluster_of: Cluster

    def __init__(self, _properties: Any, **_: Any) -> None:
        self.cluster_of.clients.append(self)
        self.cluster = SimpleNamespace(
            leader_for_partition=lambda place: self.cluster_of.leaders.get(tuple(place)),
            brokers=lambda: [SimpleNamespace(nodeId=n) for n in self.cluster_of.leaders.values()],
            unauthorized_topics=(),
        )
        self._topics: set[str] = set()
        self._conns: dict[Any, Any] = {}
        self.updates = 0
        self.closed = False

    async def bootstrap(self) -> None:
        self._sync_task = asyncio.create_task(asyncio.sleep(60))

    async def set_topics(self, topics: set[str]) -> None:
        self._topics = topics

    def force_metadata_update(self) -> None:
        self.updates += 1

    async def send(self, leader: int, request: Any, *, group: Any) -> Any:
        cluster = self.cluster_of
        if isinstance(request, OffsetsForEpochs):
            return SimpleNamespace(
                topics=[
                    (topic, [(*cluster.ends[topic, p][:1], p, 7, cluster.ends[topic, p][1])])
                    for topic, rows in request._topics.items()
                    for p, _, _ in rows
                ]
            )
        wanted = {(topic, p): at for topic, rows in request for p, at, _ in rows}
        cluster.asked.append((leader, wanted))
        cluster.groups.append(group)
        if cluster.broken:
            raise cluster.broken.pop(0)
        topics = [(where[0], [cluster.row(where, at)]) for where, at in wanted.items()]
        if not any(row[0][-1] or row[0][1] for _, row in topics):
            await asyncio.sleep(cluster.waits_s if cluster.waits_ms[-1] else 0)
        return SimpleNamespace(topics=topics, API_VERSION=4, throttle_time_ms=cluster.throttle_ms)

    async def close(self) -> None:
        self.closed = True
        self._sync_task.cancel()
        await asyncio.wait([self._sync_task])
        if not self._sync_task.cancelled() and (error := self._sync_task.exception()):
            raise error


def cluster_asked(cluster: Cluster, given: tuple[Any, ...]) -> Any:
    """A request as its list of topics; how long the broker may wait with its answer is noted."""
    cluster.waits_ms.append(given[0])
    return given[-1]
