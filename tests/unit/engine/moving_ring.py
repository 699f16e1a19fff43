"""All partitions of one belfry, with what they send one another, and owners that are killed.

Each step is one transaction: its rows, what it sends and its position are there together or not at
all.  `kill` throws an engine and its store away, and its successor reads the changelog.
"""

from __future__ import annotations

from typing import Any, Final

from belfry.engine.effects import MoveEnd
from belfry.engine.giving import move_record
from belfry.engine.job_counts import Budget
from belfry.engine.rejected_record import RejectedRecord
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from belfry.wire.accepted import whole
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.moves import MOVE, MoveRecord
from tests.unit.engine.driver import T0, Driver, Shot

PARTITIONS: Final = 3
PLENTY: Final = Budget(1_000, 1_000)
# What the workers sign with.
KEYS: Final = (b"a secret of this ring",)


class MovingRing:
    """Partitions whose groups may move; what came out of them lies in `shots` and `told`."""

    def __init__(self, level: Level = Level.ALL, *, moves: bool = True) -> None:
        """On a quieter level than ALL and OUTCOMES requests may take the fast path."""
        self.drivers = [
            Driver(level, partition=each, partitions=PARTITIONS) for each in range(PARTITIONS)
        ]
        self.shots: list[Shot] = []
        self.told: list[LifecycleEvent] = []
        self.refused: list[str] = []
        self.rejected: list[RejectedRecord] = []
        self.ends: list[MoveEnd] = []
        self.now_ms = T0
        for driver in self.drivers:
            driver.options = driver.options._replace(moves=moves)
            driver.place = driver.place._replace(origin_keys=KEYS)
            driver.start(MemoryMap())

    # -- what comes in ---------------------------------------------------------------------------

    def home(self, tenant: str) -> int:
        return self.drivers[0].place.homes.of(tenant)

    def group(self, tenant: str) -> int:
        return self.drivers[0].engine._parts.groups.of(tenant)

    def follow(self, policy: TenantPolicy) -> None:
        for driver in self.drivers:
            driver.tenants.follow(EffectivePolicy(policy))

    def ask(self, tenant: str, arrives: int | None = None, **fields: Any) -> None:
        """A request of a tenant, at its home unless it comes in elsewhere."""
        at = self.home(tenant) if arrives is None else arrives
        self.drivers[at].ask(self.now_ms, tenant=tenant, **fields)

    def move(self, tenant: str, target: int) -> None:
        """Ask for the group of a tenant to be moved."""
        self.sign(self.home(tenant), MoveRecord(MOVE, self.group(tenant), target))

    def sign(self, partition: int, record: MoveRecord) -> None:
        """Send a record of a move to a partition, as a worker does."""
        sent = move_record(self.drivers[0].place, partition, record, self.now_ms)
        self.drivers[partition].send(sent.value, sent.key, sent.headers, self.now_ms)

    # -- steps -----------------------------------------------------------------------------------

    def step(self, partition: int, take: int | None = None, *, commit: bool = True) -> bool:
        """One step of a partition; whether it did anything."""
        driver = self.drivers[partition]
        engine = driver.engine
        effects = engine.fire_due(self.now_ms, 100)
        batch = driver.batch(take)
        if batch.records:
            effects = engine.accept(batch, self.now_ms)
        if engine.jobs.under_way:
            effects = engine.advance_jobs(self.now_ms, PLENTY)
        if effects.empty:
            return False
        driver.end(self.now_ms, commit=commit)
        if commit:
            self.shots += [Shot(*fired) for fired in effects.fired]
            self.ends += effects.move_ends
            self.told += [whole(each) for each in effects.lifecycle if each.outcome != "FIRED"]
            self.rejected += effects.rejected
            self.refused += [
                (value or b"").decode()
                for each in effects.rejected
                for name, value in each.headers
                if name == "belfry-error-code"
            ]
            for sent in effects.rerouted:
                to = self.drivers[sent.partition]
                to.send(sent.value, sent.key, sent.headers, self.now_ms)
        return True

    def sweep(self, partition: int) -> None:
        self.drivers[partition].sweep(self.now_ms)

    def kill(self, partition: int) -> None:
        """Another worker takes the partition over, without its store."""
        driver = self.drivers[partition]
        rows = MemoryMap()
        if driver.changelog:
            replay = Replay(ScheduleStore(rows))
            replay.apply(driver.changelog, range(len(driver.changelog)), self.now_ms)
            replay.finish(self.now_ms)
        driver.start(rows)

    def settle(self) -> None:
        """Steps until nobody has anything to do."""
        for _ in range(2_000):
            worked = [self.step(each) for each in range(len(self.drivers))]
            if not any(worked):
                return
        raise AssertionError("the partitions do not come to rest")

    # -- what is seen ----------------------------------------------------------------------------

    def outcomes(self) -> list[str]:
        return [f"{each.outcome} {each.schedule_id}" for each in self.told]

    def pending(self) -> list[int]:
        return [driver.engine.pending for driver in self.drivers]

    def at_rest(self) -> bool:
        """Whether no group is on its way, and no request waits for one."""
        groups = [driver.engine._parts.groups for driver in self.drivers]
        return not any(
            each.held or any(r.to < 2**32 - 1 for r in each.lies.values()) for each in groups
        )
