"""What several coroutines ask of one broker, asked together.

One request is under way to each receiver.  What is asked meanwhile goes into the next one, with
all else that has come up by then.  So an answer is never older than its question, and a worker
that takes 64 partitions over asks for 64 ends in a few requests:

    partition 0   asks ─► request: 0            ─► answer
    partition 1        asks ·· request: 1, 2, 3 ─► answer
    partition 2          asks ·                 ─► answer
    partition 3             asks ·              ─► answer

A broker works on one request of a connection at a time, so nobody waits for longer by this.  Nobody
waits for another broker's answer either: each receiver has requests of its own.

A receiver that does not answer would be waited for twice by who asks meanwhile: for the request
under way, and for their own.  Where that is too long, they share its failure.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

To = TypeVar("To", bound=Hashable)
Asked = TypeVar("Asked", bound=Hashable)


class _Request(Generic[Asked]):
    """One request: what it asks for, and who waits for it."""

    def __init__(self) -> None:
        # In the order in which it came up, each once.
        self.asked: dict[Asked, None] = {}
        self.waiting = 0
        # Of the request before it, where that is shared.
        self.failure: Exception | None = None
        self.task: asyncio.Task[Mapping[Asked, Any]] | None = None


class GatheredRequests(Generic[To, Asked]):
    """Sends what is asked for in requests that nobody else's wait for; used in one event loop."""

    def __init__(
        self,
        send: Callable[[To, list[Asked]], Awaitable[Mapping[Asked, Any]]],
        *,
        share_failures: bool = False,
    ) -> None:
        """`send` asks a receiver, and tells what it says of each; or raises.

        With `share_failures` a request that fails does so for the next one too, which is not sent.
        """
        self._send = send
        self._share_failures = share_failures
        self._next: dict[To, _Request[Asked]] = {}
        self._turns: defaultdict[To, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ask(self, to: To, asked: Iterable[Asked]) -> dict[Asked, Any]:
        """What a receiver says of each of these; raises what `send` raises.

        A request that nobody waits for any more is given up.
        """
        wanted = list(asked)
        request = self._next.get(to)
        if request is None:
            request = self._next[to] = _Request()
            request.task = asyncio.create_task(self._told(to, request))
        task = request.task
        assert task is not None
        request.asked.update(dict.fromkeys(wanted))
        request.waiting += 1
        try:
            await asyncio.wait([task])
        finally:
            request.waiting -= 1
            if not request.waiting:
                self._give_up(to, request, task)
        told = task.result()
        return {each: told[each] for each in wanted}

    async def _told(self, to: To, request: _Request[Asked]) -> Mapping[Asked, Any]:
        """Send a request, once the one before it is over."""
        try:
            async with self._turns[to]:
                self._forget(to, request)
                if request.failure is not None:
                    raise request.failure
                return await self._sent(to, request)
        finally:
            # A request that was given up while it waited leaves the turn to the one under way.
            if to not in self._next and to in self._turns and not self._turns[to].locked():
                del self._turns[to]

    async def _sent(self, to: To, request: _Request[Asked]) -> Mapping[Asked, Any]:
        try:
            return await self._send(to, [*request.asked])
        except Exception as error:
            if self._share_failures and (after := self._next.get(to)) is not None:
                after.failure = error
            raise

    def _give_up(
        self, to: To, request: _Request[Asked], task: asyncio.Task[Mapping[Asked, Any]]
    ) -> None:
        """Nobody waits for a request any more; one that has failed is not told of again."""
        if not task.done():
            self._forget(to, request)
            task.cancel()
        elif not task.cancelled():
            task.exception()

    def _forget(self, to: To, request: _Request[Asked]) -> None:
        """From here on others are told by another request."""
        if self._next.get(to) is request:
            del self._next[to]
