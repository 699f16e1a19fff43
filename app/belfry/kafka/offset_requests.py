"""Requests for offsets: the begin and end of a partition, and the commits of a group.

    ListOffsets                      to the leader of a partition
    OffsetFetch, OffsetCommit        to the coordinator of a group, which has no members
    Metadata, FindCoordinator        to find these

Leaders and coordinators move while brokers are restarted. A moved coordinator is looked for until
the caller's time is over. For a moved leader the caller gets an error, and then has the brokers
asked (`partitions`). All of this runs in one event loop, where requests of one kind to one broker
go together (`gathered_requests.py`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from aiokafka.client import CoordinationType
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.structs import TopicPartition
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from belfry.kafka.answer_errors import (
    MOVED,
    CommittedOffset,
    answered,
    error_of,
    failure,
    unmoved,
)
from belfry.kafka.fetch_position import Where
from belfry.kafka.gathered_requests import GatheredRequests
from belfry.kafka.shared_client import SharedClient, shared

# The values for the two ends of a log in ListOffsets.
EARLIEST: Final = -2
LATEST: Final = -1
# Seconds between two looks for a leader or a coordinator, and how often an unknown topic is looked
# for: not every broker knows a new topic at once.
LOOK_S: Final = 0.1
LOOKS: Final = 5
# The longest pause before a coordinator is looked for once more.
LONGEST_S: Final = 1.0
# Generation, member and retention of a commit of a group that has no members.
NOBODY: Final = (-1, "", -1)


# Leader, isolation, and the end or instant (epoch ms) of a request.
_Listing = tuple[int, int, int]


class OffsetRequests:
    """The requests of one client; methods raise KafkaException, as librdkafka's clients do."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        """`properties` are librdkafka's."""
        self._properties = properties
        self._shared: SharedClient | None = None
        self._user = 0
        self._coordinators: dict[str, int] = {}
        self._listings: GatheredRequests[_Listing, Where] = GatheredRequests(self._list)
        self._notes: GatheredRequests[str, Where] = GatheredRequests(self._fetch)

    async def close(self) -> None:
        """Close the connections, also dead ones."""
        used, self._shared = self._shared, None
        if used is not None:
            used.client.abort_group(self._user)
            await used.leave(self._user)

    async def ends(self, where: Where, isolation: int) -> tuple[int, int]:
        """First offset of a partition, and its end for readers of this isolation."""
        both = [self.offset(where, isolation, each) for each in (EARLIEST, LATEST)]
        begin, end = await asyncio.gather(*both)
        return begin, end

    async def offset(self, where: Where, isolation: int, which: int) -> int:
        """One of the two, by one request."""
        listing = await self._leader(where), isolation, which
        code, offset = (await self._listings.ask(listing, [where]))[where]
        if code:
            raise KafkaException(error_of(code))
        return int(offset)

    async def offsets(self, asked: Iterable[tuple[Where, int]], isolation: int) -> dict[Where, int]:
        """Offsets of partitions at an instant (epoch ms) or an end, by one request to each leader.

        A partition without a leader, or without an answer of its leader, is missing.
        """
        listings: dict[_Listing, list[Where]] = defaultdict(list)
        wanted = dict(asked)
        for where, leader in (await self._leaders(wanted)).items():
            listings[leader, isolation, wanted[where]].append(where)
        answers = await asyncio.gather(
            *(self._listings.ask(listing, places) for listing, places in listings.items()),
            return_exceptions=True,
        )
        found: dict[Where, int] = {}
        for answer in answers:
            if not isinstance(answer, BaseException):
                found.update({where: at for where, (code, at) in answer.items() if not code})
            elif not isinstance(answer, KafkaException):
                raise answer
        return found

    async def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic as brokers list them now; empty if there is no such topic."""
        used = await self._refreshed(topic)
        return sorted(used.client.cluster.partitions_for_topic(topic) or ())

    async def committed(self, group: str, places: Sequence[Where]) -> list[CommittedOffset]:
        """The offsets that a group has committed for each of these partitions."""
        found = await self._notes.ask(group, places)
        return [found[where] for where in places]

    async def _fetch(self, group: str, places: list[Where]) -> dict[Where, CommittedOffset]:
        topics: dict[str, list[int]] = defaultdict(list)
        for topic, partition in places:
            topics[topic].append(partition)
        answer = await self._coordinated(group, OffsetFetchRequest(group, [*topics.items()]))
        return {
            (topic, partition): CommittedOffset(
                topic, partition, OFFSET_INVALID if at < 0 else at, text or "", error_of(code)
            )
            for topic, rows in answer.topics
            for partition, at, text, code in rows
        }

    async def commit(self, group: str, given: Iterable[Any]) -> list[CommittedOffset]:
        """Commit offsets with their metadata; returns the result of each."""
        topics: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for each in given:
            topics[each.topic].append((each.partition, each.offset, each.metadata or ""))
        request = OffsetCommitRequest(group, *NOBODY, [*topics.items()])
        answer = await self._coordinated(group, request)
        told = {(topic, at): code for topic, rows in answer.topics for at, code in rows}
        return [
            CommittedOffset(topic, partition, offset, text, error_of(told[topic, partition]))
            for topic, rows in topics.items()
            for partition, offset, text in rows
        ]

    async def _client(self) -> SharedClient:
        """The loop's shared client of the cluster, connected."""
        if self._shared is None or not self._shared.works:
            former, self._shared = self._shared, shared(self._properties)
            user, self._user = self._user, self._shared.enter()
            self._coordinators.clear()
            if former is not None:
                await former.leave(user)
        used = self._shared
        try:
            await used.start()
        except ConnectionError as error:
            raise failure(KafkaError._TRANSPORT, str(error)) from error
        return used

    async def _refreshed(self, *topics: str) -> SharedClient:
        """The same, after a fresh lookup of leaders; raises if no broker answers."""
        used = await self._client()
        # If the caller stops waiting, the lookup goes on: it shows whether the client still works.
        await asyncio.shield(used.refresh(topics))
        if used.left:
            raise failure(KafkaError._TRANSPORT, "no broker names leaders")
        unknown = set(topics) - used.client.cluster.topics(exclude_internal_topics=False)
        if unknown:
            # Otherwise they would be asked for, and missed, for ever.
            used.forget(unknown)
        if unknown & used.client.cluster.unauthorized_topics:
            raise KafkaException(error_of(KafkaError.TOPIC_AUTHORIZATION_FAILED))
        return used

    async def _leaders(self, places: Iterable[Where]) -> dict[Where, int]:
        """The leaders of these partitions; one request covers all unknown topics."""
        known = (await self._client()).leaders(places)
        if unknown := {where for where in places if where not in known}:
            with suppress(KafkaException):
                await self._refreshed(*{topic for topic, _ in unknown})
            known |= (await self._client()).leaders(unknown)
        return known

    async def _leader(self, where: Where) -> int:
        """The broker that leads a partition; waits while there is none."""
        used, looks = await self._client(), 0
        while True:
            leader: int | None = used.client.cluster.leader_for_partition(TopicPartition(*where))
            if leader is not None and leader >= 0:
                return leader
            if leader is None and looks >= LOOKS:
                raise KafkaException(error_of(KafkaError.UNKNOWN_TOPIC_OR_PART))
            if looks:
                await asyncio.sleep(LOOK_S)
            used, looks = await self._refreshed(where[0]), looks + 1

    async def _list(self, to: _Listing, places: list[Where]) -> dict[Where, tuple[int, int]]:
        """A leader's answer for partitions: the code of an error, or 0, and an offset."""
        leader, isolation, which = to
        topics: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for topic, partition in places:
            topics[topic].append((partition, which))
        answer = await self._answer(leader, OffsetRequest(-1, isolation, [*topics.items()]))
        told = {
            (topic, partition): (code, offset)
            for topic, rows in answer.topics
            for partition, code, _, offset in rows
        }
        return {where: told.get(where, (KafkaError.UNKNOWN, OFFSET_INVALID)) for where in places}

    async def _coordinated(self, group: str, request: Any) -> Any:
        """The answer of a group's coordinator, which is searched until it is found."""
        pause_s = LOOK_S
        while True:
            try:
                return unmoved(await self._answer(await self._coordinator(group), request))
            except BaseException as error:
                # Even if the time is over: the next request looks for another one.
                self._coordinators.pop(group, None)
                code = error.args[0].code() if isinstance(error, KafkaException) else 0
                if code == KafkaError._TRANSPORT:
                    with suppress(KafkaException):
                        await self._refreshed()
                elif code not in MOVED:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_S)

    async def _coordinator(self, group: str) -> int:
        node = self._coordinators.get(group)
        if node is None:
            client = (await self._client()).client
            look = client.coordinator_lookup(CoordinationType.GROUP, group)
            node = self._coordinators[group] = await answered(look)
        return node

    async def _answer(self, node: int, request: Any) -> Any:
        return await answered((await self._client()).client.send(node, request, group=self._user))
