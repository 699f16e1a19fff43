"""What is sent to the loop of an owned partition, and whether all of it arrives.

**The mailbox** takes batches of requests from any thread; the partition's loop takes them out.
Each step is a transaction, so small batches that came during one go into the next together.  They
are joined only where one begins at the offset that the other ends with.

    in     [0‥9] [10‥14] [15‥800]         a step is under way
    out    [0‥14]                          two small ones are joined; the third is too much

Batches carry the number of a *term*, which is one take-over by this owner.  A batch of an earlier
term is thrown away: the new term reads its requests again, from the position of the last manifest.

**`MissingBatch`** notices a batch that was read ahead and never came.  The next batch would show
the gap by its first offset, but where no further request comes, nothing else would tell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from belfry.host import machine
from belfry.kafka.outcome import Unknown
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord

# Requests from which on a batch waits for no others to join it.
SMALL: Final = 500
Ready = Callable[[Sequence[SourceRecord]], bool]
# After so long a batch that was read counts as lost on its way.
LONGEST_HAND_OVER_MS: Final = 10_000


class Mailbox:
    """Takes in from any thread; one at a time takes out, so many requests and bytes at once."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._mail: machine.SimpleQueue[tuple[int, SourceBatch]] = machine.SimpleQueue()
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

    @property
    def any(self) -> bool:
        """Whether something has come, be it of this term or not."""
        return bool(self._aside) or not self._mail.empty()

    def next(self, ready: Ready) -> SourceBatch | None:
        """The next batch, small ones joined; None if none has come.

        `ready` says whether all schemas of some requests are known. What has to be waited for joins
        nothing, so that others need not wait for it.
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
    """Watches one owner's requests arrive; instants are monotonic milliseconds."""

    def __init__(self) -> None:
        self._arrived_ms = 0.0

    def arrived(self, now_ms: float) -> None:
        """A batch has come, or none can be missing yet."""
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
