"""A trace that the real engine made: the records of each topic, for a test to damage and verify."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from belfry.engine.job_counts import Budget
from belfry.schedules.bulk import BulkSpec
from belfry.verification.coverage import Coverage
from belfry.verification.findings import Breached, CheckCounts, Spot
from belfry.verification.headers import fired_entry, identity_of
from belfry.verification.memory import FiredEntry, Memory, Remembered, Stands, ToldFire
from belfry.verification.outputs import OutputVerifier
from belfry.verification.overdue import OverdueSchedules, owed_until
from belfry.verification.partition import PartitionVerifier
from belfry.verification.rows import Logged
from belfry.verification.standing import Standing
from tests.unit.engine.driver import FIRED, HOUR, T0, Driver
from tests.unit.verification.moves_in_process import MovesInProcess

CHANGELOG: Final = Spot("belfry.changelog", 0, 0)
LIFECYCLE: Final = "belfry.lifecycle"
MINUTE: Final = 60_000


class Recording(Driver):
    """An engine whose transactions are kept as the topics have them."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.trace = Trace()
        self.now_ms = T0
        super().__init__(*given, **named)

    def end(self, now_ms: int, *, commit: bool = True) -> None:
        """Seal the step and commit it, or roll it back, which uses offsets up."""
        effects, before = self.engine._step.effects, len(self.changelog)
        super().end(now_ms, commit=commit)
        self.now_ms = now_ms
        if commit:
            self.trace.add(self.changelog[before:], effects, now_ms)
        else:
            self.trace.skip(3)


@dataclass
class Trace:
    """Records of a changelog partition, of outputs and of the lifecycle."""

    changelog: list[Logged] = field(default_factory=list)
    fired: list[FiredEntry] = field(default_factory=list)
    told: list[ToldFire] = field(default_factory=list)
    offset: int = 0
    # Offsets of ends of transactions, and of what was rolled back.
    void: set[int] = field(default_factory=set)

    def skip(self, offsets: int) -> None:
        """The end of a transaction, or one that was rolled back, takes so many offsets."""
        self.void.update(range(self.offset, self.offset + offsets))
        self.offset += offsets

    def is_void(self, start: int, end: int) -> bool:
        """Whether no row ever lay at these offsets, as the log itself tells."""
        return self.void.issuperset(range(start, end))

    def add(self, rows: list[tuple[bytes, bytes | None]], effects: Any, now_ms: int) -> None:
        """A transaction; its end marker takes an offset in the changelog."""
        for key, value in rows:
            self.changelog.append(Logged(self.offset, now_ms, key, value))
            self.offset += 1
        self.skip(1)
        self.came_out(effects, now_ms)
        for event in effects.lifecycle:
            if event.fire_id is not None and event.outcome == "FIRED":
                self.add_told(event.fire_id, event.schedule_id, now_ms)

    def came_out(self, effects: Any, now_ms: int) -> None:
        """Events of a step in the outputs."""
        for topic, key, _, _, headers in effects.fired:
            spot = Spot(topic, len(key) % 2, len(self.fired))
            given = dict(headers)
            instant = datetime.fromisoformat(given["belfry-scheduled-at"].decode())
            entry = fired_entry(given, spot, now_ms, round(instant.timestamp() * 1000))
            assert entry is not None
            self.fired.append(entry)

    def add_told(self, fire_id: str, schedule_id: str, now_ms: int) -> None:
        """A lifecycle event of a fire."""
        identity = identity_of(fire_id)
        assert identity is not None
        spot = Spot(LIFECYCLE, 0, len(self.told))
        self.told.append(ToldFire(identity, schedule_id.encode(), spot, now_ms))


class MemoryInProcess:
    """A memory of dictionaries."""

    def __init__(self) -> None:
        self._schedules: dict[tuple[int, int], Remembered] = {}
        self._overdue_told: set[tuple[int, int]] = set()
        self._locks: dict[tuple[int, int], list[int]] = {}
        self._fires: dict[bytes, tuple[FiredEntry, int]] = {}
        self._settled: set[bytes] = set()
        self._lost: set[bytes] = set()
        self._told: dict[bytes, tuple[ToldFire, int]] = {}
        self._once: dict[str, tuple[Spot, int]] = {}
        self.moves = MovesInProcess()

    def schedule(self, partition: int, name: int) -> Remembered | None:
        return self._schedules.get((partition, name))

    def schedules(self, name: int) -> list[Remembered]:
        return [known for (_, each), known in self._schedules.items() if each == name]

    def put(self, partition: int, name: int, known: Remembered | None) -> None:
        self._overdue_told.discard((partition, name))
        if known is None:
            self._schedules.pop((partition, name), None)
        else:
            self._schedules[partition, name] = known

    def overdue(self, partition: int, until_ms: int) -> Iterable[tuple[int, Remembered]]:
        found = [
            (name, known)
            for (of, name), known in self._schedules.items()
            if of == partition
            and known.stands is Stands.WAITS
            and known.expected_ms <= until_ms
            and (of, name) not in self._overdue_told
        ]
        return sorted(found, key=lambda each: (each[1].expected_ms, each[1].offset))

    def waiting(self, partition: int) -> Iterable[tuple[str, int, int]]:
        by_tenant: dict[str, list[int]] = {}
        for (of, _), known in self._schedules.items():
            if of == partition and known.stands in (Stands.WAITS, Stands.PAUSED):
                by_tenant.setdefault(known.tenant, []).append(known.offset)
        return [(tenant, len(found), min(found)) for tenant, found in by_tenant.items()]

    def tell(self, partition: int, names: Iterable[int]) -> None:
        self._overdue_told.update((partition, name) for name in names)

    def lock(self, partition: int, fire: int, locks: Iterable[int]) -> None:
        self._locks[partition, fire] = [*locks]

    def is_locked(self, partition: int, lock: int) -> bool:
        return any(of == partition and lock in held for (of, _), held in self._locks.items())

    def add_fire(self, fire: FiredEntry, at_round: int) -> FiredEntry | None:
        known = self._fires.setdefault(fire.identity, (fire, at_round))[0]
        return None if known.spot == fire.spot else known

    def fire(self, identity: bytes) -> FiredEntry | None:
        found = self._fires.get(identity)
        return None if found is None else found[0]

    def fires(self, schedule_id: bytes, first: int, last: int) -> list[FiredEntry]:
        found = [
            fire
            for fire, _ in self._fires.values()
            if fire.schedule_id == schedule_id
            and first <= fire.occurrence <= last
            and fire.identity not in self._settled
        ]
        return sorted(found, key=lambda fire: (fire.occurrence, fire.spot))

    def extras(self, since_ms: int, until_ms: int) -> Iterable[FiredEntry]:
        found = [
            fire
            for fire, _ in self._fires.values()
            if fire.occurrence == -1
            and since_ms <= fire.timestamp_ms <= until_ms
            and fire.identity not in self._settled
        ]
        return sorted(found, key=lambda fire: (fire.timestamp_ms, fire.identity))

    def settle(self, identities: Iterable[bytes]) -> None:
        self._settled.update(identities)

    def lose(self, identity: bytes) -> None:
        self._lost.add(identity)

    def is_lost(self, identity: bytes) -> bool:
        return identity in self._lost

    def unsettled(self, before_round: int) -> list[FiredEntry]:
        return [
            fire
            for identity, (fire, came) in self._fires.items()
            if came < before_round and identity not in self._settled
        ]

    def add_told(self, told: ToldFire, at_round: int) -> ToldFire | None:
        known = self._told.setdefault(told.identity, (told, at_round))[0]
        return None if known.spot == told.spot else known

    def told_without_fire(self, before_round: int) -> list[ToldFire]:
        return [
            told
            for identity, (told, came) in self._told.items()
            if came < before_round and identity not in self._fires
        ]

    def forget_told(self, identities: Iterable[bytes]) -> None:
        for identity in identities:
            self._told.pop(identity, None)

    def add_once(self, what: str, spot: Spot, timestamp_ms: int) -> tuple[Spot, int] | None:
        known = self._once.setdefault(what, (spot, timestamp_ms))
        return None if known[0] == spot else known


@dataclass
class Verification:
    """One verifier and what it remembers, for one round after the other."""

    memory: Memory = field(default_factory=MemoryInProcess)
    counts: CheckCounts = field(default_factory=CheckCounts)
    standing: Standing = field(default_factory=Standing)
    floors: dict[str, int] = field(default_factory=lambda: {FIRED + "demo": -1})
    tenants_that_repeat: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    overdue_findings: list[Breached] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen = 0, 0
        self.outputs = OutputVerifier(self.memory, self.counts)
        self.partition = PartitionVerifier(CHANGELOG, self.memory, self.counts, self.standing)

    def round(self, trace: Trace, *, final: bool = True, pair_holds: bool = False) -> bool:
        """Read what is new; whether all of it could be checked."""
        coverage = self.coverage
        self.partition.wholeness.is_void = trace.is_void
        self.outputs.begin(coverage)
        self.partition.begin(coverage, pair_holds=pair_holds)
        for fire in trace.fired[self.seen[0] :]:
            self.outputs.fired(fire)
        for told in trace.told[self.seen[1] :]:
            self.outputs.told(told)
        self.seen = len(trace.fired), len(trace.told)
        since = self.standing.next_offset
        self.partition.feed([each for each in trace.changelog if each.offset >= since])
        done = self.partition.go_on(final=final)
        self.partition.end()
        self.outputs.end(self.standing.blind_until_ms, self.outputs.round - 1)
        self.look_for_overdue()
        return done

    @property
    def coverage(self) -> Coverage:
        """What of the outputs there is to see."""
        return Coverage(FIRED, self.floors, {}, self.tenants_that_repeat, self.held)

    def look_for_overdue(self) -> None:
        """Look for what should have fired a minute before the end of the log."""
        judge = OverdueSchedules(self.memory, self.counts)
        until_ms = owed_until([self.standing], MINUTE)
        suspects = judge.suspects([CHANGELOG.partition], until_ms, self.coverage)
        suspects = judge.still(suspects, self.coverage)
        self.overdue_findings += judge.tell(CHANGELOG.topic, suspects)

    @property
    def findings(self) -> list[Breached]:
        """All that was found."""
        return self.partition.findings + self.outputs.findings + self.overdue_findings


def verified(trace: Trace, **given: Any) -> Verification:
    """A verification of two rounds: what came in the first has settled in the second."""
    made = Verification(**given)
    made.round(trace)
    made.round(trace)
    return made


def varied(**treated: Any) -> Trace:
    """Most of what schedules do, in some sixty transactions."""
    made = Recording()
    made.apply(**treated)
    for number in range(6):
        made.ask(schedule_id=f"s{number}", at=T0 + 150 * number)
    for name in ("gone", "later", "waits", "kept"):
        made.ask(schedule_id=name, at=T0 + HOUR)
    made.ask(schedule_id="each", kind="EVERY", interval_ms=1_000)
    made.ask(schedule_id="few", kind="EVERY", interval_ms=500, max_fires=3)
    for policy in ("FIRE_ALL", "FIRE_ONCE", "SKIP"):
        made.ask(schedule_id=policy, kind="EVERY", interval_ms=MINUTE, misfire=policy)
    for number in range(20):
        made.step(T0 + 100 * number)
    made.ask(schedule_id="gone", action="CANCEL")
    made.ask(schedule_id="later", at=T0 + 2 * HOUR)
    made.ask(schedule_id="waits", action="PAUSE")
    made.ask(schedule_id="later", action="TRIGGER")
    made.ask(schedule_id="waits", action="TRIGGER")
    made.ask(schedule_id="each", kind="EVERY", interval_ms=1_000, payload=b"new")
    made.step(T0 + 2_000)
    made.ask(schedule_id="each", action="CANCEL")
    made.ask(schedule_id="again", at=T0 + 3_000)
    made.step(T0 + 2_500)
    made.ask(schedule_id="again", at=T0 + 4_000)
    made.step(T0 + 3_000)
    made.step(T0 + 3_000, commit=False)
    made.step(T0 + 3_000)
    for number in range(1, 31):
        made.run(T0 + number * MINUTE)
    made.run(T0 + 45 * MINUTE)
    made.ask(schedule_id="once", action="CREATE", at=T0 + 46 * MINUTE)
    made.ask(schedule_id="once", action="TRIGGER")
    made.ask(schedule_id="once", action="CANCEL")
    made.step(T0 + 45 * MINUTE)
    ask_for_jobs(made)
    return made.trace


def ask_for_jobs(made: Recording) -> None:
    """A backfill in several steps, the first of which does all else as well; then a TRIGGER."""
    now_ms = T0 + 45 * MINUTE
    past: dict[str, Any] = {
        "range_from": T0 + 10 * MINUTE,
        "range_until": T0 + 20 * MINUTE,
        "prefix": "FIRE_",
    }
    ask_for_job(made, "past", "BACKFILL", **past)
    made.step(now_ms)
    made.ask(schedule_id="SKIP", action="TRIGGER")
    now_ms += MINUTE
    made.engine.fire_due(now_ms, 1_000)
    made.engine.accept(made.batch(), now_ms)
    work(made, now_ms, 7)
    while made.engine.jobs.under_way:
        now_ms += 1_000
        work(made, now_ms, 7)
    ask_for_job(made, "now", "TRIGGER", prefix="FIRE_")
    made.step(now_ms)
    work(made, now_ms + 1_000, 1)
    work(made, now_ms + 2_000, 100)
    assert not made.engine.jobs.under_way


def ask_for_job(made: Recording, job: str, action: str, tenant: str = "demo", **said: Any) -> None:
    """Put the request of a bulk job at the end of the source."""
    spec = BulkSpec(action=action, per_second=10_000, **said).text()
    made.ask(made.now_ms, tenant=tenant, action="BULK", schedule_id=job, bulk=spec)


def work(made: Recording, now_ms: int, changes: int) -> None:
    """Go on with bulk jobs, and end the step."""
    made.engine.advance_jobs(now_ms, Budget(100, changes))
    made.end(now_ms)
