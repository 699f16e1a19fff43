"""An event loop for the requests of several threads: it has one thread, while it is used.

Threads call `run` and wait. Writers of transactions have one such loop, with one coroutine for a
step, and clients that ask for offsets have another (`offset_client.py`).

    partition 3   ── batches ──┐ run(write, end) blocks ┌── receipt ── batches ──┐ run …
    partition 7   ─────── batches ──┐ run(write, end) blocks ┌───────────────
    the loop      ══════════════ requests and answers of both, interleaved ══════

The loop runs only requests and answers, so a partition does not wait for another one's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Final, Self, TypeVar

from belfry.host import machine

T = TypeVar("T")
# Seconds for the thread to end when no user is left.
END_S: Final = 5.0


class ClientLoop:
    """An event loop in a thread of its own, for as long as it is used.

    `enter` and `leave` come in pairs, from any thread. An entry after the last leave begins a new
    loop.
    """

    def __init__(self, name: str) -> None:
        """The thread is named ``belfry-NAME``."""
        self._name = name
        self._lock = machine.Lock()
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: machine.Thread | None = None

    def enter(self) -> None:
        """Use the loop, until `leave`."""
        with self._lock:
            self._users += 1
            self._begin()

    def _begin(self) -> None:
        """Begin the loop if there is none; the caller holds the lock."""
        if self._loop is None:
            loop = self._loop = asyncio.new_event_loop()
            self._thread = machine.Thread(
                target=_run, args=(loop,), name=f"belfry-{self._name}", daemon=True
            )
            self._thread.start()

    def kept(self) -> Self:
        """The loop, in use from the first call to the end of the process; from any thread."""
        with self._lock:
            if not self._users:
                self._begin()
                self._users = 1
        return self

    def leave(self) -> None:
        """Stop using the loop; the last user ends it."""
        with self._lock:
            self._users -= 1
            if self._users or self._loop is None or self._thread is None:
                return
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(END_S)
            self._loop = self._thread = None

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine there, and do not wait."""
        assert self._loop is not None, "enter comes first"
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T], most_s: float) -> T:
        """Run a coroutine there and wait; after `most_s` cancels it and raises TimeoutError.

        Errors of the coroutine are raised here. It must not be called from the loop itself.
        """
        future = self.begin(work)
        try:
            return future.result(most_s)
        except TimeoutError:
            future.cancel()
            raise TimeoutError(f"nothing came of it within {most_s:.0f} s") from None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """The thread: run until it is stopped, then cancel what is left and close."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
