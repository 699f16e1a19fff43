"""The side that posts: an event loop in a thread of its own, which knows nothing of Kafka.

Work is handed in, and each piece comes back once, with the answer that counts. Pieces of one
ordering key (a group, or a schedule) go out one after the other, others beside them. `attempts.py`
says what an attempt is, and when a host takes one.

    schedule a   ── post 1 ──┐── post 2 ──┐          one ordering key: one after the other
    schedule b   ── post ──┐                         another one: beside it
    group g      ── post of c ──┐── post of d ──┐    a group has one key for all its schedules

Posts begin a few at a time. Where more come than one core can send, they wait before their time-out
runs. Begun all together, they would take turns, and time out together because this process is slow:
each would be another attempt to be made, and the more of them, the fewer would arrive. First
attempts go before retries, except that every eighth post is a retry.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import structlog
import uvloop

from belfry.delivery.answers import Answer, End
from belfry.delivery.attempts import Attempts, SenderDependencies
from belfry.delivery.work import Finished, Work, WorkId
from belfry.host import machine

# A name that does not resolve holds a thread for seconds, so there are many.
RESOLVING_THREADS: Final = 64
# Seconds for the thread to end.
STOP_S: Final = 5.0
# Begun in one turn of the loop: a few milliseconds of work.
BEGUN_AT_ONCE: Final = 8

log = structlog.get_logger(__name__)


class _Loop(uvloop.Loop):
    """uvloop's, but names are resolved by the executor: its own two threads would be few."""

    def getaddrinfo(self, *args: Any, **kwargs: Any) -> Any:
        """As the standard loops do it."""
        return self.run_in_executor(None, partial(socket.getaddrinfo, *args, **kwargs))


class HttpSender:
    """Posts what it is handed; `finished` is called from its thread, once for each piece.

    The methods before "in the loop" may be called from the dispatcher's thread and return at once.
    """

    def __init__(self, means: SenderDependencies, finished: Finished) -> None:
        self._means = means
        self._finished = finished
        self._first: deque[tuple[WorkId, Work]] = deque()
        self._again: deque[tuple[WorkId, Work]] = deque()
        self._begun = 0
        self._beginning = False
        self._last_of_key: dict[tuple[bytes, int], asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = _Loop()
        self._loop.set_default_executor(
            ThreadPoolExecutor(RESOLVING_THREADS, thread_name_prefix="belfry-resolving")
        )
        self._thread = machine.Thread(target=self._run, name="belfry-http-sender", daemon=True)
        self._attempts: Attempts | None = None

    # -- from the other thread -------------------------------------------------------------------

    def start(self) -> None:
        """Begin to wait for work."""
        self._thread.start()

    def hand_in(self, pieces: list[tuple[WorkId, Work]]) -> None:
        """Work to be done; returns at once."""
        self._loop.call_soon_threadsafe(self._begin, pieces)

    def drop(self) -> None:
        """Give up the work under way: it belongs to another process now."""
        self._loop.call_soon_threadsafe(self._drop)

    def stop(self) -> None:
        """Give up the work under way, and end."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_S)

    # -- in the loop -----------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._end())
            self._loop.close()

    async def _end(self) -> None:
        self._drop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._attempts is not None:
            await self._attempts.close()

    def _drop(self) -> None:
        """Give up all work under way; none of it comes back."""
        self._first.clear()
        self._again.clear()
        for task in self._tasks:
            task.cancel()
        self._last_of_key.clear()

    def _begin(self, pieces: Iterable[tuple[WorkId, Work]]) -> None:
        """Take pieces in, and begin some in the next turn of the loop."""
        if self._attempts is None:
            self._attempts = Attempts(self._means)
        for piece in pieces:
            (self._first if piece[1].state.attempt == 1 else self._again).append(piece)
        if not self._beginning:
            self._beginning = True
            self._loop.call_soon(self._begin_some)

    def _begin_some(self) -> None:
        """Begin the next few; work under way has its turn before those behind them."""
        for _ in range(min(BEGUN_AT_ONCE, len(self._first) + len(self._again))):
            work_id, work = self._next()
            before = self._last_of_key.get(work.ordering_key)
            task = self._loop.create_task(self._deliver(work_id, work, before))
            self._last_of_key[work.ordering_key] = task
            self._tasks.add(task)
            task.add_done_callback(partial(self._done, work.ordering_key))
        self._beginning = bool(self._first or self._again)
        if self._beginning:
            self._loop.call_soon(self._begin_some)

    def _next(self) -> tuple[WorkId, Work]:
        """The next to begin: a first attempt, or another one in its turn."""
        self._begun += 1
        again = self._again and (not self._first or self._begun % BEGUN_AT_ONCE == 0)
        return (self._again if again else self._first).popleft()

    def _done(self, ordering_key: tuple[bytes, int], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._last_of_key.get(ordering_key) is task:
            del self._last_of_key[ordering_key]

    async def _deliver(
        self, work_id: WorkId, work: Work, before: asyncio.Task[None] | None
    ) -> None:
        """One piece of work: wait for the one before it, try, and give it back after any result."""
        if before is not None:
            await asyncio.wait({before})
        assert self._attempts is not None, "work is begun after they were made"
        try:
            answer = await self._attempts.answer(work)
        except Exception as error:  # any error: the delivery has to go on
            log.exception("an attempt ended in an error", fire_id=work.event.fire_id)
            answer = Answer(End.AGAIN, work.state.targets[0].url, "internal", str(error)[:300])
        self._finished(work_id, work, answer)
