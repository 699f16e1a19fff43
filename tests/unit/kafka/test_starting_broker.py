"""A broker that starts: its machine takes connections for it, and nobody answers there yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import client as aiokafka_client
from aiokafka.client import ConnectionGroup

from belfry.group.membership import LOOKS, _MembershipThread
from belfry.kafka import parallel_client
from belfry.kafka.parallel_client import ParallelClient
from belfry.settings import Settings

CREATE: Any = aiokafka_client.create_conn


@pytest.fixture
async def starts(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """The port of a broker that starts; all others are stand-ins, and answer at once."""
    monkeypatch.setattr(parallel_client, "CONNECT_S", 0.2)
    ends = asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ends.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]

        async def create(host: str, to: int, **given: Any) -> Any:
            return await CREATE(host, to, **given) if to == port else Answering(given)

        monkeypatch.setattr(aiokafka_client, "create_conn", create)
        yield port
        ends.set()


class Answering:
    """A connection that answers each request with itself."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._request_timeout = given["request_timeout_ms"] / 1000

    def connected(self) -> bool:
        return True

    def close(self) -> Any:
        return None

    async def send(self, _request: Any) -> Any:
        return self


def client(servers: list[str], **given: Any) -> ParallelClient:
    """One whose requests may take half a minute, and to whom all ports are brokers."""
    made = ParallelClient({}, bootstrap_servers=servers, request_timeout_ms=30_000, **given)
    made.cluster = SimpleNamespace(
        update_metadata=lambda told: None,
        brokers=lambda: {1},
        broker_metadata=lambda node: SimpleNamespace(host="127.0.0.1", port=node),
    )
    return made


async def test_the_next_address_is_asked_where_one_does_not_answer(
    starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ParallelClient, "hosts", [("127.0.0.1", each, 2) for each in (starts, 7)])
    made = client(["one:9092"])
    async with asyncio.timeout(5):
        await made.bootstrap()
    assert made._request_timeout_ms == 30_000
    await made.close()


async def test_who_leads_is_asked_within_a_time_of_its_own(starts: int) -> None:
    made = client(["one:9092"], looks_within_s=1.5)
    look = await made._get_conn(7)
    assert look._request_timeout == 1.5
    assert (await made._get_conn(7, group=100))._request_timeout == 30
    other = client(["one:9092"])
    assert (await other._get_conn(7))._request_timeout == 30


async def test_a_member_of_the_group_does_not_wait_for_a_broker_that_starts(starts: int) -> None:
    """Its coordinator moved: the look for it, and the heartbeat there, are within a session."""
    settings = Settings(bootstrap_servers="127.0.0.1:9092", session_timeout_ms=10_000)
    thread = SimpleNamespace(app=SimpleNamespace(settings=settings, assignors=[]))
    make: Any = _MembershipThread._create_worker_consumer
    consumer = make(thread, None)
    # It was never started, and would complain of not being stopped.
    consumer._closed = True
    member = consumer._client
    member.cluster = client(["one:9092"]).cluster
    stuck = asyncio.create_task(member._get_conn(starts))
    await asyncio.sleep(0)
    async with asyncio.timeout(2):
        beat = await member._get_conn(7, group=ConnectionGroup.COORDINATION)
        look = await member._get_conn(7)
        assert await stuck is None
    # To join a group takes as long as the others need for it.
    assert beat._request_timeout == 40
    assert look._request_timeout * LOOKS == 10
