"""Two transactional ids in turn, so that no step waits for the markers of the step before it.

A commit is decided when EndTxn is answered. Its markers are written after that, and until then the
same id cannot begin a transaction: in protocol v2 the broker holds such a Produce back for
`add.partitions.to.txn.retry.backoff.ms`, which is 20 ms.  So steps take turns:

    12:00:00.000  a: Produce, EndTxn            the first step is committed at .004
    12:00:00.004  b: Produce, EndTxn            its markers: …  done at .007
    12:00:00.008  a: Produce, EndTxn            nothing of the first step is under way any more

Records keep the order of their offsets, and a reader of committed records stops at the older of two
open transactions, as it stops at a single one.  Only one of the two is ever open, since a step
begins when the one before it has been answered.

If rows are signed for their offsets (`kafka/row_signing.py`), one id writes: the marker of the step
before could lie before the next rows or behind them, so their offsets could not be foreseen.

**Fencing.** A take-over fences both ids, and reads the log after that. A former owner that is
fenced on one id learns of it at its next step on that id, which is at most one step later: the step
between was committed before the second fence, so the new owner reads it. An owner always fences
both, even if it writes with one id, or by librdkafka.
"""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Mapping, Sequence

from belfry.transactions.batches import ProducedBatch, StepBatches
from belfry.transactions.writer import TransactionWriter, WriterState


class AlternatingWriter:
    """Writes each transaction by the next of its writers; it is used like one of them.

    After an uncertain end, or a fence, it is not used again, like the writer that met it.
    """

    def __init__(self, writers: Sequence[TransactionWriter], used: int) -> None:
        """All `writers` are fenced; the first `used` of them write."""
        self._fencing = writers
        self._turns = deque(writers[:used])
        # One writer's findings about a topic count for all of them.
        self.limits: Mapping[str, int] = ChainMap(*(each.limits for each in self._turns))

    @property
    def state(self) -> WriterState:
        """The state of the writer whose turn it is."""
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
        """Make the transaction visible, or roll it back; raises Ended if the end is uncertain.

        If its rows are `signed`, the same id writes the next transaction.
        """
        await self._turns[0].end(commit=commit)
        if not signed:
            self._turns.rotate(-1)
