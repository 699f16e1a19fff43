"""Threads of one kind of work that blocks, so that what waits for a broker waits for its own kind.

There is no queue: a call that comes while all threads are busy is told so, and asks again. A queue
would hold calls whose callers have gone, and its end could not be told.

Each kind has threads of its own: previews, dry runs, lists, looks at topics. So a slow broker can
fill one kind and no other, and never the port's event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from threading import Semaphore
from typing import TypeVar

from belfry.api.problems import Problem

T = TypeVar("T")


class Threads:
    """At most `most` threads; made as they are needed."""

    def __init__(self, what: str, most: int) -> None:
        """`what` is done in them, in the words of an answer: ``dry runs``."""
        self._what = what
        self._most = most
        self._free = Semaphore(most)
        self._pool = ThreadPoolExecutor(most, f"belfry-{what.replace(' ', '-')}")

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns; raises `Problem` where every thread is busy."""
        if not self._free.acquire(blocking=False):
            detail = f"{self._most} {self._what} are under way already: try again."
            again = {"retry-after": "1"}
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "busy", again)

        def released() -> T:
            try:
                return work()
            finally:
                self._free.release()

        try:
            begun = self._pool.submit(released)
        except RuntimeError:
            # The interpreter ends.
            self._free.release()
            raise
        # Who waits no more does not free the thread: it is free when the work is done.
        return await asyncio.shield(asyncio.wrap_future(begun))
