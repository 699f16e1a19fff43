"""Fetching record batches ahead, as they are stored, `read_committed`.

    follow({partition: offset}) ─► Fetch, one request under way per leader ─► take(): one answer
                                     │ the next one leaves before this one is taken
                                     └ new leader, broken connection: asked again after a pause

librdkafka unpacks what it fetches before anybody sees it, and a megabyte of gzip may be a gigabyte.
Here a batch stays packed until its reader opens it, a slice at a time.  Connections, TLS, SASL and
the protocol's messages are aiokafka's, as for the group's client.

A fetcher has an event loop of its own and no thread: the loop runs while its user waits in `take`.
So one thread at a time may use it, and an answer that nobody takes stays in the socket.  What a
user has to decide comes as an answer with an error: a topic that is denied, and after some tries
a login that is refused.  What time heals is asked again for ever, and told to the log.  After each
such failure the leader is asked whether it still holds what was read last (KIP-320), since a new
leader may know less than the old one.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Container, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import structlog
from aiokafka import errors
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import TopicPartition

from belfry.host.errors import named
from belfry.kafka.epoch_requests import OffsetsForEpochs
from belfry.kafka.fetch_position import LONGEST_PAUSE_S, PAUSE_S, FetchPosition, backoff_s
from belfry.kafka.fetch_refusals import NotLetIn, not_known, not_read, why_no_connection
from belfry.kafka.measured_client import MeasuredClient
from belfry.kafka.security import group_client_security
from belfry.telemetry.limited import LimitedLogger

Where = tuple[str, int]
# Longer than anybody pauses between two calls of `take`, or else their answer looks late.
ASK_S: Final = 30.0
# A broker answers at once when there is something; this is how often one is asked in calm times.
WAIT_MS: Final = 100
# Of one partition: of one answer, and of what is fetched ahead.  A first batch comes whole.
ANSWER_BYTES: Final = 4 * 1024 * 1024
# So many of them fit into one response.
ANSWERS: Final = 4
READ_COMMITTED: Final = 1
# So many failures in a row, and brokers are looked for at the addresses of the start.
FORGET_AFTER: Final = 8

log = structlog.get_logger(__name__)


class OffsetGone(Exception):
    """The log does not hold the offset, or not what was read before it."""


class Fetched(NamedTuple):
    """What one fetch brought of one partition.

    `data` are batches as they are stored, and nothing where the end has been met.  `aborted` are
    producers, and the offsets at which their transactions begin that were rolled back.  `error` is
    OffsetGone, after which the partition is followed no more, or ConnectionError.
    """

    where: Where
    offset: int
    behind: int
    data: bytes = b""
    aborted: tuple[tuple[int, int], ...] = ()
    error: Exception | None = None


class Fetcher:
    """Fetches from some partitions; one thread at a time may use it."""

    def __init__(self, properties: Mapping[str, Any], answer_bytes: int = ANSWER_BYTES) -> None:
        """`properties` are librdkafka's."""
        self._properties = properties
        self._answer_bytes = answer_bytes
        self._loop: asyncio.AbstractEventLoop | None = None
        self._feeder: asyncio.Task[None] | None = None
        self._log = LimitedLogger(log)
        self._client: Any = None
        self._places: dict[Where, FetchPosition] = {}
        self._answers: deque[Fetched] = deque()
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._not_before: dict[int, float] = {}
        self._failures = 0

    def follow(self, positions: Mapping[Where, int]) -> None:
        """Fetch from these partitions alone; those that are followed from there already go on."""
        for where in [*self._places]:
            if where not in positions:
                del self._places[where]
        for where, offset in positions.items():
            place = self._places.get(where)
            if place is None or place.taken != offset:
                self._places[where] = FetchPosition(offset)
                self._answers = deque(each for each in self._answers if each.where != where)
        self._answers = deque(each for each in self._answers if self._wanted(each))

    def _wanted(self, answer: Fetched) -> bool:
        place = self._places.get(answer.where)
        return place is not None and place.taken <= answer.offset <= place.next

    def take(self, wait_s: float, but: Container[Where] = ()) -> Fetched | None:
        """The next answer, None where none comes in time; those of `but` stay for another call."""
        if not self._places:
            time.sleep(wait_s)
            return None
        # No `asyncio.Runner`: on the main thread it would make a text of each answer.
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(self._take(wait_s, but))

    async def _take(self, wait_s: float, but: Container[Where]) -> Fetched | None:
        if self._feeder is None or self._feeder.done():
            self._changed, self._came = asyncio.Event(), asyncio.Event()
            self._feeder = asyncio.create_task(self._feed())
        self._changed.set()
        answer = self._first(but)
        if answer is None:
            self._came.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._came.wait(), wait_s)
            answer = self._first(but)
        if answer is None:
            return None
        self._answers.remove(answer)
        self._taken(answer)
        self._changed.set()
        # The next request leaves now: it is answered while this answer is read.
        for _ in range(3):
            await asyncio.sleep(0)
        return answer

    def _first(self, but: Container[Where]) -> Fetched | None:
        return next((each for each in self._answers if each.where not in but), None)

    def _taken(self, answer: Fetched) -> None:
        place = self._places.get(answer.where)
        if place is not None:
            place.took(len(answer.data), answer.behind)
        if isinstance(answer.error, OffsetGone):
            self._places.pop(answer.where, None)

    def close(self) -> None:
        """Close the connections."""
        self._places.clear()
        if self._loop is not None:
            loop, self._loop = self._loop, None
            try:
                loop.run_until_complete(self._close())
            finally:
                loop.close()

    async def _close(self) -> None:
        tasks = [each for each in (self._feeder, *self._asking.values()) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._forget_client()
        await _abort_all()

    async def _forget_client(self) -> None:
        """Close the connections without a farewell, which no broker reads while a fetch waits."""
        client, self._client = self._client, None
        if client is None:
            return
        for connection in client._conns.values():  # noqa: SLF001  # it has no other way
            if (writer := connection._writer) is not None:  # noqa: SLF001
                writer.transport.abort()
        with suppress(Exception):
            # It raises once more what has ended its own task.
            await client.close()

    # -- within the loop -------------------------------------------------------------------------

    async def _feed(self) -> None:
        """Keep a request under way to each leader of partitions that are wanted."""
        while True:
            self._changed.clear()
            try:
                pause_s = await self._ask_on()
            except Exception as error:  # noqa: BLE001  # asked again, and told
                pause_s = await self._failed("no broker tells who leads", error)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), pause_s)

    async def _ask_on(self) -> float | None:
        """Send what can be sent; after how many seconds to look again at the latest."""
        if self._client is not None and self._client._sync_task.done():  # noqa: SLF001
            # It would never learn of another leader.
            await self._forget_client()
        if self._client is None:
            await self._connect()
        topics = {topic for topic, _ in self._places}
        if topics and topics != self._client._topics:  # noqa: SLF001  # it has no other way to ask
            await self._client.set_topics(topics)
        wanted, pause_s = self._by_leader()
        for leader, places in wanted.items():
            self._asking[leader] = asyncio.create_task(self._ask(leader, places))
        return pause_s

    async def _connect(self) -> None:
        servers = str(self._properties["bootstrap.servers"]).split(",")
        security = group_client_security(self._properties)
        client: Any = MeasuredClient(
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

    def _by_leader(self) -> tuple[dict[int, list[tuple[Where, int]]], float | None]:
        now = asyncio.get_running_loop().time()
        wanted: dict[int, list[tuple[Where, int]]] = defaultdict(list)
        pause_s: float | None = None
        for where, place in self._places.items():
            if not place.may_go_on(self._answer_bytes):
                continue
            leader = self._client.cluster.leader_for_partition(TopicPartition(*where))
            if leader in self._asking:
                continue
            due = max(place.not_before, self._not_before.get(leader, 0.0))
            if leader is None or leader < 0:
                self._client.force_metadata_update()
                if leader is None and self._unknown(where, place, now):
                    continue
                due = max(due, now + PAUSE_S)
            if due > now:
                pause_s = min(due - now, LONGEST_PAUSE_S if pause_s is None else pause_s)
            else:
                wanted[leader].append((where, place.next))
        return wanted, pause_s

    def _unknown(self, where: Where, place: FetchPosition, now: float) -> bool:
        """Whether a topic has been unknown for so long that its reader is told."""
        if not place.unknown_too_long(now):
            return False
        self._told(where, place, not_known(where, self._client.cluster))
        return True

    async def _ask(self, leader: int, places: list[tuple[Where, int]]) -> None:
        try:
            places = await self._still_there(leader, places)
            answer = await self._client.send(leader, _request(places, self._answer_bytes))
            self._failures = 0
            asked = dict(places)
            for topic, rows in answer.topics:
                for row in rows:
                    self._note((topic, row[0]), asked, row, answer.API_VERSION)
            throttled_s = min(answer.throttle_time_ms / 1000, ASK_S / 2)
            if throttled_s:
                self._not_before[leader] = asyncio.get_running_loop().time() + throttled_s
        except Exception as error:  # noqa: BLE001  # asked again, and told
            self._doubt(places)
            pause_s = await self._failed(f"broker {leader} does not answer", error)
            self._not_before[leader] = asyncio.get_running_loop().time() + pause_s
        finally:
            self._asking.pop(leader, None)
            self._changed.set()

    async def _failed(self, told: str, error: Exception) -> float:
        """Tell of it, and ask who leads now; how many seconds to wait before the next try."""
        self._failures += 1
        if self._failures > 1:
            names = sorted({topic for topic, _ in self._places})
            cause = named(error)
            self._log.warning("away", told, topics=names, tried=self._failures, cause=cause)
        if self._failures % FORGET_AFTER == 0 and not self._others_asking():
            await self._forget_client()
            for each in self._places.items() if isinstance(error, NotLetIn) else ():
                self._told(*each, error)
        elif self._client is not None:
            self._client.force_metadata_update()
        return backoff_s(self._failures)

    def _others_asking(self) -> bool:
        current = asyncio.current_task()
        return any(task is not current for task in self._asking.values())

    def _doubt(self, places: list[tuple[Where, int]]) -> None:
        for where, _ in places:
            if (place := self._places.get(where)) is not None:
                place.doubted = True

    async def _still_there(
        self, leader: int, places: list[tuple[Where, int]]
    ) -> list[tuple[Where, int]]:
        """Those partitions of which the leader holds what was read, after a failure."""
        doubted = {
            where: place.epoch
            for where, _ in places
            if (place := self._places.get(where)) and place.doubted and place.epoch >= 0
        }
        ends = await OffsetsForEpochs(doubted).ask(self._client, leader) if doubted else {}
        left = []
        for where, offset in places:
            place = self._places.get(where)
            if place is None:
                continue
            end = ends.get(where, offset)
            if end is None:
                # Another broker leads by now, or the topic is gone: asked again, alone.
                place.not_before = asyncio.get_running_loop().time() + PAUSE_S
                self._client.force_metadata_update()
                continue
            place.doubted = False
            if end < offset:
                name = f"{where[0]}/{where[1]}"
                gone = f"{name}: the log was cut off at offset {end}, and {offset} was read"
                self._told(where, place, OffsetGone(gone))
            else:
                left.append((where, offset))
        return left

    def _note(self, where: Where, asked: dict[Where, int], row: Any, version: int) -> None:
        """Keep what an answer holds of one partition, if it is still wanted."""
        place, offset = self._places.get(where), asked.get(where)
        if place is None or place.next != offset:
            return
        error: Any = errors.for_code(row[1])
        if error is not errors.NoError:
            self._refused(where, place, error)
            return
        place.unknown_since = None
        data = row[-1] or b""
        if place.is_no_news(data, row[3]):
            return
        # The replica that is to be preferred stands between them from version 11 on.
        aborted = tuple(row[-3 if version > 10 else -2] or ())
        if not place.went(data):
            name = f"{where[0]}/{where[1]}"
            self._told(where, place, ConnectionError(f"{name}: no whole batch at {offset}"))
            return
        self._put(Fetched(where, offset, place.next, data, aborted))

    def _refused(self, where: Where, place: FetchPosition, error: Any) -> None:
        """A broker answers with an error."""
        name, now = f"{where[0]}/{where[1]}", asyncio.get_running_loop().time()
        if error is errors.OffsetOutOfRangeError:
            gone = OffsetGone(f"{name}: offset {place.next} is out of range")
            self._told(where, place, gone)
            return
        place.refused(now)
        self._client.force_metadata_update()
        if error is errors.UnknownTopicOrPartitionError:
            self._unknown(where, place, now)
        elif not error.retriable:
            self._told(where, place, not_read(where, error))

    def _told(self, where: Where, place: FetchPosition, error: Exception) -> None:
        place.stopped = isinstance(error, OffsetGone)
        place.not_before = asyncio.get_running_loop().time() + 1.0
        self._put(Fetched(where, place.next, place.next, error=error))

    def _put(self, answer: Fetched) -> None:
        self._answers.append(answer)
        self._came.set()


async def _abort_all() -> None:
    """Close what is left in this loop: connections that a broker refused still say farewell."""
    loop: Any = asyncio.get_running_loop()
    for transport in list(loop._transports.values()):  # noqa: SLF001  # it has no other way
        transport.abort()
    # The next turn of the loop closes them.
    await asyncio.sleep(0)


def _request(places: list[tuple[Where, int]], answer_bytes: int) -> Any:
    topics: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for (topic, partition), offset in places:
        topics[topic].append((partition, offset, answer_bytes))
    return FetchRequest(WAIT_MS, 1, ANSWERS * answer_bytes, READ_COMMITTED, [*topics.items()])
