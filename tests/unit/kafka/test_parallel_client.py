"""Connections to several brokers, one of which does not answer: nobody else waits for it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import client as aiokafka_client
from aiokafka.errors import NodeNotReadyError

from belfry.kafka import parallel_client
from belfry.kafka.fetch_client import FetchClient

SILENT = 7


class Connection:
    """A connection that echoes its requests."""

    _writer = None

    def connected(self) -> bool:
        return True

    def close(self, reason: Any = None, exc: Any = None) -> Any:
        return asyncio.sleep(0)

    async def send(self, request: Any, expect_response: bool = True) -> Any:
        return request


@pytest.fixture(autouse=True)
def tried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The brokers that were tried, in order."""
    ports: list[int] = []

    async def create(_host: str, port: int, **given: Any) -> Connection:
        ports.append(port)
        if (tokens := given["sasl_oauth_token_provider"]) is not None:
            await tokens.token()
        if port == SILENT:
            await asyncio.sleep(3_600)
        return Connection()

    async def bootstrap(client: Any) -> None:
        client._sync_task = asyncio.ensure_future(asyncio.sleep(3_600))
        client.cluster = SimpleNamespace(
            broker_metadata=lambda node: SimpleNamespace(host="one", port=node)
        )

    monkeypatch.setattr(aiokafka_client, "create_conn", create)
    monkeypatch.setattr(aiokafka_client.AIOKafkaClient, "bootstrap", bootstrap)
    return ports


async def connected() -> FetchClient:
    made = FetchClient({"bootstrap.servers": "one:9092"})
    await made.connected(set())
    return made


async def test_a_fetcher_reaches_other_brokers_while_one_does_not_answer() -> None:
    client = await connected()
    stuck = asyncio.create_task(client.send(SILENT, "lost"))
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        assert await client.send(1, "asked") == "asked"
    stuck.cancel()
    await asyncio.gather(stuck, return_exceptions=True)
    await client.forget()


async def test_who_waits_for_a_connection_shares_its_failure(
    tried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten requests to a broker that does not answer fail within the time of one try."""
    monkeypatch.setattr(parallel_client, "CONNECT_S", 0.1)
    client = await connected()
    async with asyncio.timeout(5):
        asked = (client.send(SILENT, "lost") for _ in range(10))
        ends = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(end) for end in ends] == [NodeNotReadyError] * 10
        assert tried == [SILENT]
        # The next one tries anew, and who leads is asked for.
        with pytest.raises(NodeNotReadyError):
            await client.send(SILENT, "lost")
    assert tried == [SILENT, SILENT]
    assert client._client._md_update_waiter.done()
    await client.forget()


async def test_a_token_is_fetched_before_the_time_of_a_connection_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parallel_client, "CONNECT_S", 0.1)
    client = await connected()

    tokens: list[str] = []

    async def slow_at_first() -> str:
        if not tokens:
            await asyncio.sleep(0.3)
            tokens.append("token")
        return tokens[0]

    client._client._sasl_oauth_token_provider = SimpleNamespace(token=slow_at_first)
    assert await client.send(1, "asked") == "asked"
    await client.forget()
