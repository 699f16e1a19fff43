"""The transactions of one transactional id, as a state machine over requests.

            begin                write                  end(commit or abort)
    NEW ─────────────► READY ─────────────► OPEN ─────────────────────────────► READY
                                             │  a refusal: end(abort) is next
                                             └─ fenced, or nobody knows ─► OVER: never used again

Protocol v1 adds all partitions by one request before anything is produced.  In v2 the first batch
of a partition adds it, and each end gives the epoch of the next transaction, so that an end that
comes late can end nothing but its own transaction.

    what was lost            is asked again        because
    InitProducerId           yes                   a later answer only makes the epoch larger
    AddPartitionsToTxn       yes                   what is added twice is added once
    Produce                  yes                   the same sequence is taken once
    EndTxn, v2               yes                   its epoch is over once it was carried out
    EndTxn, v1               no                    a late one could end the next transaction

After a roll-back in v1 the writer takes the next epoch: whatever is still under way is refused.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Final

from belfry.transactions import errors
from belfry.transactions.batches import Batch, StepBatches, Where, Writer, after, requests_of
from belfry.transactions.brokers import Brokers, Lost
from belfry.transactions.errors import Line, Meaning
from belfry.transactions.requests import (
    NO_WRITER,
    AddPartitionsToTxn,
    EndTxn,
    EndTxnWithEpoch,
    InitProducerId,
    Produce,
    ProduceAdding,
)

BEGIN_S: Final = 30.0
WRITE_S: Final = 8.0
END_S: Final = 9.5
# A topic that is not there for so long is gone.
GONE_S: Final = 1.0
AT_ONCE: Final = 5
_SOON_S: Final = 0.001
_LATER_S: Final = 0.02
_LATEST_S: Final = 0.2


class State(Enum):
    """Where a writer stands."""

    NEW = "new"
    READY = "ready"
    OPEN = "open"
    OVER = "over"


class Ended(Exception):
    """A transaction cannot go on; `topics` refused a record, with the reason of each."""

    def __init__(self, line: Line, topics: dict[str, str] | None = None, during: str = "") -> None:
        super().__init__(f"{during}: {line.name}: {line.why}")
        self.meaning = line.meaning
        self.topics = topics or {}
        self.barred = line.name == errors.TABLE[errors.BARRED].name


class TransactionWriter:
    """Writes one transaction after the other; each method is awaited before the next is called."""

    def __init__(self, brokers: Brokers, name: str, timeout_ms: int, *, own_epochs: bool) -> None:
        """`name` is the transactional id; `own_epochs` chooses protocol v2."""
        self._brokers = brokers
        self._name = name
        self._timeout_ms = timeout_ms
        self._own_epochs = own_epochs
        self._coordinator: int | None = None
        self._rests: dict[int, float] = {}
        self._sequences: dict[Where, int] = {}
        self._following: dict[Where, int] = {}
        self._begun = False
        # Bytes of a batch that these topics take, where they have refused a larger one.
        self.limits: dict[str, int] = {}
        self.writer = NO_WRITER
        self.state = State.NEW

    async def begin(self) -> None:
        """Fence whoever had the id before, and end the transaction that was left open."""
        await self._next_epoch(NO_WRITER, _now() + BEGIN_S)

    def finish(self, step: StepBatches) -> list[Batch]:
        """A step's batches, as this writer's next transaction; any thread may call it."""
        batches = step.finish(self.writer, self._sequences)
        self._following = {}
        for batch in batches:
            where = batch.where
            begun = self._following.get(where, self._sequences.get(where, 0))
            self._following[where] = after(begun, batch.records)
        return batches

    async def write(self, batches: list[Batch]) -> None:
        """Append all of these, or raise Ended; `end` is next in either case."""
        assert self.state is State.READY, self.state
        self.state = State.OPEN
        deadline = _now() + WRITE_S
        try:
            if not self._own_epochs:
                await self._add({batch.where for batch in batches}, deadline)
            self._begun = True
            await self._append(batches, deadline)
        except Ended as ended:
            self._may_be_over(ended)
            raise

    async def end(self, *, commit: bool) -> None:
        """Make the transaction visible, or roll it back; raises Ended where that is not certain."""
        assert self.state is State.OPEN, self.state
        if self._begun:
            deadline = _now() + END_S
            try:
                await self._end(deadline, commit=commit)
            except Ended as ended:
                self._may_be_over(ended)
                raise
        # Nothing of this transaction has reached a broker otherwise.
        self._begun = False
        self.state = State.READY

    async def _end(self, deadline: float, *, commit: bool) -> None:
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
        answer = await self._coordinated(
            lambda: InitProducerId(self._name, self._timeout_ms, former), "fence", deadline
        )
        self.writer = Writer(answer.producer_id, answer.producer_epoch)
        self._sequences = {}
        self.state = State.READY

    def _may_be_over(self, ended: Ended) -> None:
        if ended.meaning in (Meaning.FENCED, Meaning.UNKNOWN):
            self.state = State.OVER

    # -- the coordinator ---------------------------------------------------------------------------

    async def _coordinated(
        self, make: Callable[[], Any], during: str, deadline: float, *, repeats: bool = True
    ) -> Any:
        """The coordinator's answer, once it has done what was asked; raises Ended."""
        pauses = Pauses(deadline)
        while True:
            answer, code = await self._ask_coordinator(make, deadline)
            line = errors.of_coordinator(code)
            if line.meaning is Meaning.FINE:
                return answer
            lost_end = code == errors.LOST and answer is _SENT and not repeats
            if line.meaning not in (Meaning.BUSY, Meaning.MOVED) or lost_end:
                raise Ended(_for_certain(line), during=during)
            await self._look_again(line, pauses, during)

    async def _ask_coordinator(self, make: Callable[[], Any], deadline: float) -> tuple[Any, int]:
        """An answer and its error; `_SENT` in its place where it was sent and lost."""
        try:
            if self._coordinator is None:
                found = await self._brokers.coordinator_of(self._name)
                if isinstance(found, tuple):
                    return None, found[1]
                self._coordinator = found
        except Lost:
            return None, errors.LOST
        try:
            answer = await self._send(self._coordinator, make(), deadline)
        except Lost as lost:
            return _SENT if lost.sent else None, errors.LOST
        return answer, getattr(answer, "error_code", errors.NONE)

    async def _look_again(self, line: Line, pauses: Pauses, during: str) -> None:
        """Wait before the next go, and look who is to be asked; raises Ended when time is up."""
        if line.meaning is Meaning.MOVED:
            self._coordinator = None
            await self._brokers.refresh()
        if not await pauses.wait(line.meaning):
            raise Ended(_for_certain(line), during=f"{during}: not in time")

    async def _add(self, places: Iterable[Where], deadline: float) -> None:
        """Add partitions to the transaction, in protocol v1."""
        wanted, pauses, began = set(places), Pauses(deadline), _now()
        while True:
            answer, code = await self._ask_coordinator(
                lambda: AddPartitionsToTxn(self._name, self.writer, wanted), deadline
            )
            # What was sent and lost may have been carried out.
            self._begun = self._begun or answer is _SENT
            codes = {(None, 0): code} if code else _codes_of(answer)
            _tell_gone(codes, began)
            line = _judge(codes.values(), errors.of_partition)
            if line.meaning is Meaning.FINE:
                self._begun = True
                return
            if line.meaning not in (Meaning.BUSY, Meaning.MOVED):
                raise Ended(line, _refusals(codes), "adding partitions")
            await self._look_again(line, pauses, "adding partitions")

    # -- leaders of partitions ---------------------------------------------------------------------

    async def _append(self, batches: list[Batch], deadline: float) -> None:
        pauses, began = Pauses(deadline), _now()
        left = batches
        while left := await self._attempt(left, deadline):
            codes = {batch.where: batch.code for batch in left}
            _tell_gone(codes, began)
            line = _judge(codes.values(), errors.of_partition)
            if line.meaning not in (Meaning.BUSY, Meaning.MOVED):
                self._note_sizes(left)
                raise Ended(line, _refusals(codes, self._too_small(left)), "produce")
            if not await pauses.wait(line.meaning):
                # Whose broker is away as a whole is to blame for nothing.
                late = line._replace(meaning=Meaning.ABORT)
                topics = _named(codes, lambda code: code != errors.LOST)
                raise Ended(late, topics, "produce: not in time")
            if line.meaning is Meaning.MOVED:
                await self._brokers.refresh({topic for topic, _ in codes})

    async def _attempt(self, batches: list[Batch], deadline: float) -> list[Batch]:
        """Send these to their leaders, in parallel; those that were not taken."""
        shares: defaultdict[int, list[Batch]] = defaultdict(list)
        for batch in batches:
            leader = self._brokers.leader_of(batch.where)
            if leader is not None:
                batch.code = errors.LOST
                shares[leader].append(batch)
            else:
                known = self._brokers.partitions_of(batch.where[0])
                batch.code = errors.NOBODY if known else errors.UNKNOWN_TOPIC
        sends = [self._to_leader(node, share, deadline) for node, share in shares.items()]
        if len(sends) == 1:
            await sends[0]
        else:
            await asyncio.gather(*sends)
        return _told([batch for batch in batches if batch.code != errors.NONE])

    async def _to_leader(self, node: int, batches: list[Batch], deadline: float) -> None:
        """Send a leader its share: the first batch of each partition, and then the others.

        A log that knows nothing of a producer takes any sequence.  So what follows a batch that was
        not taken must not be under way with it.
        """
        first: dict[Where, Batch] = {}
        for batch in batches:
            first.setdefault(batch.where, batch)
        await self._pipelined(node, list(first.values()), deadline)
        taken = {where for where, batch in first.items() if batch.code == errors.NONE}
        others = [each for each in batches if each.where in taken and each.code != errors.NONE]
        if others:
            await self._pipelined(node, others, deadline)

    async def _pipelined(self, node: int, batches: list[Batch], deadline: float) -> None:
        """Send these, a few requests at a time; connections keep their order."""
        requests = requests_of(batches)
        if len(requests) == 1:
            await self._produce(node, requests[0], deadline)
            return
        slots = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for some in requests:
                await slots.acquire()
                task = group.create_task(self._produce(node, some, deadline))
                task.add_done_callback(lambda _: slots.release())

    async def _produce(self, node: int, batches: list[Batch], deadline: float) -> None:
        kind = ProduceAdding if self._own_epochs else Produce
        left_ms = max(int((deadline - _now()) * 1000), 1)
        try:
            answer = await self._send(node, kind(self._name, left_ms, batches), deadline)
        except Lost:
            return
        by_place = {batch.where: batch for batch in batches}
        for topic, partition, code, offset, appended_ms in answer.answers:
            batch = by_place[topic, partition]
            batch.code, batch.offset, batch.appended_ms = code, offset, appended_ms

    def _note_sizes(self, batches: list[Batch]) -> None:
        """Remember which topics take smaller batches than they were sent."""
        for batch in self._too_small(batches):
            self.limits[batch.where[0]] = max(len(batch.data) // 2, 1)

    @staticmethod
    def _too_small(batches: list[Batch]) -> list[Batch]:
        """Batches that were refused for their size, and can be divided."""
        return [each for each in batches if each.code in errors.TOO_LARGE and each.records > 1]

    async def _send(self, node: int, request: Any, deadline: float) -> Any:
        """An answer within the deadline; a broker that asks for a rest is left alone so long."""
        rest_s = self._rests.pop(node, 0.0) - _now()
        if rest_s > 0:
            await asyncio.sleep(min(rest_s, max(deadline - _now(), 0.0)))
        try:
            answer = await asyncio.wait_for(
                self._brokers.send(node, request), max(deadline - _now(), _SOON_S)
            )
        except TimeoutError:
            raise Lost("no answer in time") from None
        if answer.throttle_time_ms > 0:
            self._rests[node] = _now() + answer.throttle_time_ms / 1000
        return answer


_SENT: Final = object()


class Pauses:
    """Growing pauses up to a deadline: short ones while a broker is busy, longer to look anew."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._busy_s, self._moved_s = _SOON_S, _LATER_S

    async def wait(self, meaning: Meaning) -> bool:
        """Wait; False, and at once, where the deadline has passed."""
        if _now() >= self._deadline:
            return False
        if meaning is Meaning.BUSY:
            pause_s, self._busy_s = self._busy_s, min(self._busy_s * 2, _LATER_S)
        else:
            pause_s, self._moved_s = self._moved_s, min(self._moved_s * 2, _LATEST_S)
        await asyncio.sleep(min(pause_s, max(self._deadline - _now(), 0.0)))
        return True


_WORST_FIRST: Final = (
    Meaning.FENCED, Meaning.UNKNOWN, Meaning.REFUSED, Meaning.ABORT, Meaning.MOVED, Meaning.BUSY,
)  # fmt: skip


def _judge(codes: Iterable[int], line_of: Callable[[int], Line]) -> Line:
    """The worst of these errors."""
    lines = {code: line_of(code) for code in set(codes)}
    for meaning in _WORST_FIRST:
        for line in lines.values():
            if line.meaning is meaning:
                return line
    return errors.TABLE[errors.NONE]


def _for_certain(line: Line) -> Line:
    """What remains of an error of a coordinator that was not mended in time: nobody knows."""
    if line.meaning in (Meaning.BUSY, Meaning.MOVED):
        return line._replace(meaning=Meaning.UNKNOWN)
    return line


def _told(batches: list[Batch]) -> list[Batch]:
    """The same; what came behind a batch that was not taken, or waited, says what that one said."""
    first: dict[Where, int] = {}
    for batch in batches:
        code = first.setdefault(batch.where, batch.code)
        if batch.code in _FOLLOWS:
            batch.code = code
    return batches


_FOLLOWS: Final = (45, errors.LOST)


def _codes_of(answer: Any) -> dict[Any, int]:
    """What each partition was told, but for those that were not added because of another one."""
    return {
        (topic, partition): code
        for topic, partitions, _ in answer.topics
        for partition, code, _ in partitions
        if code != errors.NOT_ATTEMPTED
    }


def _tell_gone(codes: dict[Any, int], began: float) -> None:
    """Raise Ended for topics that have not been there for a while."""
    if _now() - began >= GONE_S and errors.UNKNOWN_TOPIC in codes.values():
        gone = errors.TABLE[errors.UNKNOWN_TOPIC]._replace(meaning=Meaning.REFUSED)
        raise Ended(gone, _named(codes, lambda code: code == errors.UNKNOWN_TOPIC), "produce")


def _named(codes: dict[Any, int], counts: Callable[[int], bool]) -> dict[str, str]:
    return {
        where[0]: errors.sentence(code) for where, code in codes.items() if code and counts(code)
    }


def _refusals(codes: dict[Any, int], divisible: Iterable[Batch] = ()) -> dict[str, str]:
    """Topics that refused a record, with the reason; not those that take it in smaller batches."""
    spared = {batch.where for batch in divisible}
    kept = {where: code for where, code in codes.items() if where not in spared}
    return _named(kept, lambda code: errors.of_partition(code).meaning is Meaning.REFUSED)


def _now() -> float:
    return asyncio.get_running_loop().time()
