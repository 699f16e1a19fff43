"""Reads over HTTP, while partitions change hands: none is stale, or the answer is "not yet" (I42).

    begun      what has been decided by then shows: a client may have been told of it
    answered   nothing shows that had not been decided
    own write  who has written a request and reads at once sees what became of it

A worker's own code looks into its store, waits for its commit, and proves by its lease that nobody
had taken the partition over (`api/workers/reading.py`).  A worker that does not hold the partition
says so, and another one is asked, as a worker would ask it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from belfry.api.problems import Problem
from belfry.api.workers import holdings, reading
from belfry.api.workers.holdings import Holdings, NotHeld
from belfry.api.workers.places import ReadPlace
from belfry.api.workers.reading import TIMEOUT_S, Reads
from belfry.store.lookup import Moving, standing_of
from tests.simulation import disk, primitives
from tests.simulation.broker import Txn
from tests.simulation.direct import StageLoop
from tests.simulation.murmur import partition_of
from tests.simulation.sent import SOURCE, Sent
from tests.simulation.stage import Host, here
from tests.simulation.stores import CHANGELOG, bare

if TYPE_CHECKING:
    from tests.simulation.trail import Step
    from tests.simulation.worker import SimWorker
    from tests.simulation.world import World

# A worker looks less often whether it may answer: each look is a turn of the stage.
LOOK_S: Final = 0.015
LONGEST_S: Final = 4.0
DOORS: Final[list[tuple[Any, str, Any]]] = [
    (holdings, "RocksMap", disk.SimRocks),
    (reading, "monotonic", primitives.monotonic),
    (reading, "LOOK_S", LOOK_S),
]
# How often a client that is told "not yet" asks again.
TRIES: Final = 6
NOT_YET: Final = "not yet"
NOT_HERE: Final = "not here"
NO_ANSWER: Final = "no answer"


@dataclass(slots=True)
class Read:
    """One answer: how many transactions had been decided before and after, and the row shown."""

    name: bytes
    partition: int
    after: int
    begun: int
    answered: int = 0
    row: bytes | None = None


@dataclass(slots=True)
class ReadingBack:
    """Clients that read what they, or others, have written."""

    world: World
    random: Random
    host: Host = field(default_factory=lambda: Host("readers"))
    reads: list[Read] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """A client reads a schedule: its own, just written, or another one."""
        sent = [each for each in self.world.load.sent if _is_plain(each)]
        if sent:
            own = self.random.random() < 0.5
            which = sent[-1] if own else self.random.choice(sent)
            partition = partition_of(which.tenant.encode(), self.world.scenario.partitions)
            after = which.offset if own and not which.stray else -1
            name = f"{which.tenant}/{which.schedule_id}".encode()
            read = Read(name, partition, after, 0)
            self.world.stage.spawn("reader", lambda: self._read(read), self.host)

    def _read(self, read: Read) -> None:
        for _ in range(TRIES):
            read.begun = self.world.broker.decided
            workers = list(self.world.workers)
            self.random.shuffle(workers)
            for worker in workers:
                said = self._asked(worker, read)
                if isinstance(said, list):
                    read.answered, read.row = self.world.broker.decided, said[0]
                    self.reads.append(read)
                    self.struck.append("read after a write" if read.after >= 0 else "read")
                    return
                self.struck.append(f"read {said}")
                if said is not NOT_HERE:
                    break
            here().sleep(self.random.choice((20.0, 300.0)))

    def _asked(self, worker: SimWorker, read: Read) -> list[bytes | None] | str:
        """A row in a list, or why there is none."""
        machine, said, answered = worker.machine, list[Any](), primitives.SimEvent()
        if worker.owners is None or not worker.alive or machine.cut:
            return NO_ANSWER

        def serve() -> None:
            said.append(_served(worker, read, self.world.broker.now_ms()))
            answered.set()

        self.world.stage.spawn(f"{machine.name} http", serve, machine)
        answered.wait(LONGEST_S)
        return said[0] if said and not machine.cut else NO_ANSWER


def _is_plain(sent: Sent) -> bool:
    return bool(sent.schedule_id) and sent.topic == SOURCE and not sent.poison


def _served(worker: SimWorker, read: Read, now_ms: int) -> list[bytes | None] | str:
    """What a worker answers to one call."""
    assert worker.owners is not None
    unused: Any = None
    held = Holdings(worker.owners, unused, 1)
    parts: Any = SimpleNamespace(ready=SimpleNamespace(holdings=held))
    reads, loop = Reads(parts), StageLoop()

    async def look(partition: int) -> Any:
        return [held.read(partition, lambda rows: _row(rows, read.name, now_ms))]

    place = ReadPlace(read.partition, read.after, None, handed_on=False)
    try:
        deadline = primitives.monotonic() + TIMEOUT_S
        found: Any = loop.run_until_complete(reads._here(place, look, deadline))
    except NotHeld:
        return NOT_HERE
    except (Problem, Moving):
        return NOT_YET
    finally:
        loop.close()
    return found  # type: ignore[no-any-return]


def _row(rows: Any, name: bytes, now_ms: int) -> bytes | None:
    """A waiting record, or what is left of one that is over, as the changelog has it."""
    found = standing_of(rows, name, now_ms)
    if found is not None and found.record:
        return found.record
    left: bytes | None = rows.get(b"k" + name)
    return left


def check_read(world: World, partitions: list[list[Step]]) -> Iterator[str]:
    """Answers that were stale, or ahead of what had been decided."""
    if world.reading is None:
        return
    for read in world.reading.reads:
        since = read.begun
        if read.after >= 0:
            taken = (each for each in partitions[read.partition] if _passes(each, read.after))
            since = max(since, next((each.txn.number for each in taken), 1 << 62))
        if since > read.answered:
            yield f"I42 {read.name!r} was answered before offset {read.after} was taken in"
            continue
        shown = _states(world, read.name, read.partition, since, read.answered)
        if read.row not in shown:
            which = f"{(read.row or b'')[:40]!r}, and not one of {len(shown)}"
            yield f"I42 {read.name!r} was read as {which} between {since} and {read.answered}"


def _passes(step: Step, offset: int) -> bool:
    return step.manifest is not None and step.manifest.position > offset


def _states(
    world: World, name: bytes, partition: int, since: int, until: int
) -> list[bytes | None]:
    """What a schedule was from one decided transaction up to another."""
    found: list[bytes | None] = [None]
    for entry in world.broker.topics[CHANGELOG][partition].history:
        txn: Txn | None = entry.txn
        if entry.key != name or not entry.committed or txn is None:
            continue
        value = None if entry.value is None else bare(entry.value)
        if txn.number <= since:
            found = [value]
        elif txn.number <= until:
            found.append(value)
    return found
