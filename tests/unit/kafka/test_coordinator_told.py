"""Who coordinates a transactional id, by what one certain broker says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.kafka.parallel_client import ParallelClient
from belfry.transactions.brokers import BrokerConnections, Lost
from tests.unit.kafka.mock_cluster import MockCluster

NAME = "belfry.0"


@pytest.mark.parametrize("coordinator", [1, 2])
async def test_the_broker_is_asked_that_was_named(
    monkeypatch: pytest.MonkeyPatch, coordinator: int
) -> None:
    asked = list[int]()
    send = ParallelClient.send

    async def noted(self: Any, node: int, request: Any, **more: Any) -> Any:
        asked.append(node)
        return await send(self, node, request, **more)

    monkeypatch.setattr(ParallelClient, "send", noted)
    with MockCluster(2) as cluster:
        cluster.coordinate(NAME, coordinator, "transaction")
        brokers = BrokerConnections({"bootstrap.servers": cluster.servers})
        await brokers.start()
        for informed in (1, 2):
            assert await brokers.coordinator_of(NAME, informed) == coordinator
        assert asked == [1, 2]
        assert await brokers.coordinator_of(NAME) == coordinator
        cluster.stop(2)
        with pytest.raises(Lost):
            await brokers.coordinator_of(NAME, 2)
        await brokers.close()


@pytest.mark.parametrize("code", [14, 15])
async def test_an_error_that_it_answers_is_told(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    async def refused(*_: Any, **_more: Any) -> Any:
        return SimpleNamespace(error_code=code, coordinator_id=-1)

    monkeypatch.setattr(ParallelClient, "send", refused)
    brokers = BrokerConnections({"bootstrap.servers": "127.0.0.1:1"})
    assert await brokers.coordinator_of(NAME, 1) == (None, code)
    await brokers.close()
