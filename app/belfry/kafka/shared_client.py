"""One client for all users of an event loop, with connections of its own for each of them.

    shared             leaders, brokers' addresses and features, TLS, one refresh of these
    not shared         connections: a broker works on one request of a connection at a time, so a
                       step that waits (for markers, for replicas) would hold up those behind it

Users are the writers of transactions, and the clients that ask for offsets. Users with other
properties of the cluster have another client.

A client knows the topics that any of its users has asked for.  With 64 partitions and a thousand
tenants that is one table of their topics instead of 64.  A refresh asks for the topics that are new
or have moved, and adds the answer to the table. When the table is old, all topics are asked for:
with 10 000 topics of four partitions that is 1.5 MB, and 0.4 s to read them.

A client that could not be refreshed is *left*: its users keep it, and a user that begins anew makes
another one, from the addresses of the start.  So brokers that have moved altogether are found
again, partition by partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError, NodeNotReadyError
from aiokafka.structs import TopicPartition

from belfry.host.errors import named
from belfry.kafka.broker_features import ask_features
from belfry.kafka.coordinator_requests import Told, coordinators_by
from belfry.kafka.fetch_position import Where
from belfry.kafka.gathered_requests import GatheredRequests
from belfry.kafka.moved_leaders import MovedLeaders
from belfry.kafka.parallel_client import ParallelClient
from belfry.kafka.security import group_client_security

# Seconds for one request; a step's own deadline comes first.
REQUEST_S: Final = 30.0
# Seconds to learn the leaders, and for one broker's answer about them.
METADATA_S: Final = 5.0
LOOK_S: Final = 2.0
# Topics that are asked for at once. An answer is read in one go, which takes 20 ms for this many
# topics of four partitions, and all writers of the loop wait meanwhile.
TOGETHER: Final = 500
AWAY: Final = (KafkaError, OSError, TimeoutError, KeyError, IncompatibleBrokerVersion)


class SharedClient:
    """A cluster's metadata for users of one event loop; `shared` gives the loop's present one."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        """`properties` are librdkafka's; raises BadSecurity."""
        servers = properties.get("bootstrap.servers") or properties["metadata.broker.list"]
        self.client: Any = ParallelClient(
            properties,
            bootstrap_servers=str(servers).split(","),
            client_id=str(properties.get("client.id", "belfry")),
            request_timeout_ms=int(REQUEST_S * 1000),
            looks_within_s=LOOK_S,
            **group_client_security(properties),
        )
        self.moved = MovedLeaders()
        self._levels: GatheredRequests[int, str] = GatheredRequests(self._levels_of)
        self._looks: GatheredRequests[None, str] = GatheredRequests(self._learn)
        # If no request waits twice for a silent broker, another broker is asked sooner.
        self._coordinators: GatheredRequests[int, str] = GatheredRequests(
            self._coordinators_by, share_failures=True
        )
        self._followed: set[str] = set()
        self._users: set[int] = set()
        self._starting = asyncio.Lock()
        self._started = self._ended = False
        self.left = False

    @property
    def works(self) -> bool:
        """Whether it can still learn leaders; its own task may have ended by an error."""
        task = self.client._sync_task  # noqa: SLF001  # it has no other way to tell
        return not self.left and (task is None or not task.done())

    async def start(self) -> None:
        """Connect, once for all; raises ConnectionError if no broker answers."""
        async with self._starting:
            if self._started:
                return
            try:
                await asyncio.wait_for(self.client.bootstrap(), METADATA_S)
            except AWAY as error:
                raise ConnectionError(named(error)) from error
            if self._ended:
                # Its last user has left meanwhile, so the client is not needed any more.
                await self.client.close()
                raise ConnectionError("closed while it was connected")
            self._started = True

    async def refresh(self, topics: Iterable[str] = ()) -> bool:
        """Ask anew for the leaders of these topics; of all followed topics if none is named.

        Without an answer the metadata stay as they were, and the result is False. The topics are
        followed from now on.
        """
        asked = sorted(topics)
        if not asked:
            return await self._ask(self.client.force_metadata_update())
        self._followed.update(asked)
        self.client.follow(self._followed)
        return all((await self._looks.ask(None, asked)).values())

    async def _learn(self, _of_all: None, topics: Sequence[str]) -> dict[str, bool]:
        """Ask for the leaders of these topics; returns of each whether a broker answered."""
        told = dict.fromkeys(topics, False)
        for start in range(0, len(topics), TOGETHER):
            some = topics[start : start + TOGETHER]
            if not await self._ask(self.client.learn(some)):
                # Each other request would wait as long, and a step has a deadline.
                break
            told.update(dict.fromkeys(some, True))
        return told

    async def level(self, feature: str) -> int:
        """The level of a feature that the cluster has switched on, by a broker's present answer.

        Raises ConnectionError.
        """
        node = self.client.get_random_node()
        told = await self._levels.ask(node, [feature])
        return int(told[feature])

    async def _levels_of(self, node: int, features: Iterable[str]) -> dict[str, int]:
        found = await ask_features(self.client, node)
        if isinstance(found, str):
            raise ConnectionError(f"the brokers do not tell their features: {found}")
        return {each: found.finalized.get(each, 0) for each in features}

    async def coordinator_of(self, name: str) -> Told:
        """The coordinator of a transactional id, as a randomly chosen broker says.

        Users that ask the same broker meanwhile share one request. Raises one of `AWAY`.
        """
        node = self.client.get_random_node()
        if node is None:
            raise NodeNotReadyError("no broker is known")
        told: Told = (await self._coordinators.ask(node, [name]))[name]
        return told

    async def _coordinators_by(self, node: int, names: Sequence[str]) -> dict[str, Told]:
        return await coordinators_by(self.client, node, names)

    async def _ask(self, look: Awaitable[bool]) -> bool:
        """Wait for a lookup; returns whether it had an answer. If it fails, the client is left."""
        try:
            told = await asyncio.wait_for(look, METADATA_S)
        except AWAY:
            told = False
        self.left = self.left or not told
        return told

    def leaders(self, places: Iterable[Where]) -> dict[Where, int]:
        """The known leaders of these partitions; partitions without a leader are missing."""
        leads = self.client.cluster.leader_for_partition
        found = {where: leads(TopicPartition(*where)) for where in places}
        return {where: at for where, at in found.items() if at is not None and at >= 0}

    def forget(self, topics: Iterable[str]) -> None:
        """Stop asking for these topics."""
        self._followed.difference_update(topics)
        self.client.follow(self._followed)

    def enter(self) -> int:
        """Use the client, until `leave`; returns the number of the user's connection group."""
        user = next(_NUMBERS)
        self._users.add(user)
        return user

    async def leave(self, user: int) -> None:
        """Close a user's connections; the last user closes the client."""
        self._users.discard(user)
        if self._users:
            await self.client.close_group(user)
            return
        present = _PRESENT.get(asyncio.get_running_loop(), {})
        for way in [way for way, client in present.items() if client is self]:
            del present[way]
        self._ended = True
        task = self.client._sync_task  # noqa: SLF001  # see `works`
        if task is not None and task.done():
            # Closing would raise the task's error once more, and leave connections open.
            self.client._sync_task = None  # noqa: SLF001
        await self.client.close()


# aiokafka's own groups of connections have the numbers 0 and 1.
_NUMBERS: Final = count(100)
# The properties that say how a cluster is reached.
_WAY: Final = (
    "bootstrap.",
    "metadata.broker.",
    "security.",
    "sasl.",
    "ssl.",
    "enable.ssl",
    "oauth",
)
_Way = frozenset[tuple[str, str]]
_PRESENT: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Way, SharedClient]]] = (
    WeakKeyDictionary()
)


def shared(properties: Mapping[str, Any]) -> SharedClient:
    """The running loop's client of a cluster; a new one if there is none, or it was left."""
    clients = _PRESENT.setdefault(asyncio.get_running_loop(), {})
    way = frozenset((name, str(each)) for name, each in properties.items() if name.startswith(_WAY))
    present = clients.get(way)
    if present is None or not present.works:
        present = clients[way] = SharedClient(properties)
    return present
