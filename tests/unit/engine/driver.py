"""Drives one partition's engine as the shell does: steps in, a changelog and fired records out.

    driver = Driver()
    driver.send(request(schedule_id="a", at=T0 + 5))     one record onto the source
    step = driver.step(T0)                               fire, take the source in, commit
    step.outcomes                                        ["ACCEPTED"]

`step(..., commit=False)` rolls back; the source is then read again from the engine's position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from belfry.engine.effects import Effects
from belfry.engine.options import EngineOptions
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.schedules.identity import Homes
from belfry.store.buckets import differing
from belfry.store.ends import EndsOfStep
from belfry.store.layout import keys
from belfry.store.layout.ends import decode_ends, kept_since_ms
from belfry.store.layout.locations import IN_BACKLOG, IN_CATCH_UP, QUEUES, is_location
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.wire import catalogue, framing
from belfry.wire.batch import SourceBatch
from belfry.wire.record import Headers, SourceRecord
from belfry.wire.requests import RequestReader

T0: Final = 1_800_000_000_000  # 2027-01-15T08:00:00Z, on a minute's edge
HOUR: Final = 3_600_000
TOPIC: Final = "belfry.schedules"
FIRED: Final = "belfry.fired."


def request(**fields: Any) -> bytes:
    """Value of a record that holds this request; tenant `demo`, id `a` unless given."""
    record = {"tenant": "demo", "schedule_id": "a", **fields}
    return framing.single_object("ScheduleRequest") + catalogue.encode("ScheduleRequest", record)


class Shot(NamedTuple):
    """A fired record, easier to compare."""

    topic: str
    key: bytes
    group: bytes | None
    value: bytes | None
    headers: Headers

    def header(self, name: str) -> bytes | None:
        """Value of the last header of this name."""
        return dict(self.headers)[name]

    @property
    def id(self) -> str:
        """The schedule's id."""
        return (self.header("belfry-schedule-id") or b"").decode()


class Step(NamedTuple):
    """What a step did, and how many records of the source it took in."""

    effects: Effects
    taken: int = 0

    @property
    def shots(self) -> list[Shot]:
        """Fired records, in their order."""
        return [Shot(*fired) for fired in self.effects.fired]

    @property
    def ids(self) -> list[str]:
        """Ids of the schedules that fired, in their order."""
        return [shot.id for shot in self.shots]

    @property
    def outcomes(self) -> list[str]:
        """Outcomes of requests in their order; at level ALL nothing is left out."""
        return [str(each.outcome) for each in self.effects.lifecycle if each.outcome != "FIRED"]

    @property
    def codes(self) -> list[str]:
        """Codes of refused records, in their order."""
        return [
            (value or b"").decode()
            for refused in self.effects.rejected
            for name, value in refused.headers
            if name == "belfry-error-code"
        ]


def counted(engine: PartitionEngine) -> tuple[object, ...]:
    """What an engine knows of where schedules wait, besides what its store says.

    Of some of it the order counts: it is that of the tenants' turns.
    """
    waiting, groups = engine._parts.waiting, engine._parts.after_acks._groups
    locks: Any = waiting.locks
    found = [locks._locked, locks._room._places, locks.tenants, locks._fires]
    found += [waiting.dependents.locks, waiting.dependents.fresh_groups]
    found += [groups._walks, groups._now]
    return engine.unsaid, *(each.copy() for each in found)


class Watched(MemoryMap):
    """The same rows, with a count of those that are read by scans."""

    def __init__(self, rows: MemoryMap) -> None:
        super().__init__()
        self.write(dict(rows.scan(b"", b"\xff")))
        self.read = 0

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from `start` up to `end`, counted as they are read."""
        for row in super().scan(start, end):
            self.read += 1
            yield row


def check_lines(rows: MemoryMap) -> None:
    """Sizes of queues and buckets that a store keeps are what a look at all of its rows gives."""
    lying = rows.scan(keys.BACKLOG_PREFIX, keys.CATCH_UP_END)
    counts = Counter(keys.queue_of(key) for key, _ in lying)
    unwatched = MemoryMap()
    vars(unwatched).update(_values=rows._values, _keys=rows._keys)
    assert list(differing(unwatched)) == []
    check_ends(unwatched)
    store = ScheduleStore(rows)
    for queue in (IN_BACKLOG, IN_CATCH_UP):
        lines = _of_line(counts, QUEUES[queue])
        assert store.queue_sizes(queue) == {of: size for (of, level), size in lines if not level}
        assert store.level_sizes(queue) == {line: size for line, size in lines if line[1]}


def check_ends(rows: MemoryMap) -> None:
    """A store whose ends are complete leads to each row that is kept for a time."""
    state = ScheduleStore(rows).state()
    if state is None or not EndsOfStep(rows).are_whole(state.changelog_offset):
        return
    led = {name for _, row in rows.scan(b"e", b"f") for name in decode_ends(row).names}
    kept = {key[1:] for key, row in rows.scan(b"k", b"l") if kept_since_ms(row) is not None}
    assert kept <= led, f"nothing leads to {sorted(kept - led)[:5]}"


def _of_line(counts: Counter[bytes], letter: bytes) -> list[tuple[tuple[bytes, bytes], int]]:
    return [(keys.level_of(line[1:]), n) for line, n in counts.items() if line[:1] == letter]


class Driver:
    """One engine on a map in memory, its source, and the changelog of what was committed."""

    def __init__(
        self,
        level: Level = Level.ALL,
        delivery: Delivery = Delivery.PAYLOAD,
        partition: int = 0,
        partitions: int = 1,
        metering_ms: int = 0,
        *,
        traces: bool = False,
    ) -> None:
        self.options = EngineOptions(metering_ms=metering_ms, traces=traces)
        self.place = SourcePartition(TOPIC, partition, Homes(partitions))
        self.tenants = Tenants(FIRED, delivery, level)
        self.source: list[SourceRecord] = []
        self.changelog: list[tuple[bytes, bytes | None]] = []
        self.rows = MemoryMap()
        self.owner_epoch = 1
        self.engine = self.start(self.rows)

    def start(self, rows: MemoryMap) -> PartitionEngine:
        """An engine on these rows, as a new owner starts it."""
        self.rows = rows
        self.engine = PartitionEngine(
            self.place,
            ScheduleStore(rows),
            RequestReader(),
            self.tenants,
            self.options,
        )
        self.counted = counted(self.engine)
        return self.engine

    def apply(self, tenant: str = "demo", **changes: Any) -> None:
        """Let a tenant's policy change."""
        effective = self.tenants.of(tenant).effective
        self.tenants.follow(effective._replace(policy=replace(effective.policy, **changes)))

    def note(self, tenant: str = "demo", **found: Any) -> None:
        """Note what a shell finds out about a tenant."""
        given: Any = found
        self.tenants.note([(self.tenants.of(tenant), given)])

    def send(
        self,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        timestamp_ms: int = T0,
    ) -> int:
        """Put a record at the end of the source; its offset."""
        self.source.append((len(self.source), timestamp_ms, key, value, headers))
        return len(self.source) - 1

    def ask(self, timestamp_ms: int = T0, **fields: Any) -> int:
        """Put a request at the end of the source; its offset."""
        return self.send(request(**fields), timestamp_ms=timestamp_ms)

    def step(
        self,
        now_ms: int,
        at_most: int = 1_000,
        *,
        fire: bool = True,
        take: int | None = None,
        commit: bool = True,
    ) -> Step:
        """Fire, take in at most `take` records of the source, then commit or roll back."""
        engine = self.engine
        effects = engine.fire_due(now_ms, at_most) if fire else None
        batch = self.batch(take)
        if batch.records or effects is None:
            effects = engine.accept(batch, now_ms)
        if not effects.empty:
            self.end(now_ms, commit=commit)
        return Step(effects, len(batch.records))

    def batch(self, take: int | None = None) -> SourceBatch:
        """The next records of the source."""
        start = self.engine.position
        end = len(self.source) if take is None else min(start + take, len(self.source))
        return SourceBatch(start, end, self.source[start:end])

    def end(self, now_ms: int, *, commit: bool = True) -> None:
        """Seal the step and commit it, or roll it back, which leaves all as it was counted."""
        self.engine.seal(self.owner_epoch)
        if not commit:
            self.engine.aborted()
            assert counted(self.engine) == self.counted
            return
        self.changelog += self.engine.claim(None).rows.items()
        self.engine.committed(len(self.changelog), now_ms)
        self.counted = counted(self.engine)
        check_lines(self.rows)
        self.check_queues()
        self.check_tenants()

    def check_queues(self) -> None:
        """The engine counts in each queue what its store has there."""
        waiting, store = self.engine._parts.waiting, ScheduleStore(self.rows)
        for queue, counts in ((IN_BACKLOG, waiting.backlog), (IN_CATCH_UP, waiting.catch_up)):
            held = Counter(store.queue_sizes(queue))
            for (tenant, _), size in store.level_sizes(queue).items():
                held[tenant] += size
            assert dict(counts) == dict(held)
            of_levels = {
                (tenant, level): size
                for (of, tenant), sizes in waiting.levels._sizes.items()
                for level, size in sizes.items()
                if of == queue
            }
            assert of_levels == store.level_sizes(queue)

    def check_tenants(self) -> None:
        """What is told to be pending of each tenant is what a look at all rows gives."""
        rows = MemoryMap.scan(self.rows, keys.NAMED_PREFIX, keys.NAMED_END)
        waits = [keys.tenant_of(keys.name_in(key)) for key, row in rows if is_location(row)]
        figures = self.engine.tenants()
        told = {name: each.pending for name, each in figures.items() if each.pending}
        assert told == Counter(waits)

    def sweep(self, now_ms: int, at_most: int = 1_000, *, commit: bool = True) -> Effects:
        """A step that only sweeps."""
        effects = self.engine.sweep(now_ms, at_most)
        if not effects.empty:
            self.end(now_ms, commit=commit)
        return effects

    def run(self, now_ms: int, at_most: int = 1_000) -> list[str]:
        """Step until nothing more is due; ids in the order of their fires."""
        fired: list[str] = []
        while (due_ms := self.engine.next_due_ms()) is not None and due_ms <= now_ms:
            fired += self.step(now_ms, at_most, take=0).ids
        return fired
