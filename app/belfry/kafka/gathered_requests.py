"""Gathers the questions of several coroutines to one broker into one request.

One request is under way to each receiver. Questions that come meanwhile all go into the next one.
So an answer is never older than its question, and a worker that takes 64 partitions over asks for
64 ends in a few requests:

    partition 0   asks ─► request: 0            ─► answer
    partition 1        asks ·· request: 1, 2, 3 ─► answer
    partition 2          asks ·                 ─► answer
    partition 3             asks ·              ─► answer

A broker works on one request of a connection at a time, so no caller waits longer by this. No
caller waits for another broker's answer either: each receiver has requests of its own.

Callers that ask while a receiver does not answer would wait twice: for the request under way, and
for their own. If that is too long, they share the failure of the first one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

To = TypeVar("To", bound=Hashable)
Asked = TypeVar("Asked", bound=Hashable)


class _Request(Generic[Asked]):
    """One request: its questions, and the number of callers that wait for it."""

    def __init__(self) -> None:
        # The questions in the order of their arrival, each once.
        self.asked: dict[Asked, None] = {}
        self.waiting = 0
        # The failure of the request before, if failures are shared.
        self.failure: Exception | None = None
        self.task: asyncio.Task[Mapping[Asked, Any]] | None = None


class GatheredRequests(Generic[To, Asked]):
    """Sends questions in few requests, by receiver; used in one event loop."""

    def __init__(
        self,
        send: Callable[[To, list[Asked]], Awaitable[Mapping[Asked, Any]]],
        *,
        share_failures: bool = False,
    ) -> None:
        """`send` asks a receiver, and returns the answer to each question; or raises.

        With `share_failures` a request that fails also fails the next one, which is not sent.
        """
        self._send = send
        self._share_failures = share_failures
        self._next: dict[To, _Request[Asked]] = {}
        self._turns: defaultdict[To, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ask(self, to: To, asked: Iterable[Asked]) -> dict[Asked, Any]:
        """A receiver's answer to each of these; raises the errors of `send`.

        A request without waiting callers is given up.
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
            # If a request was given up while it waited, the one under way still has the turn.
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
        """Give up a request without callers; the error of a failed one is marked as read."""
        if not task.done():
            self._forget(to, request)
            task.cancel()
        elif not task.cancelled():
            task.exception()

    def _forget(self, to: To, request: _Request[Asked]) -> None:
        """Put later questions into another request."""
        if self._next.get(to) is request:
            del self._next[to]
