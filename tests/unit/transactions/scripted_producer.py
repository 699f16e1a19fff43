"""A direct producer whose cluster, loop and clock are a test's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from math import inf
from types import SimpleNamespace
from typing import Any, Final

import pytest

from belfry.kafka.step_producer import ProducerSurroundings
from belfry.kafka.step_records import OutputTopics
from belfry.transactions import brokers
from belfry.transactions.producer import DirectProducer
from tests.unit.transactions.scripted import Script

CHANGELOG: Final = "changelog"
PROPERTIES: Final = {"transactional.id": "belfry.1", "transaction.timeout.ms": 10_000}


class Connections(Script):
    """A scripted cluster as a producer holds it: begun, asked of its features, closed."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(**answers)
        self.started = self.closed = 0
        self.own_epochs = True
        self.away: Exception | None = None
        self.knew: list[tuple[list[str], float]] = []
        # Whether no broker tells of topics that are not known.
        self.silent = False

    async def start(self) -> None:
        """Connect, or say why not."""
        self.started += 1
        if self.away is not None:
            raise self.away

    async def close(self) -> None:
        """Close, or say why not."""
        self.closed += 1
        if self.away is not None:
            raise self.away

    async def know(self, topics: Iterable[str], within_s: float = 1.0) -> None:
        """Learn of topics, or say that nobody tells of them."""
        self.knew.append(([*topics], within_s))
        if self.silent:
            raise brokers.Lost(f"no broker tells of {self.knew[-1][0][0]}", sent=False)

    async def gives_own_epochs(self) -> bool:
        """Whether it speaks protocol v2."""
        return self.own_epochs


class Loop:
    """Runs what is asked for at once; `users` are those that have entered and not left."""

    def __init__(self) -> None:
        self.users = 0
        self.passes: float = inf
        self.seconds: list[float] = []

    def enter(self) -> None:
        """Use it."""
        self.users += 1

    def leave(self) -> None:
        """Use it no more."""
        self.users -= 1

    def run(self, work: Any, most_s: float) -> Any:
        """What comes of it; TimeoutError once as many have had their answers as it lets pass."""
        self.seconds.append(most_s)
        self.passes -= 1
        if self.passes < 0:
            work.close()
            raise TimeoutError("nothing came of it within 9 s")
        return asyncio.run(work)


class Beside:
    """What is sent at least once, beside the transaction."""

    def __init__(self, said: list[str]) -> None:
        self.said = said
        self.sent: list[Any] = []
        self.refused: dict[str, str] = {}
        self.fails = False

    def send(self, fired: Iterable[Any]) -> None:
        """Send records."""
        self.sent += fired

    def settle(self) -> None:
        """Wait until all are acknowledged."""
        self.said.append("settled")
        if self.fails:
            raise BufferError("2 records were not acknowledged in time")

    def start_over(self) -> None:
        """Forget what is under way."""
        self.said.append("started over")

    def serve(self) -> None:
        """Tell figures."""
        self.said.append("served")

    def close(self) -> None:
        """Give up."""
        self.said.append("closed")


class Made:
    """A producer of partition 1 with all that it touches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
        self.cluster = Connections(**answers)
        self.loop = Loop()
        self.reached: list[str] = []
        self.now_ms = 5_000.0
        self.stops_at = ""
        self.properties = dict(PROPERTIES)
        monkeypatch.setattr(brokers, "BrokerConnections", self._connections)
        clock: Any = SimpleNamespace(
            wall_ms=self._wall, monotonic_ms=lambda: 77.0, both_ms=lambda: (6_000.0, 80.0)
        )
        failpoints: Any = SimpleNamespace(
            reach=self.reached.append, names=lambda step: step == self.stops_at
        )
        topics = self.topics = OutputTopics(
            CHANGELOG, "schedules", "rejected", "lifecycle", b"", "d", b"", lambda _topic: 2
        )
        around = ProducerSurroundings(topics, clock, failpoints)
        loop: Any = self.loop
        self.producer = DirectProducer(self.properties, 1, around, loop, 2)
        self.beside = self.producer._non_transactional = Beside(self.reached)  # type: ignore[assignment]

    def opened(self) -> DirectProducer:
        """The producer, once it has fenced; what was asked so far is forgotten."""
        self.producer.open()
        self.reached.clear()
        self.cluster.asked.clear()
        self.cluster.sent.clear()
        return self.producer

    def _connections(self, given: Any) -> Connections:
        assert given == self.properties
        return self.cluster

    def _wall(self) -> float:
        self.now_ms += 1
        return self.now_ms
