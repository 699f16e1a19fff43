"""The brokers as a writer sees them: a small port, and aiokafka's client behind it.

aiokafka provides connections, TLS, SASL and metadata. A request that got no answer is `Lost`,
whatever the reason: it is unknown whether the broker has carried it out. Everything here runs in
the writers' event loop, except `partitions_of`, which any thread may call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from aiokafka.errors import NodeNotReadyError
from aiokafka.structs import TopicPartition

from belfry.host.errors import named
from belfry.kafka.broker_features import TRANSACTION
from belfry.kafka.coordinator_requests import coordinator_by
from belfry.kafka.shared_client import AWAY, METADATA_S, shared
from belfry.transactions.batches import Where

# Not every broker knows a new topic at once.
PROPAGATION_S: Final = 1.0
# Seconds between two looks for a new topic.
LOOK_S: Final = 0.05
# From this level of the cluster on each transaction has an epoch of its own.
OWN_EPOCHS: Final = 2


class Lost(Exception):
    """A request without an answer; `sent` if the broker may have carried it out.

    If `sent` is False the request has not left, so it has had no effect.
    """

    def __init__(self, reason: str, *, sent: bool = True) -> None:
        super().__init__(reason)
        self.sent = sent


class Brokers(Protocol):
    """The port of a cluster that a writer needs."""

    async def send(self, node: int, request: Any) -> Any:
        """The answer to a request; raises Lost."""

    async def coordinator_of(
        self, name: str, informed: int | None = None
    ) -> int | tuple[None, int]:
        """The broker that coordinates a transactional id, or no broker and the error's code.

        `informed` is the broker to ask, or None for any. Raises Lost.
        """

    async def refresh(self, topics: Iterable[str] = ()) -> None:
        """Ask anew for the leaders of these topics; of all known topics if none is named."""

    def partitions_of(self, topic: str) -> int:
        """The number of a topic's partitions; 0 if it is not known."""

    def leader_of(self, where: Where) -> int | None:
        """The broker that leads a partition, or None for none."""

    def tell_leader(self, where: Where, leader: int, epoch: int) -> bool:
        """Note the leader that a former leader has named; returns whether that is news."""

    def is_told(self, where: Where) -> bool:
        """Whether a leader that was named so still counts for a partition."""

    def doubt(self, where: Where, node: int) -> None:
        """Look the leader of a partition up if this broker was named: it does not seem to lead."""


class BrokerConnections:
    """A cluster over connections of its own; made, used and closed in one event loop.

    Each partition's producer has one, so that connections keep the order of one writer's requests.
    All of them share the metadata of the cluster (`kafka/shared_client.py`).
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        """`properties` are librdkafka's; raises BadSecurity."""
        self._shared = shared(properties)
        self._group = self._shared.enter()
        self._client = self._shared.client
        self._moved = self._shared.moved

    async def start(self) -> None:
        """Connect; raises ConnectionError if no broker answers."""
        await self._shared.start()

    async def close(self) -> None:
        """Close the connections."""
        await self._shared.leave(self._group)

    async def gives_own_epochs(self) -> bool:
        """Whether each transaction gets an epoch of its own (KIP-890), as a broker says."""
        return await self._shared.level(TRANSACTION) >= OWN_EPOCHS

    async def know(self, topics: Iterable[str], within_s: float = PROPAGATION_S) -> None:
        """Learn of topics that are new here; those that stay unknown are not asked for again.

        Only these topics are asked for, all together. A topic stays unknown if brokers said for
        `within_s` that it is not there; raises Lost if they did not answer.
        """
        unknown = set(topics)
        loop = asyncio.get_running_loop()
        silent_until = loop.time() + within_s
        missed_until: float | None = None
        while True:
            told = await self._shared.refresh(unknown)
            unknown = {topic for topic in unknown if not self.partitions_of(topic)}
            if not unknown:
                return
            now = loop.time()
            if told and missed_until is None:
                missed_until = now + within_s
            if now > (silent_until if missed_until is None else missed_until):
                # Otherwise a deleted topic would be asked for, and missed, for ever.
                self._shared.forget(unknown)
                if not told:
                    raise Lost(f"no broker tells of {min(unknown)}", sent=False)
                return
            await asyncio.sleep(LOOK_S)

    def partitions_of(self, topic: str) -> int:
        """The number of a topic's partitions; 0 if it is not known."""
        # One lookup: between two of them the loop may remove the topic.
        return len(self._client.cluster._partitions.get(topic, ()))  # noqa: SLF001  # no other way

    async def refresh(self, topics: Iterable[str] = ()) -> None:
        """Ask anew for the leaders of these topics, or of all; those without an answer stay."""
        await self._shared.refresh(topics)

    def leader_of(self, where: Where) -> int | None:
        """The broker that leads a partition, or None for none."""
        moved = self._moved
        if moved.told and where in moved.told:
            told = moved.leader_of(where, _now())
            if told is not None:
                return told
        leader: int | None = self._client.cluster.leader_for_partition(TopicPartition(*where))
        return None if leader is None or leader < 0 else leader

    def tell_leader(self, where: Where, leader: int, epoch: int) -> bool:
        """Note the leader that a former leader has named; returns whether that is news.

        All writers know it from now on. If the named broker is not known, the leader is looked up
        instead, and the former leader is not asked meanwhile.
        """
        if self._client.cluster.broker_metadata(leader) is None:
            self._moved.outdate(where, epoch)
            return False
        if not self._moved.tell(where, leader, epoch, _now()):
            return False
        self._client.put_leader(where, leader)
        return True

    def is_told(self, where: Where) -> bool:
        """Whether a leader that was named so still counts for a partition."""
        return self._moved.leader_of(where, _now()) is not None

    def doubt(self, where: Where, node: int) -> None:
        """Look the leader of a partition up if this broker was named: it does not seem to lead."""
        self._moved.doubt(where, node)

    async def coordinator_of(
        self, name: str, informed: int | None = None
    ) -> int | tuple[None, int]:
        """The broker that coordinates a transactional id, or no broker and the error's code."""
        try:
            if informed is None:
                look = self._shared.coordinator_of(name)
            else:
                look = coordinator_by(self._client, informed, name)
            node, code = await asyncio.wait_for(look, METADATA_S)
        except AWAY as error:
            raise Lost(named(error)) from error
        return (None, code) if code else node

    async def send(self, node: int, request: Any) -> Any:
        """The answer to a request; raises Lost."""
        try:
            return await self._client.send(node, request, group=self._group)
        except NodeNotReadyError as error:
            raise Lost(named(error), sent=False) from error
        except AWAY as error:
            raise Lost(named(error)) from error


def _now() -> float:
    """The clock of the running loop, in seconds."""
    return asyncio.get_running_loop().time()
