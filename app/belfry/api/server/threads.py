"""Threads for one kind of blocking work, so that a slow broker delays only that kind.

There is no queue: a call that comes while all threads are busy gets `busy`, and asks again. A queue
would hold calls whose callers have gone, and its end could not be told.

Each kind has threads of its own: previews, dry runs, lists, looks at topics. So a slow broker can
fill one kind and no other, and never the port's event loop. One caller fills all but one of a kind,
so a caller that asks again and again leaves others a thread:

    4 looks at topics   shop  shop  shop  ─      shop asks for a fourth: 503 `busy`
                        shop  shop  shop  mail   mail has its answer
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from threading import Lock
from typing import TypeVar

from belfry.api.auth.principal import ANYBODY
from belfry.api.notes import note
from belfry.api.problems import Problem

T = TypeVar("T")


class Threads:
    """At most `most` threads; made as they are needed."""

    def __init__(self, what: str, most: int) -> None:
        """`what` names the work, in the words of an answer: ``dry runs``."""
        self._what = what
        self._most = most
        # Threads that callers have, by name.
        self._of: Counter[str] = Counter()
        self._counting = Lock()
        self._pool = ThreadPoolExecutor(most, f"belfry-{what.replace(' ', '-')}")

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`; raises `Problem` if no thread is free for the caller.

        The note of the request names the caller; it names none if the port is open to all.
        """
        caller = note().caller
        self._take(caller)

        def released() -> T:
            try:
                return work()
            finally:
                self._give_back(caller)

        try:
            begun = self._pool.submit(released)
        except RuntimeError:
            # The interpreter ends.
            self._give_back(caller)
            raise
        # A caller that leaves does not free the thread: it is free when the work is done.
        return await asyncio.shield(asyncio.wrap_future(begun))

    def _take(self, caller: str) -> None:
        """Take a thread; raises `Problem` where all are taken, or the caller has its share."""
        with self._counting:
            is_known = caller not in ("", ANYBODY.name)
            share = self._most - 1 if is_known and self._most > 1 else self._most
            if self._of.total() >= self._most:
                raise _busy(f"{self._most} {self._what} are under way already")
            if self._of[caller] >= share:
                raise _busy(f"{share} {self._what} of {caller} are under way already")
            self._of[caller] += 1

    def _give_back(self, caller: str) -> None:
        with self._counting:
            self._of[caller] -= 1
            if not self._of[caller]:
                del self._of[caller]


def _busy(why: str) -> Problem:
    again = {"retry-after": "1"}
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, f"{why}: try again.", "busy", again)
