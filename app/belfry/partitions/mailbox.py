"""What is sent to the thread of an owned partition: batches of requests, and calls to wake up.

Each step is a transaction, so small batches that came while one was under way go into the next one
together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Final

from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord

SMALL: Final = 500
Ready = Callable[[Sequence[SourceRecord]], bool]


class Mailbox:
    """Takes in from any thread; one thread takes out, so many requests and bytes at a time."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._mail: SimpleQueue[tuple[int, SourceBatch] | None] = SimpleQueue()
        self._most = most
        self._most_bytes = most_bytes
        self._term = 0
        self._aside: deque[SourceBatch] = deque()

    def begin_term(self) -> int:
        """A term of ownership begins, of this number; batches of earlier ones are thrown away."""
        self._term += 1
        self._aside.clear()
        return self._term

    def deliver(self, term: int, batch: SourceBatch) -> None:
        """Put a batch in."""
        self._mail.put((term, batch))

    def put_back(self, left: SourceBatch) -> None:
        """What is left of the batch that came out last comes out next."""
        self._aside.appendleft(left)

    def first_of(self, batch: SourceBatch, count: int) -> SourceBatch:
        """The first so many records of a batch that came out; the rest comes out next."""
        first, rest = batch.divided(count)
        self.put_back(rest)
        return first

    def wake(self) -> None:
        """Let whoever waits wait no longer."""
        self._mail.put(None)

    def next(self, timeout_s: float, ready: Ready) -> SourceBatch | None:
        """The next batch, small ones joined; None if none has come in time, or after `wake`.

        What has to be waited for joins nothing, so that others need not wait for it.
        """
        batch = self._take(timeout_s)
        if batch is None or len(batch.records) >= SMALL or not ready(batch.records):
            return batch
        while len(batch.records) < SMALL and (more := self._take(0)) is not None:
            fits = len(batch.records) + len(more.records) <= self._most
            fits = fits and batch.size + more.size <= self._most_bytes
            if more.start != batch.next_position or not fits or not ready(more.records):
                self._aside.appendleft(more)
                break
            batch = batch.joined(more)
        return batch

    def _take(self, timeout_s: float) -> SourceBatch | None:
        if self._aside:
            return self._aside.popleft()
        try:
            mail = self._mail.get(timeout=timeout_s) if timeout_s else self._mail.get_nowait()
        except Empty:
            return None
        return mail[1] if mail is not None and mail[0] == self._term else None
