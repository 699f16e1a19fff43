"""Many workers share many partitions: all are in, each owns its share, and each knows all others.

The ninety members are the group's clients of workers, with belfry's assignor and nothing behind it.
`PARTITIONS=64` and the like say how many partitions the two whole workers share.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from belfry.balance.assignment_map import AssignmentMap, MemberMetadata
from belfry.balance.owners import even
from belfry.group.assignment_map_client import follow_assignment_map
from belfry.group.assignor import assignor_of
from belfry.group.group import Group, Surroundings
from belfry.placement.partition_count import PartitionCount
from tests.acceptance.harness.failover import owned
from tests.acceptance.harness.site import Site, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = pytest.mark.slow

WORKERS = 90
PARTITIONS = 256
LONGEST_S = 90.0


class Member:
    """A worker's client of the group."""

    def __init__(self, number: int, topic: str, bootstrap: str) -> None:
        name = f"belfry-worker-{number:04}"
        url = f"http://{name}.belfry.production.svc.cluster.local:8700"
        self.group = Group(MemberMetadata(name, "1.10.0", url, 1, f"zone-{number % 3}"))
        self.group.connect(Surroundings(holdings=self._holdings))
        self._client = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=topic,
            # Static members stop without a word: ninety leaves would be ninety rebalances.
            group_instance_id=name,
            partition_assignment_strategy=[
                assignor_of(self.group, even, PartitionCount(PARTITIONS), 1)
            ],
            enable_auto_commit=False,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=10_000,
            heartbeat_interval_ms=1_000,
        )
        self._following: asyncio.Task[None] | None = None

    def _holdings(self) -> tuple[dict[int, int], tuple[int, ...]]:
        return dict.fromkeys(self.owns, 1), self.group.assignment.stands_by

    @property
    def owns(self) -> set[int]:
        return {tp.partition for tp in self._client.assignment()}

    async def start(self) -> None:
        await self._client.start()
        self._following = asyncio.create_task(follow_assignment_map(self._client, self.group))

    async def stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
        await self._client.stop()


def all_in(members: list[Member]) -> bool:
    """Whether everything has one owner, and every member the same assignment map of all."""
    owned = [partition for member in members for partition in member.owns]
    maps: set[AssignmentMap] = {member.group.assignment_map for member in members}
    return (
        sorted(owned) == list(range(PARTITIONS))
        and len(maps) == 1
        and len(maps.pop().entries) == len(members)
    )


def test_ninety_workers_share_256_partitions(kafka: str, unique: Callable[[str], str]) -> None:
    topic = unique("many")
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(60)

    async def share() -> list[Member]:
        members = [Member(number, topic, kafka) for number in range(WORKERS)]
        try:
            await asyncio.gather(*(member.start() for member in members))
            await asyncio.to_thread(wait_for, "all to be in", lambda: all_in(members), LONGEST_S)
        finally:
            await asyncio.gather(*(member.stop() for member in members))
        return members

    members = asyncio.run(share())
    entries = members[0].group.assignment_map.entries
    assert {len(entry.owns) for entry in entries} == {2, 3}
    assert {partition for entry in entries for partition in entry.stands_by} == set(
        range(PARTITIONS)
    )
    for member in members:
        assert set(member.group.assignment_map.entry(member.group.worker).stands_by) == set(
            member.group.assignment.stands_by
        )


def warm(worker: Worker) -> set[int]:
    """The partitions that a worker could take over at once."""
    status, page = worker.get("/v1/cluster")
    standbys = json.loads(page)["standbys"] if status == 200 else []
    return {each["partition"] for each in standbys if each["warm"]}


def test_all_partitions_of_a_dead_worker_are_taken_over_long_before_its_session_is_over(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    partitions = int(os.environ.get("PARTITIONS", "16"))
    everything = set(range(partitions))
    settings = {"CLUSTER__PARTITIONS": str(partitions), "SESSION_TIMEOUT_MS": "60000"}
    with Site(kafka, unique("dead"), tmp_path, **settings) as site:
        one = site.worker().start()
        wait_for("all to be owned", lambda: owned(one) == everything, 120)
        other = site.worker().start()
        wait_for("shares", lambda: len(owned(one)) == len(owned(other)) == partitions // 2, 120)
        wait_for("warm standbys", lambda: warm(other) == owned(one), 60)
        lost = len(owned(one))
        one.kill()
        killed_s = time.monotonic()
        wait_for("the other to own all", lambda: owned(other) == everything, 30)
        seconds = time.monotonic() - killed_s
        print(f"{lost} partitions were taken over {seconds:.1f} s after the kill")  # noqa: T201
        assert other.stop() == 0
