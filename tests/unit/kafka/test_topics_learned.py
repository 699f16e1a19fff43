"""Topics that are new, or have moved, are asked for by themselves, and added to what is known.

A worker with 10 000 tenants' topics would otherwise read all of them again for each new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from belfry.kafka import shared_client
from belfry.kafka.parallel_client import ParallelClient
from belfry.transactions.brokers import BrokerConnections
from tests.unit.kafka.mock_cluster import MockCluster

TOPICS = [f"fired.tenant-{number}" for number in range(7)]


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster(2) as found:
        for topic in TOPICS:
            found.create(topic, 2, 1)
            for partition in range(2):
                found.lead(topic, partition, 1)
        yield found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str] | None]:
    """The topics of each request for metadata; None for all topics of the cluster."""
    found: list[list[str] | None] = []
    told = ParallelClient._told

    async def counted(self: ParallelClient, topics: list[str] | None) -> Any:
        found.append(topics)
        return await told(self, topics)

    monkeypatch.setattr(ParallelClient, "_told", counted)
    return found


@asynccontextmanager
async def connected(cluster: MockCluster) -> AsyncIterator[BrokerConnections]:
    made = BrokerConnections({"bootstrap.servers": cluster.servers})
    await made.start()
    try:
        yield made
    finally:
        await made.close()


async def test_new_topics_are_asked_for_together_and_without_those_that_are_known(
    cluster: MockCluster, asked: list[list[str] | None]
) -> None:
    async with connected(cluster) as brokers:
        await brokers.know(TOPICS[:3])
        await brokers.know(TOPICS[3:])
        assert asked == [TOPICS[:3], TOPICS[3:]]
        assert [brokers.partitions_of(topic) for topic in TOPICS] == [2] * len(TOPICS)
        assert {brokers.leader_of((topic, 1)) for topic in TOPICS} == {1}


async def test_very_many_are_asked_for_in_several_requests(
    cluster: MockCluster, asked: list[list[str] | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to one is read in one go, and all writers of the loop wait meanwhile."""
    monkeypatch.setattr(shared_client, "TOGETHER", 3)
    async with connected(cluster) as brokers:
        await brokers.know(TOPICS)
        assert asked == [TOPICS[:3], TOPICS[3:6], TOPICS[6:]]
        assert all(brokers.partitions_of(topic) for topic in TOPICS)


async def test_only_what_is_not_there_yet_is_asked_for_again(
    cluster: MockCluster, asked: list[list[str] | None]
) -> None:
    async with connected(cluster) as brokers:
        asyncio.get_running_loop().call_later(0.2, cluster.create, "new", 4, 1)
        await brokers.know([*TOPICS, "new"], 5.0)
        assert asked[0] == sorted([*TOPICS, "new"])
        assert len(asked) > 1
        assert {*map(str, asked[1:])} == {"['new']"}
        assert brokers.partitions_of("new") == 4


async def test_topics_that_have_moved_are_asked_for_and_no_others(
    cluster: MockCluster, asked: list[list[str] | None]
) -> None:
    async with connected(cluster) as brokers:
        await brokers.know(TOPICS)
        for topic in TOPICS[:2]:
            cluster.lead(topic, 0, 2)
        await brokers.refresh(TOPICS[:1])
        assert asked == [TOPICS, TOPICS[:1]]
        leaders = [brokers.leader_of((topic, 0)) for topic in TOPICS[:2]]
        assert leaders == [2, 1], "the second was not asked for"
        await brokers.refresh()
        assert brokers.leader_of((TOPICS[1], 0)) == 2
        assert sorted(asked[-1] or ()) == TOPICS, "all that are followed, and none besides"


async def test_a_topic_that_is_gone_is_known_no_more(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(cluster) as brokers:
        await brokers.know(TOPICS)
        told = ParallelClient._told

        async def without(self: ParallelClient, topics: list[str] | None) -> Any:
            answer = await told(self, topics)
            answer.topics = [each for each in answer.topics if each[1] != TOPICS[0]]
            return answer

        monkeypatch.setattr(ParallelClient, "_told", without)
        await brokers.refresh(TOPICS[:2])
        assert [brokers.partitions_of(topic) for topic in TOPICS[:3]] == [0, 2, 2]


def slow_answers(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold back what is told of the first two topics: an event that it was asked for, and one that
    lets it come.
    """
    told, asked, late = ParallelClient._told, asyncio.Event(), asyncio.Event()

    async def slow(self: ParallelClient, topics: list[str] | None) -> Any:
        answer = await told(self, topics)
        if sorted(topics or ()) == TOPICS[:2]:
            asked.set()
            await late.wait()
        return answer

    monkeypatch.setattr(ParallelClient, "_told", slow)
    return asked, late


@pytest.mark.parametrize("new", [[], TOPICS[2:]])
async def test_what_is_learned_while_all_are_asked_for_is_newer_than_the_answer_to_that(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch, new: list[str]
) -> None:
    """The table of very many topics takes a second, and what is new is known before it is there."""
    async with connected(cluster) as brokers:
        await brokers.know(TOPICS[:2])
        asked, late = slow_answers(monkeypatch)
        refresh = asyncio.create_task(brokers.refresh())
        await asked.wait()
        cluster.lead(TOPICS[0], 0, 2)
        if new:
            await brokers.know(new)
        await brokers.refresh(TOPICS[:1])
        late.set()
        await asyncio.wait_for(refresh, 2.0)
        assert {brokers.partitions_of(topic) for topic in (*TOPICS[:2], *new)} == {2}
        assert brokers.leader_of((TOPICS[0], 0)) == 2
        assert brokers.leader_of((TOPICS[1], 0)) == 1


async def test_topics_that_come_while_the_table_is_old_hold_no_refresh_up(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiokafka asks by itself when its table is old, and may find other topics to follow then."""
    async with connected(cluster) as brokers:
        await brokers.know(TOPICS[:2])
        client = brokers._client
        asked, late = slow_answers(monkeypatch)
        monkeypatch.setattr(client, "_metadata_max_age_ms", 50)
        await brokers.refresh(TOPICS[:1])
        # The wait that has begun before is as long as ever, so it is ended once.
        client.force_metadata_update()
        await asked.wait()
        late.set()
        await asyncio.sleep(0)
        asked.clear()
        late.clear()
        await asyncio.wait_for(asked.wait(), 2.0)
        monkeypatch.setattr(client, "_metadata_max_age_ms", 300_000)
        await brokers.know(TOPICS[2:])
        late.set()
        await asyncio.wait_for(client.force_metadata_update(), 2.0)
        await asyncio.wait_for(client.force_metadata_update(), 2.0)
        assert not brokers._shared.left


async def test_when_nobody_answers_no_more_requests_are_waited_for(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_client, "TOGETHER", 3)
    async with connected(cluster) as brokers:
        await brokers.know(TOPICS[:1])
        asked: list[list[str] | None] = []

        async def silent(_: ParallelClient, topics: list[str] | None) -> Any:
            asked.append(topics)

        monkeypatch.setattr(ParallelClient, "_told", silent)
        await brokers.refresh(TOPICS)
        assert asked == [TOPICS[:3]]
        assert brokers._shared.left
        assert brokers.partitions_of(TOPICS[0]) == 2, "what cannot be told stays as it was"


async def test_a_leader_that_was_told_stands_among_what_is_known_until_it_is_asked(
    cluster: MockCluster,
) -> None:
    where = TOPICS[0], 0
    async with connected(cluster) as brokers:
        await brokers.know([where[0]])
        assert brokers.leader_of(where) == 1
        assert brokers.tell_leader(where, 2, 5)
        await brokers.refresh([where[0]])
        assert brokers.leader_of(where) == 2
        brokers.doubt(where, 2)
        assert brokers.leader_of(where) == 1
        assert brokers.tell_leader(where, 2, 5)
        brokers.doubt(where, 2)
        assert brokers.leader_of(where) == 2
