"""The connections of a fetcher: made anew if they lead nowhere any more, and closed at once.

aiokafka's client has the brokers, the leaders, TLS and SASL. A fetcher drops its client if the
addresses may be those of brokers that are gone, or if the client's own task has ended: it would
never learn of another leader then. The next request makes another client, from the addresses of the
start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from aiokafka import errors
from aiokafka.client import ConnectionGroup
from aiokafka.structs import TopicPartition

from belfry.kafka.fetch_position import Where
from belfry.kafka.fetch_refusals import why_no_connection
from belfry.kafka.parallel_client import ParallelClient
from belfry.kafka.security import group_client_security

# Longer than any pause between two calls of `take`, or else an answer would look late.
ASK_S: Final = 30.0
# The number of a group of connections; aiokafka's own groups have 0 and 1.
BESIDE: Final = 2


class FetchClient:
    """Connections to the brokers of one cluster; used within one event loop."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        """`properties` are librdkafka's."""
        self._properties = properties
        self._client: Any = None

    @property
    def cluster(self) -> Any:
        """aiokafka's metadata."""
        return self._client.cluster

    @property
    def brokers(self) -> set[int]:
        """The numbers of the brokers that are known."""
        return {broker.nodeId for broker in self._client.cluster.brokers()}

    async def connected(self, topics: set[str]) -> None:
        """Connect, and know the leaders of these topics; raises NotLetIn, or aiokafka's errors."""
        if self._client is not None and self._client._sync_task.done():  # noqa: SLF001
            # This client would never learn of another leader.
            await self.forget()
        if self._client is None:
            await self._connect()
        if topics and topics != self._client._topics:  # noqa: SLF001  # it has no other way to ask
            await self._client.set_topics(topics)

    async def _connect(self) -> None:
        servers = str(self._properties["bootstrap.servers"]).split(",")
        security = group_client_security(self._properties)
        client: Any = ParallelClient(
            self._properties,
            bootstrap_servers=servers,
            client_id=str(self._properties.get("client.id", "belfry")),
            request_timeout_ms=int(ASK_S * 1000),
            **security,
        )
        try:
            await client.bootstrap()
        except errors.KafkaConnectionError as error:
            raise await why_no_connection(servers, security) or error from error
        self._client = client

    def leader_of(self, where: Where) -> int | None:
        """The broker that leads a partition; None for an unknown partition, -1 for no leader.

        If no broker leads it, the brokers are asked anew.
        """
        if self._client is None:
            return None
        leader: int | None = self._client.cluster.leader_for_partition(TopicPartition(*where))
        if leader is None or leader < 0:
            self._client.force_metadata_update()
        return leader

    def look_again(self) -> None:
        """Ask the brokers anew for all leaders, soon."""
        if self._client is not None:
            self._client.force_metadata_update()

    async def send(self, node: int, request: Any, *, beside: bool = False) -> Any:
        """The answer to a request; raises aiokafka's errors.

        A request that goes `beside` has a connection of its own: a broker works on one request of a
        connection at a time, and a fetch may wait there.
        """
        group = BESIDE if beside else ConnectionGroup.DEFAULT
        return await self._client.send(node, request, group=group)

    async def forget(self) -> None:
        """Close connections without TLS's farewell, which no broker reads while a fetch waits."""
        client, self._client = self._client, None
        if client is None:
            return
        for connection in client._conns.values():  # noqa: SLF001  # it has no other way
            if (writer := connection._writer) is not None:  # noqa: SLF001
                writer.transport.abort()
        with suppress(Exception):
            # The client raises the error of its own task once more.
            await client.close()


async def abort_all() -> None:
    """Close the rest in this loop: connections that a broker refused would still say farewell."""
    loop: Any = asyncio.get_running_loop()
    for transport in list(loop._transports.values()):  # noqa: SLF001  # it has no other way
        transport.abort()
    # The next turn of the loop closes them.
    await asyncio.sleep(0)
