"""Batches on their way to the loop of an owned partition, and whether all of them arrive.

**The mailbox** takes batches of requests from any thread; the partition's loop takes them out.
Each step is a transaction, so small batches that came during one step go into the next together.
Two batches are joined only where the second begins at the offset at which the first ends.

    in     [0‥9] [10‥14] [15‥800]         a step is under way
    out    [0‥14]                          two small ones are joined; the third is too large

Batches carry the number of a *term*, which is one take-over by this owner.  A batch of an earlier
term is thrown away: the new term reads its requests again, from the position of the last manifest.

**`MissingBatch`** notices a batch that was read ahead and never came.  The next batch would show
the gap by its first offset, but where no further request comes, only `MissingBatch` notices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from belfry.host import machine
from belfry.kafka.outcome import Unknown
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord

# A batch of at least so many requests is not joined with others.
SMALL: Final = 500
Ready = Callable[[Sequence[SourceRecord]], bool]
# After so long a batch that was read counts as lost on its way.
LONGEST_HAND_OVER_MS: Final = 10_000


class Mailbox:
    """Any thread puts in; one at a time takes out, `most` requests and `most_bytes` at once."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._mail: machine.SimpleQueue[tuple[int, SourceBatch]] = machine.SimpleQueue()
        self._most = most
        self._most_bytes = most_bytes
        self._term = 0
        self._aside: deque[SourceBatch] = deque()

    def begin_term(self) -> int:
        """Begin a term of ownership and return its number; batches of earlier terms are dropped."""
        self._term += 1
        self._aside.clear()
        return self._term

    def deliver(self, term: int, batch: SourceBatch) -> None:
        """Put a batch in."""
        self._mail.put((term, batch))

    def put_back(self, left: SourceBatch) -> None:
        """Put the rest of the batch that came out last back: it comes out next."""
        self._aside.appendleft(left)

    def first_of(self, batch: SourceBatch, count: int) -> SourceBatch:
        """The first `count` records of a batch that came out; the rest comes out next."""
        first, rest = batch.divided(count)
        self.put_back(rest)
        return first

    @property
    def any(self) -> bool:
        """Whether a batch has come, of this term or of an earlier one."""
        return bool(self._aside) or not self._mail.empty()

    def next(self, ready: Ready) -> SourceBatch | None:
        """The next batch, small ones joined; None if none has come.

        `ready` says whether all schemas of some requests are known. A batch that has to wait for a
        schema is not joined with others, so that they need not wait for it.
        """
        batch = self._take()
        if batch is None or len(batch.records) >= SMALL or not ready(batch.records):
            return batch
        while len(batch.records) < SMALL and (more := self._take()) is not None:
            fits = len(batch.records) + len(more.records) <= self._most
            fits = fits and batch.size + more.size <= self._most_bytes
            if more.start != batch.next_position or not fits or not ready(more.records):
                self._aside.appendleft(more)
                break
            batch = batch.joined(more)
        return batch

    def _take(self) -> SourceBatch | None:
        """The next batch of this term, if any has come."""
        if self._aside:
            return self._aside.popleft()
        while not self._mail.empty():
            term, batch = self._mail.get_nowait()
            if term == self._term:
                return batch
        return None


class MissingBatch:
    """Watches the requests of one owner arrive; instants are monotonic milliseconds."""

    def __init__(self) -> None:
        self._arrived_ms = 0.0

    def arrived(self, now_ms: float) -> None:
        """A batch has come, or no batch can be missing yet."""
        self._arrived_ms = now_ms

    def look(self, read_ahead: int, position: int, now_ms: float) -> None:
        """No batch has come: raises `Unknown` where one that was read is overdue."""
        if read_ahead <= position:
            self._arrived_ms = now_ms
        elif now_ms - self._arrived_ms > LONGEST_HAND_OVER_MS:
            raise Unknown(
                f"requests up to offset {read_ahead} were read, but after"
                f" {LONGEST_HAND_OVER_MS} ms those from offset {position} on have not arrived: a"
                " batch is missing"
            )
