"""aiokafka's client, which makes connections in parallel, each within two seconds.

aiokafka's own lock makes all connections wait for one to a broker that does not answer, and its own
time-out is that of a request. If a request waits for a connection that another request makes, it
shares the failure: a try of its own would fail as well, only later.

While a broker starts, its machine takes connections before the broker answers. So in a rolling
restart each connection would otherwise wait as long as for a request, 30 s and more:

    12:00:00  a leader moves: a broker is asked for the new leader, which is just starting
    12:00:02  it has not answered: the next one is asked, and no other request has waited
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from aiokafka.client import ConnectionGroup
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from belfry.kafka.measured_client import MeasuredClient

# Seconds for a connection with TLS and SASL. A token is fetched before that, with its own time-out.
CONNECT_S: Final = 2.0


class ParallelClient(MeasuredClient):
    """A client with a lock for each connection; used within one event loop."""

    # Attributes of aiokafka's client, which has no types.
    _request_timeout_ms: int

    def __init__(
        self,
        properties: Mapping[str, Any],
        *,
        looks_within_s: float | None = None,
        **arguments: Any,
    ) -> None:
        """`properties` are librdkafka's, `arguments` those of aiokafka's client.

        Leaders and coordinators are asked for over connections of the default group; an answer
        there may take `looks_within_s` seconds, by default as long as any other.
        """
        super().__init__(properties, **arguments)
        self._looks_within_s = looks_within_s
        self._locks: defaultdict[tuple[Any, Any], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._failed: Counter[tuple[Any, Any]] = Counter()
        # Topics that `learn` has asked for since all topics were last asked for.
        self._learned: set[str] = set()

    @property
    def _get_conn_lock(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def _get_conn(
        self, node_id: Any, *, group: Any = ConnectionGroup.DEFAULT, no_hint: bool = False
    ) -> Any:
        key = node_id, group
        if (made := self._conns.get(key)) is not None and made.connected():
            return made
        failed = self._failed[key]
        async with self._locks[key]:
            if self._failed[key] != failed:
                return None
            if self._sasl_oauth_token_provider is not None:
                with suppress(Exception):
                    # If there is no such mechanism, the broker's refusal says so.
                    await self._sasl_oauth_token_provider.token()
            made = None
            try:
                async with asyncio.timeout(CONNECT_S):
                    made = await super()._get_conn(node_id, group=group, no_hint=no_hint)
            except TimeoutError:
                self.force_metadata_update()
            self._failed[key] += made is None
            if made is not None and group == ConnectionGroup.DEFAULT and self._looks_within_s:
                made._request_timeout = self._looks_within_s  # noqa: SLF001  # no other way
            return made

    async def _metadata_update(self, cluster_metadata: Any, topics: Any) -> bool:
        """Like aiokafka's own method, by a request that creates no topic.

        Answers that `learn` got meanwhile are newer, so they stay.
        """
        self._learned.clear()
        told = await self._told(list(topics) or None)
        if told is None:
            cluster_metadata.failed_update(None)
            return False
        if told.brokers:
            before = self.cluster._partitions  # noqa: SLF001  # no other way, here and below
            cluster_metadata.update_metadata(told)
            _put(cluster_metadata._partitions, self._learned, before)  # noqa: SLF001
        return bool(told.brokers)

    def follow(self, topics: Iterable[str]) -> None:
        """Ask for these topics from now on, when the metadata are old.

        aiokafka compares its set of topics with the set of its last request. If they differ, it
        waits for minutes, and a refresh that is forced meanwhile does not end. So the set object
        stays the same: each follower of a topic calls `learn` as well.
        """
        self._topics.clear()
        self._topics.update(topics)

    async def learn(self, topics: Iterable[str]) -> bool:
        """Ask for these topics, and add them to the metadata; returns whether a broker answered.

        A topic that is not there is removed.
        """
        asked = set(topics)
        told = await self._told(sorted(asked))
        if told is None or not told.brokers:
            return False
        new, known = ClusterMetadata(), self.cluster
        new.update_metadata(told)
        # Other threads look single topics up, and no thread iterates over these tables.
        _put(known._partitions, asked, new._partitions)  # noqa: SLF001  # no other way, here and below
        self._learned |= asked
        known._brokers, known.controller = new._brokers, new.controller  # noqa: SLF001
        known.unauthorized_topics = (known.unauthorized_topics - asked) | new.unauthorized_topics
        known.internal_topics = known.internal_topics | new.internal_topics
        return True

    def put_leader(self, where: tuple[str, int], leader: int) -> None:
        """Note the leader of a partition, until it is asked for anew."""
        partitions = self.cluster._partitions.get(where[0], {})  # noqa: SLF001  # no other way
        if (known := partitions.get(where[1])) is not None:
            partitions[where[1]] = known._replace(leader=leader)

    async def _told(self, topics: list[str] | None) -> Any:
        """The answer of some broker about these topics, or None without an answer.

        If brokers create topics by themselves, a deleted one would come back with their settings,
        unless the request forbids that.
        """
        asked = MetadataRequest(topics, allow_auto_topic_creation=False)
        nodes = [broker.nodeId for broker in self.cluster.brokers()]
        # If no broker of the cluster is known yet, the one of the bootstrap connection is asked.
        nodes += [node for node, _ in self._conns if node == "bootstrap"]
        for node in random.sample(nodes, len(nodes)):
            connection = await self._get_conn(node)
            if connection is None:
                continue
            try:
                return await connection.send(asked)
            except (KafkaError, TimeoutError):
                continue
        return None

    async def bootstrap(self) -> None:
        """Learn of the cluster from one of the addresses of the start, whichever answers.

        Each has the time of a connection. Raises KafkaConnectionError if none answers.
        """
        usual_ms, self._request_timeout_ms = self._request_timeout_ms, int(CONNECT_S * 1000)
        try:
            await super().bootstrap()
        finally:
            self._request_timeout_ms = usual_ms

    def abort_group(self, group: object) -> None:
        """Abort the connections of one group; `close_group` need not wait then."""
        for (_, of), connection in self._conns.items():
            if of == group and (writer := connection._writer) is not None:  # noqa: SLF001  # no other way
                writer.transport.abort()

    async def close_group(self, group: object) -> None:
        """Close the connections of one group."""
        for key in [key for key in self._conns if key[1] == group]:
            closed = self._conns.pop(key).close()
            if closed is not None:
                await closed
        for key in [key for key in self._locks if key[1] == group]:
            del self._locks[key], self._failed[key]


def _put(known: dict[str, Any], topics: Iterable[str], told: Mapping[str, Any]) -> None:
    """Put answers about topics into the metadata; a topic that is not there is removed."""
    for topic in topics:
        if topic in told:
            known[topic] = told[topic]
        else:
            known.pop(topic, None)
