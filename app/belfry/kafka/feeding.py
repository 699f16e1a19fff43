"""The work of a fetcher in its event loop: a request under way to each leader, and its answer.

    wanted partitions ─► by leader ─► one request each ─► answers, put where the reader takes them
                                       └ new leader, broken connection: asked again after a pause

`fetch_plan.py` decides what a leader is asked for, and how long it may wait with its answer.

If partitions share a fetcher, those that brought batches stand at the end of the next request:
brokers fill a response in the order of the request. A response may have twice the bytes that one
partition may bring, and the answers that wait for readers may have as much. The reason is memory: a
response is in memory up to three times until it is taken apart, and one of 16 MB leaves holes in
memory that nothing else fits into.

Errors that the user has to decide about come as an answer with an error: a denied topic, and after
some tries a refused login. For temporary failures the request is repeated for ever, and logged.
After each such failure the leader is asked whether it still has the records that were read last
(KIP-320), since a new leader may have fewer than the old one.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import structlog
from aiokafka.protocol.fetch import FetchRequest

from belfry.host.errors import named
from belfry.kafka.epoch_requests import OffsetsForEpochs
from belfry.kafka.fetch_answers import FetchAnswers
from belfry.kafka.fetch_client import ASK_S, FetchClient, abort_all
from belfry.kafka.fetch_plan import NOBODY, WAIT_S, FetchPlan, LeaderLane, LeaderRequest
from belfry.kafka.fetch_position import (
    PAUSE_S,
    SIP_BYTES,
    Fetched,
    FetchPosition,
    OffsetGone,
    Where,
    backoff_s,
)
from belfry.kafka.fetch_refusals import NotLetIn
from belfry.telemetry.limited import LimitedLogger

# The size of a response, and of all answers that wait, in answers of the largest size.
ANSWERS: Final = 2
# So many partitions are asked for an answer of the largest size; more of them for less each.
SHARED: Final = 4
# The least bytes for one partition, however many share a response. A first batch comes whole.
LEAST_BYTES: Final = 1024 * 1024
READ_COMMITTED: Final = 1
# The pause after a small answer, for each partition of the request, so that the next answer brings
# more: an answer costs its reader something for each partition.
REST_S: Final = 0.0001
# After so many failures in a row, brokers are looked for at the addresses of the start.
FORGET_AFTER: Final = 8

log = structlog.get_logger(__name__)


class Feeder:
    """Fetches for the wanted partitions; everything here runs in one event loop."""

    def __init__(
        self,
        properties: Mapping[str, Any],
        places: dict[Where, FetchPosition],
        put: Callable[[Fetched], None],
        answer_bytes: int,
        sip_s: float,
        wait_s: float = WAIT_S,
    ) -> None:
        """`places` are the wanted partitions, which may change; answers are `put`.

        `answer_bytes` is the most bytes of a partition's answer. After a small answer a partition
        pauses for `sip_s` at most, up to an instant that is the same for all. Brokers wait for
        `wait_s` until there are records.
        """
        self._places = places
        self._answer_bytes = answer_bytes
        self._sip_s = sip_s
        self._wait_s = wait_s
        self._log = LimitedLogger(log)
        self._client = FetchClient(properties)
        self._answers = FetchAnswers(places, put, self._client, sip_s)
        self._asking: dict[LeaderLane, asyncio.Task[None]] = {}
        self._not_before: dict[int, float] = {}
        # Failures in a row, of all leaders together, and of each; NOBODY stands for an unknown
        # leader.
        self._failures = 0
        self._failures_of: Counter[int] = Counter()
        self.changed = asyncio.Event()

    async def run(self) -> None:
        """Keep a request under way to each leader of partitions that are wanted, for ever."""
        while True:
            self.changed.clear()
            try:
                pause_s = await self._ask_on()
            except Exception as error:  # noqa: BLE001  # repeated, and logged
                pause_s = await self._failed(NOBODY, "no broker names leaders", error)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), pause_s)

    async def close(self) -> None:
        """Close the connections; `run` has been cancelled."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        await self._client.forget()
        await abort_all()

    async def _ask_on(self) -> float | None:
        """Send requests that can leave now; returns the seconds after which to look again."""
        await self._client.connected({topic for topic, _ in self._places})
        plan = self._plan()
        for lane, request in plan.requests.items():
            if request.places:
                self._asking[lane] = asyncio.create_task(self._ask(lane, request))
        del self._failures_of[NOBODY]
        return plan.look_again_s

    def _plan(self) -> FetchPlan:
        """The plan of requests to each leader, for now."""
        now = asyncio.get_running_loop().time()
        waiting = sum(place.waiting_bytes(now) for place in self._places.values())
        full = waiting >= ANSWERS * self._answer_bytes
        plan = FetchPlan(now, self._asking.keys(), self._not_before, self._wait_s, full=full)
        if self._all_asked():
            return plan
        for where, place in [*self._places.items()]:
            if place.stopped:
                continue
            leader = self._client.leader_of(where)
            if leader is None and self._answers.unknown(where, place):
                continue
            plan.add(where, place, leader)
        return plan

    def _all_asked(self) -> bool:
        """Whether a request is under way to each known broker, and none is to go beside it."""
        known = self._client.brokers
        if not known or any(LeaderLane(each) not in self._asking for each in known):
            return False
        return not any(place.joins for place in self._places.values())

    async def _ask(self, lane: LeaderLane, request: LeaderRequest) -> None:
        leader, loop = lane.leader, asyncio.get_running_loop()
        asked = [(self._places.get(where), offset) for where, offset in request.places]
        try:
            places = await self._still_there(leader, request.places)
            sent = self._request(places, request.wait_s)
            answer = await self._client.send(leader, sent, beside=lane.beside)
            self._failures = 0
            del self._failures_of[leader]
            size = self._answers.take_in(dict(places), answer)
            rest_s = min(answer.throttle_time_ms / 1000, ASK_S / 2)
            if self._sip_s and 0 < size < SIP_BYTES:
                rest_s = max(rest_s, REST_S * len(places))
            self._not_before[leader] = loop.time() + rest_s
        except Exception as error:  # noqa: BLE001  # repeated, and logged
            self._doubt(leader)
            pause_s = await self._failed(leader, f"broker {leader} does not answer", error)
            self._not_before[leader] = loop.time() + pause_s
        finally:
            for place, offset in asked:
                if place is not None:
                    place.was_asked(offset)
            self._asking.pop(lane, None)
            self.changed.set()

    def _request(self, places: list[tuple[Where, int]], wait_s: float) -> Any:
        most = ANSWERS * self._answer_bytes
        shared = SHARED * self._answer_bytes // max(1, len(places))
        each = min(self._answer_bytes, max(LEAST_BYTES, shared))
        topics: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for (topic, partition), offset in places:
            topics[topic].append((partition, offset, each))
        return FetchRequest(round(wait_s * 1000), 1, most, READ_COMMITTED, [*topics.items()])

    async def _failed(self, leader: int, told: str, error: Exception) -> float:
        """Log a failure, and look leaders up; returns the seconds to wait before the next try."""
        self._failures += 1
        tried = self._failures_of[leader] = self._failures_of[leader] + 1
        if tried > 1:
            names = sorted({topic for topic, _ in self._places})
            self._log.warning("away", told, topics=names, tried=tried, cause=named(error))
        others = any(lane.leader != leader for lane in self._asking)
        if self._failures % FORGET_AFTER == 0 and not others:
            await self._client.forget()
            for each in [*self._places.items()] if isinstance(error, NotLetIn) else ():
                self._answers.told(*each, error)
        else:
            self._client.look_again()
        return backoff_s(tried)

    def _doubt(self, leader: int) -> None:
        """Doubt all partitions that a broker leads, whether they were just asked for or not."""
        for where, place in self._places.items():
            place.doubted = place.doubted or self._client.leader_of(where) == leader

    async def _still_there(
        self, leader: int, places: list[tuple[Where, int]]
    ) -> list[tuple[Where, int]]:
        """The partitions of which the leader still has the read records, after a failure."""
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
                # Another broker leads by now, or the topic is gone: this partition is asked for
                # later.
                place.not_before = asyncio.get_running_loop().time() + PAUSE_S
                self._client.look_again()
                continue
            place.doubted = False
            if end < offset:
                name = f"{where[0]}/{where[1]}"
                gone = f"{name}: the log was cut off at offset {end}, and {offset} was read"
                self._answers.told(where, place, OffsetGone(gone))
            else:
                left.append((where, offset))
        return left
