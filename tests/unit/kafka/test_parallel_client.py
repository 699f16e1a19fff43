"""Connections to several brokers, one of which does not answer: nobody else waits for it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import client as aiokafka_client

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

    async def create(_host: str, port: int, **_: Any) -> Connection:
        ports.append(port)
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
