"""What writers share of a cluster, and what they do not: one connection that hangs is one writer's.

A connection is made for one writer, and while it is being made others are not held up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import client as aiokafka_client
from aiokafka.errors import KafkaConnectionError, RequestTimedOutError

from belfry.kafka.shared_client import SharedClient, shared
from belfry.transactions import brokers
from belfry.transactions.brokers import BrokerConnections, Lost

GIVEN = {"bootstrap.servers": "one:9092"}
SILENT = 7


class Connection:
    """A connection that echoes its requests; to the silent broker none comes up."""

    made: list[tuple[int, Connection]]

    def __init__(self) -> None:
        self.open = True

    def connected(self) -> bool:
        return self.open

    def close(self, reason: Any = None, exc: Any = None) -> Any:
        self.open = False
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    def send(self, request: Any, expect_response: bool = True) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.set_result(request)
        return future


@pytest.fixture(autouse=True)
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    async def create(_host: str, port: int, **_: Any) -> Connection:
        if port == SILENT:
            await asyncio.sleep(3_600)
        made = Connection()
        Connection.made.append((port, made))
        return made

    async def bootstrap(client: Any) -> None:
        client._sync_task = asyncio.ensure_future(asyncio.sleep(3_600))
        client.cluster = SimpleNamespace(
            broker_metadata=lambda node: SimpleNamespace(host="one", port=node),
            partitions_for_topic=lambda _topic: {0},
        )

    Connection.made = []
    monkeypatch.setattr(aiokafka_client, "create_conn", create)
    monkeypatch.setattr(aiokafka_client.AIOKafkaClient, "bootstrap", bootstrap)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


async def connections(count: int) -> list[BrokerConnections]:
    made = [BrokerConnections(GIVEN) for _ in range(count)]
    for each in made:
        await each.start()
    return made


def test_a_broker_that_does_not_answer_holds_up_who_asks_it_alone() -> None:
    async def play() -> None:
        one, two = await connections(2)
        stuck = asyncio.create_task(one.send(SILENT, "lost"))
        await asyncio.sleep(0)
        assert await two.send(1, "asked") == "asked"
        # And who has asked the silent one gets through to others.
        assert await one.send(1, "asked too") == "asked too"
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)
        for each in (one, two):
            await each.close()

    run(play())


def test_writers_share_what_they_know_and_no_connection() -> None:
    async def play() -> None:
        one, two = await connections(2)
        assert one._client is two._client
        for _ in range(2):
            for each in (one, two):
                await each.send(1, "")
        assert len(Connection.made) == 2
        await one.close()
        assert [made.open for _, made in Connection.made] == [False, True]
        await two.send(1, "")
        assert len(Connection.made) == 2
        await two.close()
        assert not any(made.open for _, made in Connection.made)

    run(play())


def test_requests_of_one_writer_share_a_connection_that_is_being_made() -> None:
    async def play() -> None:
        (one,) = await connections(1)
        await asyncio.gather(*(one.send(1, each) for each in range(5)))
        assert len(Connection.made) == 1
        await one.close()

    run(play())


def test_who_comes_after_the_last_one_left_has_a_client_of_his_own() -> None:
    async def play() -> None:
        one, two = await connections(2)
        before = shared(GIVEN)
        await one.close()
        assert shared(GIVEN) is before
        await two.close()
        assert shared(GIVEN) is not before

    run(play())


@pytest.mark.parametrize("told", [False, KafkaConnectionError("away")])
def test_a_client_that_learns_nothing_any_more_is_left_by_new_terms(told: Any) -> None:
    """Else brokers that have moved altogether would never be found again."""

    def update() -> Any:
        future = asyncio.get_running_loop().create_future()
        if isinstance(told, Exception):
            future.set_exception(told)
        else:
            future.set_result(told)
        return future

    async def play() -> None:
        one, two = await connections(2)
        one._client.learn = lambda _topics: update()
        await one.refresh(["t"])
        (anew,) = await connections(1)
        assert anew._client is not one._client
        assert one._client is two._client
        assert await two.send(1, "asked") == "asked"
        for each in (one, two, anew):
            await each.close()

    run(play())


def test_a_look_for_a_coordinator_at_a_silent_broker_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(brokers, "METADATA_S", 0.1)

    async def play() -> None:
        (one,) = await connections(1)
        one._client.get_random_node = lambda: 1
        one._client.send = lambda *_: asyncio.sleep(3_600)
        with pytest.raises(Lost):
            await one.coordinator_of("id")
        await one.close()

    run(play())


def test_those_who_look_for_coordinators_wait_for_a_silent_broker_once() -> None:
    """A second wait of its own would come to the same, later."""

    async def play() -> None:
        made, asked, is_asked = await connections(3), list[Any](), asyncio.Event()

        async def times_out(_node: int, request: Any) -> None:
            asked.append(request)
            is_asked.set()
            await asyncio.sleep(0.01)
            raise RequestTimedOutError

        made[0]._client.get_random_node = lambda: 1
        made[0]._client.send = times_out
        looks = [each.coordinator_of(f"id-{number}") for number, each in enumerate(made)]
        first = asyncio.create_task(looks[0])
        await is_asked.wait()
        found = await asyncio.gather(first, *looks[1:], return_exceptions=True)
        assert [type(each) for each in found] == [Lost] * 3
        assert len(asked) == 1
        for each in made:
            await each.close()

    run(play())


def test_a_client_whose_own_task_has_ended_is_left_by_new_terms() -> None:
    async def play() -> None:
        (one,) = await connections(1)
        before: SharedClient = shared(GIVEN)
        one._client._sync_task.cancel()
        await asyncio.sleep(0)
        assert shared(GIVEN) is not before
        await one.close()

    run(play())


def test_a_client_that_is_left_while_it_connects_stays_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else its task would ask brokers for ever, for nobody."""

    async def work() -> None:
        answered = asyncio.Event()
        begin = aiokafka_client.AIOKafkaClient.bootstrap

        async def slowly(client: Any) -> None:
            await answered.wait()
            await begin(client)

        monkeypatch.setattr(aiokafka_client.AIOKafkaClient, "bootstrap", slowly)
        client = shared(GIVEN)
        user = client.enter()
        starting = asyncio.create_task(client.start())
        await asyncio.sleep(0)
        await client.leave(user)
        answered.set()
        with pytest.raises(ConnectionError, match="closed"):
            await starting
        assert client.client._sync_task is None

    run(work())


def test_a_client_whose_own_task_has_failed_is_closed_with_its_connections() -> None:
    """Whoever asks next has another one, and hears nothing of that error."""

    async def fail() -> None:
        raise AssertionError

    async def work() -> None:
        (used,) = await connections(1)
        await used.send(1, "")
        client = used._client
        client._sync_task.cancel()
        client._sync_task = asyncio.ensure_future(fail())
        await asyncio.sleep(0)
        await used.close()
        assert [made.open for _, made in Connection.made] == [False]

    run(work())
