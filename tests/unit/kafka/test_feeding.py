"""Leaders that fail and leaders that answer, side by side: neither hides or holds up the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.kafka import feeding
from belfry.kafka.feeding import Feeder
from belfry.kafka.fetch_plan import LeaderLane
from belfry.kafka.fetch_position import PAUSE_S, FetchPosition, Where

A, B = ("in", 1), ("in", 2)


class Client:
    """Who leads what, and what becomes of requests; brokers that are silent never answer."""

    def __init__(self, _properties: Any) -> None:
        self.leaders: dict[Where, int] = {A: 1, B: 2}
        self.brokers = {1, 2}
        self.refusing: set[int] = set()
        self.silent: set[int] = set()
        self.asked: list[tuple[int, float]] = []

    async def connected(self, _topics: set[str]) -> None:
        pass

    def leader_of(self, where: Where) -> int | None:
        return self.leaders.get(where)

    def look_again(self) -> None:
        pass

    async def forget(self) -> None:
        pass

    async def send(self, node: int, _request: Any, *, beside: bool) -> Any:
        self.asked.append((node, asyncio.get_running_loop().time()))
        if node in self.silent:
            await asyncio.sleep(3_600)
        if node in self.refusing:
            raise ConnectionError("refused")
        await asyncio.sleep(0.01)
        return SimpleNamespace(topics=[], throttle_time_ms=0, API_VERSION=4)

    async def asks(self, node: int, times: int) -> list[float]:
        """When a broker was asked, once it was so often from now on."""
        begun = len(self.asked)
        async with asyncio.timeout(5):
            while True:
                found = [at for asked, at in self.asked[begun:] if asked == node]
                if len(found) >= times:
                    return found
                await asyncio.sleep(0.005)


@pytest.fixture
async def fed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Feeder, Client]]:
    """A feeder of two partitions with two leaders, before it begins, and its client."""
    monkeypatch.setattr(feeding, "FetchClient", Client)
    monkeypatch.setattr(feeding, "abort_all", lambda: asyncio.sleep(0))
    places = {A: FetchPosition(0), B: FetchPosition(0)}
    feeder = Feeder({}, places, lambda _: None, 1024, 0.0)
    client: Any = feeder._client
    yield feeder, client
    await feeder.close()


async def test_a_leader_that_fails_is_told_and_asked_less_often_while_another_answers(
    fed: tuple[Feeder, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    feeder, client = fed
    tried: list[int] = []
    warned = SimpleNamespace(warning=lambda *_, **said: tried.append(said["tried"]))
    monkeypatch.setattr(feeder, "_log", warned)
    client.refusing = {2}
    running = asyncio.create_task(feeder.run())
    times = await client.asks(2, 4)
    assert any(node == 1 and at > times[-2] for node, at in client.asked)
    assert times[-1] - times[-2] >= 3 * PAUSE_S
    assert tried[:2] == [2, 3]
    # Once it answers it begins anew.
    client.refusing = set()
    await client.asks(2, 2)
    assert 2 not in feeder._failures_of
    running.cancel()


async def test_a_leader_that_is_silent_and_gone_holds_up_nobody(
    fed: tuple[Feeder, Client],
) -> None:
    feeder, client = fed
    client.silent = {2}
    running = asyncio.create_task(feeder.run())
    await client.asks(2, 1)
    client.brokers, client.leaders[B] = {1}, 1
    await client.asks(1, 5)
    assert LeaderLane(2) in feeder._asking
    running.cancel()


@pytest.mark.parametrize(
    ("partitions", "each"), [(1, 4 << 20), (4, 4 << 20), (8, 2 << 20), (64, 1 << 20)]
)
def test_a_response_has_room_for_two_full_answers_and_each_partition_for_its_part(
    partitions: int, each: int
) -> None:
    feeder = Feeder({}, {}, lambda _: None, 4 << 20, 0.0)
    request = feeder._request([(("in", number), 7) for number in range(partitions)], 0.1)
    assert request._max_bytes == 8 << 20
    assert request._topics == [("in", [(number, 7, each) for number in range(partitions)])]
