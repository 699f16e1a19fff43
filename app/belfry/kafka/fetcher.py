"""Fetching record batches ahead, as they are stored, `read_committed`.

    follow({partition: offset}) ─► Fetch, one request under way per leader ─► take(): one answer
                                     │ the next one leaves before this one is taken
                                     └ new leader, broken connection: asked again after a pause

librdkafka unpacks all batches that it fetches, and a megabyte of gzip may be a gigabyte. Here a
batch stays packed until its reader opens it, a slice at a time. aiokafka provides connections, TLS,
SASL and the protocol's messages, as for the group's client.

A fetcher has an event loop of its own and no thread: the loop runs while its user waits in `take`.
So one thread at a time may use it, and an answer that its user does not take stays in the socket.
Only `wake` may be called from another thread, to end a wait. `feeding.py` describes the work in the
loop, and the errors that a user gets.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Container, Mapping
from contextlib import suppress
from typing import Any, Final

from belfry.host import machine
from belfry.kafka.feeding import Feeder
from belfry.kafka.fetch_plan import WAIT_S
from belfry.kafka.fetch_position import SIP_BYTES, Fetched, FetchPosition, OffsetGone, Where

# The most bytes of one partition in one answer. A first batch comes whole.
ANSWER_BYTES: Final = 4 * 1024 * 1024


class Fetcher:
    """Fetches from some partitions; one thread at a time may use it."""

    def __init__(
        self,
        properties: Mapping[str, Any],
        answer_bytes: int = ANSWER_BYTES,
        sip_s: float = 0.0,
        wait_s: float = WAIT_S,
    ) -> None:
        """`properties` are librdkafka's.

        After a small answer a partition pauses for `sip_s` at most, up to an instant that is the
        same for all: records of that time come together, by one request. Without records, brokers
        answer after `wait_s` (`fetch_plan.py`).
        """
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._came = asyncio.Event()
        self._woken = False
        self._places: dict[Where, FetchPosition] = {}
        self._answers: deque[Fetched] = deque()
        self._feeder = Feeder(properties, self._places, self._put, answer_bytes, sip_s, wait_s)

    def follow(self, positions: Mapping[Where, int]) -> None:
        """Fetch only from these partitions; those that are followed from the same offset go on."""
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

    def take(
        self, wait_s: float, but: Container[Where] = (), small_of: Container[Where] = ()
    ) -> Fetched | None:
        """The next answer, None if none comes in time; those of `but` stay for another call.

        So do those of `small_of`, except small answers (trickles). `wake` ends the wait.
        """
        if not self._places:
            machine.sleep(wait_s)
            return None
        # Not `asyncio.Runner`: on the main thread that would make a text of each answer.
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(self._take(wait_s, but, small_of))

    def wake(self) -> None:
        """From any thread: let `take` return, whether it is under way or comes next."""
        self._woken = True
        loop = self._loop
        if loop is not None:
            # The loop may have been closed since.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._came.set)

    async def _take(
        self, wait_s: float, but: Container[Where], small_of: Container[Where]
    ) -> Fetched | None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._feeder.run())
        self._feeder.changed.set()
        answer = self._first(but, small_of)
        if answer is None:
            self._came.clear()
            if not self._woken:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._came.wait(), wait_s)
            self._woken = False
            answer = self._first(but, small_of)
        if answer is None:
            return None
        self._answers.remove(answer)
        self._taken(answer)
        self._feeder.changed.set()
        # The next request leaves now: it is answered while this answer is read.
        for _ in range(3):
            await asyncio.sleep(0)
        return answer

    def _first(self, but: Container[Where], small_of: Container[Where]) -> Fetched | None:
        for each in self._answers:
            small = each.where not in small_of or len(each.data) < SIP_BYTES
            if small and each.where not in but:
                return each
        return None

    def _taken(self, answer: Fetched) -> None:
        place = self._places.get(answer.where)
        if place is not None:
            place.took(answer.behind)
        if isinstance(answer.error, OffsetGone):
            self._places.pop(answer.where, None)

    def _put(self, answer: Fetched) -> None:
        self._answers.append(answer)
        self._came.set()

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
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._feeder.close()
