"""Two transactional ids in turn, so that no step waits for the markers of the step before it.

A commit is decided when EndTxn is answered.  Its markers are written after that, and until they are
the same id can begin nothing: in protocol v2 the broker holds such a Produce back for
`add.partitions.to.txn.retry.backoff.ms`, which is 20 ms.  So steps take turns:

    12:00:00.000  a: Produce, EndTxn            the first step is committed at .004
    12:00:00.004  b: Produce, EndTxn            its markers: …  done at .007
    12:00:00.008  a: Produce, EndTxn            nothing of the first step is under way any more

Order is that of the offsets, and a reader of committed records stops at the older of two
transactions as it stops at one.  Only one of the two is ever open, since a step begins when the one
before it has been answered.

Where rows are signed by the place that they come to lie at (`kafka/row_signing.py`), one id writes:
the marker of the step before would lie in front of the next rows, or amid what follows them.

**Fencing.**  A take-over fences both, and reads the log after that.  A former owner that is fenced
on one id sees it at its next step on that one, and at the latest one step later: that step was
committed before the second fence, so the new owner reads it.  An owner always fences both, also
where it writes with one, or by librdkafka.
"""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Mapping, Sequence

from belfry.transactions.batches import ProducedBatch, StepBatches
from belfry.transactions.writer import TransactionWriter, WriterState


class AlternatingWriter:
    """Writes each transaction by the next of its writers; used as one of them is.

    After an end that is not certain, or a fence, it is as little used again as the writer that met
    it.
    """

    def __init__(self, writers: Sequence[TransactionWriter], used: int) -> None:
        """All `writers` are fenced; the first `used` of them write."""
        self._fencing = writers
        self._turns = deque(writers[:used])
        # What one of them has learned of a topic, the others need not learn.
        self.limits: Mapping[str, int] = ChainMap(*(each.limits for each in self._turns))

    @property
    def state(self) -> WriterState:
        """Where the writer stands whose turn it is."""
        return self._turns[0].state

    async def begin(self) -> None:
        """Fence the writer that had the ids before; raises Ended."""
        for writer in self._fencing:
            await writer.begin()

    def finish(self, step: StepBatches) -> list[ProducedBatch]:
        """A step's batches, as the next transaction; any thread may call it."""
        return self._turns[0].finish(step)

    async def write(self, batches: list[ProducedBatch]) -> None:
        """Append all of these, or raise Ended; `end` is next in either case."""
        await self._turns[0].write(batches)

    async def end(self, *, commit: bool, signed: bool) -> None:
        """Make the transaction visible, or roll it back; raises Ended where that is not certain.

        Behind one whose rows are `signed` the same id goes on.
        """
        await self._turns[0].end(commit=commit)
        if not signed:
            self._turns.rotate(-1)
