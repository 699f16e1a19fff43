"""aiokafka's client, whose connections are made beside one another, each within two seconds.

Its own lock would let all of them wait for one to a broker that does not answer, and its own time
is that of a request.  A request that waits for a connection that another one makes shares its
failure: a try of its own would come to the same, later.

A broker that starts takes connections before it answers: its machine does so for it.  So in a
rolling restart each of these would otherwise wait for it as long as for a request, 30 s and more:

    12:00:00  a leader moves: who leads now is asked of a broker chosen by chance, which starts
    12:00:02  it has not answered: the next one is asked, and nobody else has waited
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
from aiokafka.errors import KafkaError, NoError, for_code
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.metadata import MetadataRequest

from belfry.kafka.measured_client import MeasuredClient

# Seconds for a connection with TLS and SASL.  A token is fetched before, within a time of its own.
CONNECT_S: Final = 2.0


class ParallelClient(MeasuredClient):
    """A client with a lock for each connection; used within one event loop."""

    # Of aiokafka's client, which has no types.
    _request_timeout_ms: int

    def __init__(
        self,
        properties: Mapping[str, Any],
        *,
        looks_within_s: float | None = None,
        **arguments: Any,
    ) -> None:
        """`properties` are librdkafka's, `arguments` those of aiokafka's client.

        Who leads and who coordinates is asked over connections of the default group; an answer
        there may take `looks_within_s` seconds, by default as long as any other.
        """
        super().__init__(properties, **arguments)
        self._looks_within_s = looks_within_s
        self._locks: defaultdict[tuple[Any, Any], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._failed: Counter[tuple[Any, Any]] = Counter()
        # Topics that were learned of since all of them were last asked for.
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
                    # The broker's refusal says it, where there is none.
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
        """As aiokafka's own, by a request that makes no topic.

        What `learn` was told meanwhile is newer than the answer, so it stays.
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
        """From now on these are the topics that are asked for when what is known is old.

        aiokafka compares its set with the one that it has asked for.  Where they differ it waits
        for minutes, and no refresh that is forced meanwhile comes to its end.  So the set stays the
        same one: each follower of a topic learns of it as well.
        """
        self._topics.clear()
        self._topics.update(topics)

    async def learn(self, topics: Iterable[str]) -> bool:
        """Ask who leads these topics, and add that to what is known; whether a broker told it.

        A topic that is not there is known no more.
        """
        asked = set(topics)
        told = await self._told(sorted(asked))
        if told is None or not told.brokers:
            return False
        new, known = ClusterMetadata(), self.cluster
        new.update_metadata(told)
        # Other threads look single topics up, and nobody goes through these tables.
        _put(known._partitions, asked, new._partitions)  # noqa: SLF001  # no other way, here and below
        self._learned |= asked
        known._brokers, known.controller = new._brokers, new.controller  # noqa: SLF001
        known.unauthorized_topics = (known.unauthorized_topics - asked) | new.unauthorized_topics
        known.internal_topics = known.internal_topics | new.internal_topics
        return True

    async def coordinator_told(self, kind: Any, name: str, informed: int | None) -> int:
        """Who coordinates, by what one broker says, or any where it is None.

        Raises what aiokafka does, also for an error that the broker answers.
        """
        if informed is None:
            found: int = await self.coordinator_lookup(kind, name)
            return found
        answer = await self.send(informed, FindCoordinatorRequest(name, kind))
        if (error := for_code(answer.error_code)) is not NoError:
            raise error()
        told: int = answer.coordinator_id
        return told

    def put_leader(self, where: tuple[str, int], leader: int) -> None:
        """Note who leads a partition, until that is asked anew."""
        partitions = self.cluster._partitions.get(where[0], {})  # noqa: SLF001  # no other way
        if (known := partitions.get(where[1])) is not None:
            partitions[where[1]] = known._replace(leader=leader)

    async def _told(self, topics: list[str] | None) -> Any:
        """What some broker says of these topics, or None where none of them answers.

        Where brokers create topics by themselves, one that was deleted would come back with their
        settings if the request did not say otherwise.
        """
        asked = MetadataRequest(topics, allow_auto_topic_creation=False)
        nodes = [broker.nodeId for broker in self.cluster.brokers()]
        # A cluster that had no broker to tell of yet is asked where it was first met.
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

        Each has as long as a connection.  Raises KafkaConnectionError where none does.
        """
        usual_ms, self._request_timeout_ms = self._request_timeout_ms, int(CONNECT_S * 1000)
        try:
            await super().bootstrap()
        finally:
            self._request_timeout_ms = usual_ms

    def abort_group(self, group: object) -> None:
        """Send nothing more over the connections of one group; `close_group` need not wait then."""
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
    """Put what was told of topics to what is known; one that is not there is known no more."""
    for topic in topics:
        if topic in told:
            known[topic] = told[topic]
        else:
            known.pop(topic, None)
