"""The transactions of one transactional id, as a state machine over requests.

            begin                write                  end(commit or abort)
    NEW ─────────────► READY ─────────────► OPEN ─────────────────────────────► READY
                                             │  a refusal: end(abort) is next
                                             └─ fenced, or uncertain ─► OVER: never used again

Protocol v1 adds all partitions by one request before anything is produced.  In v2 the first batch
of a partition adds it, and each end gives the epoch of the next transaction, so that an end that
comes late can only end its own transaction.

    what was lost            is asked again        because
    InitProducerId           yes                   a later answer only makes the epoch larger
    AddPartitionsToTxn       yes                   a partition that is added twice is added once
    Produce                  yes                   the same sequence is taken once
    EndTxn, v2               yes                   its epoch is over once it was carried out
    EndTxn, v1               no                    a late one could end the next transaction

After a roll-back in v1 the writer takes the next epoch: requests that are still under way are
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Final

from belfry.transactions import errors
from belfry.transactions.appending import Appender
from belfry.transactions.asking import Asker, Ended, Pauses, judge, now, refusals, tell_gone
from belfry.transactions.batches import ProducedBatch, StepBatches, Where, Writer, after
from belfry.transactions.brokers import Brokers
from belfry.transactions.coordinating import SENT, Coordination, for_certain
from belfry.transactions.errors import Meaning
from belfry.transactions.requests import (
    NO_WRITER,
    AddPartitionsToTxn,
    EndTxn,
    EndTxnWithEpoch,
    InitProducerId,
    added_codes,
)

# Seconds that brokers have for a fence, for all batches of a step, and for an end.
BEGIN_S: Final = 30.0
WRITE_S: Final = 8.0
END_S: Final = 9.5


class WriterState(Enum):
    """The state of a writer."""

    NEW = "new"
    READY = "ready"
    OPEN = "open"
    OVER = "over"


class TransactionWriter:
    """Writes one transaction after the other; each method is awaited before the next is called.

    It runs in the writers' loop. A worker that sleeps amid a transaction and wakes after a
    take-over:

        W1  epoch 7   Produce … sleeps                        wakes ─ EndTxn epoch 7 ─► refused
        W2  epoch 8             InitProducerId ─► aborts what epoch 7 left open, gives epoch 8
        coordinator   open 7 ──────► PrepareAbort ─► markers ─► Empty, epoch 8

    The answer PRODUCER_FENCED or INVALID_PRODUCER_EPOCH comes to FENCED, and the writer is OVER.
    """

    def __init__(self, brokers: Brokers, name: str, timeout_ms: int, *, own_epochs: bool) -> None:
        """`name` is the transactional id; `own_epochs` chooses protocol v2."""
        self._name = name
        self._timeout_ms = timeout_ms
        self._own_epochs = own_epochs
        asker = Asker(brokers)
        self._coordination = Coordination(brokers, asker, name)
        self._appender = Appender(brokers, asker, name, own_epochs=own_epochs)
        self._sequences: dict[Where, int] = {}
        self._following: dict[Where, int] = {}
        self._begun = False
        self.limits = self._appender.limits
        self.writer = NO_WRITER
        self.state = WriterState.NEW

    async def begin(self) -> None:
        """Fence the writer that had the id before, and end the transaction that was left open.

        The coordinator answers CONCURRENT_TRANSACTIONS until the markers of that are written, so no
        transaction of the former owner is open when this returns. Raises Ended.
        """
        await self._next_epoch(NO_WRITER, now() + BEGIN_S)

    def finish(self, step: StepBatches) -> list[ProducedBatch]:
        """A step's batches, as this writer's next transaction; any thread may call it."""
        batches = step.finish(self.writer, self._sequences)
        self._following = {}
        for batch in batches:
            where = batch.where
            begun = self._following.get(where, self._sequences.get(where, 0))
            self._following[where] = after(begun, batch.records)
        return batches

    async def write(self, batches: list[ProducedBatch]) -> None:
        """Append all of these, or raise Ended; `end` is next in either case."""
        assert self.state is WriterState.READY, self.state
        self.state = WriterState.OPEN
        deadline = now() + WRITE_S
        try:
            if not self._own_epochs:
                await self._add({batch.where for batch in batches}, deadline)
            self._begun = True
            await self._appender.append(batches, deadline)
        except Ended as ended:
            self._may_be_over(ended)
            raise

    async def end(self, *, commit: bool) -> None:
        """Make the transaction visible, or roll it back; raises Ended if the end is uncertain."""
        assert self.state is WriterState.OPEN, self.state
        if self._begun:
            deadline = now() + END_S
            try:
                await self._end(deadline, commit=commit)
            except Ended as ended:
                self._may_be_over(ended)
                raise
        # Otherwise nothing of this transaction has reached a broker.
        self._begun = False
        self.state = WriterState.READY

    async def _end(self, deadline: float, *, commit: bool) -> None:
        """EndTxn, and the epoch and sequences of the next transaction."""
        kind = EndTxnWithEpoch if self._own_epochs else EndTxn
        during = "commit" if commit else "roll-back"
        answer = await self._coordinated(
            lambda: kind(self._name, self.writer, commit=commit),
            during,
            deadline,
            repeats=self._own_epochs,
        )
        given = self.writer
        if self._own_epochs:
            given = Writer(answer.producer_id, answer.producer_epoch)
        if given != self.writer:
            self.writer, self._sequences = given, {}
        elif commit:
            self._sequences.update(self._following)
        else:
            await self._next_epoch(self.writer, deadline)

    async def _next_epoch(self, former: Writer, deadline: float) -> None:
        """InitProducerId: a new epoch, whose sequences begin at 0."""
        answer = await self._coordinated(
            lambda: InitProducerId(self._name, self._timeout_ms, former), "fence", deadline
        )
        self.writer = Writer(answer.producer_id, answer.producer_epoch)
        self._sequences = {}
        self.state = WriterState.READY

    def _may_be_over(self, ended: Ended) -> None:
        """Never use this writer again: it was fenced, or the end of a transaction is unknown."""
        if ended.meaning in (Meaning.FENCED, Meaning.UNKNOWN):
            self.state = WriterState.OVER

    # -- the coordinator ---------------------------------------------------------------------------

    async def _coordinated(
        self, make: Callable[[], Any], during: str, deadline: float, *, repeats: bool = True
    ) -> Any:
        """The coordinator's answer, once it has carried the request out; raises Ended."""
        pauses = Pauses(deadline)
        self._coordination.begin()
        while True:
            answer, code = await self._coordination.ask(make, deadline)
            line = errors.of_coordinator(code)
            if line.meaning is Meaning.FINE:
                return answer
            if code == errors.UNTOLD and repeats:
                # A coordinator that stops amid the request answers so: the end is unknown, as
                # without an answer.
                line = errors.TABLE[errors.LOST]
            lost_end = code == errors.LOST and answer is SENT and not repeats
            if line.meaning not in (Meaning.BUSY, Meaning.MOVED) or lost_end:
                raise Ended(for_certain(line), during=during)
            await self._coordination.look_again(line, pauses, during)

    async def _add(self, places: Iterable[Where], deadline: float) -> None:
        """Add partitions to the transaction, in protocol v1."""
        wanted, pauses, began = set(places), Pauses(deadline), now()
        self._coordination.begin()
        while True:
            answer, code = await self._coordination.ask(
                lambda: AddPartitionsToTxn(self._name, self.writer, wanted), deadline
            )
            # A request that was sent and lost may have been carried out.
            self._begun = self._begun or answer is SENT
            codes: dict[Any, int] = {(None, 0): code} if code else dict(added_codes(answer))
            tell_gone(codes, began)
            line = judge(codes.values(), errors.of_partition)
            if line.meaning is Meaning.FINE:
                return
            if line.meaning not in (Meaning.BUSY, Meaning.MOVED):
                raise Ended(line, refusals(codes), "adding partitions")
            await self._coordination.look_again(line, pauses, "adding partitions")
