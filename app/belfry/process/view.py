"""The state of this worker, for HTTP.

Health, metrics and the cluster's pages only ask a `View` about the worker. The view exists from the
first second, so the port can answer before anything runs, and it is filled when the worker has come
up:

    made ─► the port answers "the worker starts" ─► `show(running)` ─► answers of owners and group

Its methods are called by the port's threads while partitions work. They read values that the
partitions' threads replace as a whole, and never wait for a partition.

A worker is *live* unless only a new process would help, *ready* when all of its assigned partitions
fire, and *started* once the group has answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from belfry.api.workers.view import PartitionView, Posting, Readiness, StandbyView, WorkerIdentity
from belfry.balance.assignment_map import AssignmentMap
from belfry.balance.take_overs import TakeOverEntry
from belfry.engine.groups import GroupFigures
from belfry.engine.ownership import Ownership
from belfry.engine.partition import PartitionEngine
from belfry.engine.tenant_figures import TenantFigures
from belfry.firing.clock_guard import ClockGuard
from belfry.group.group import Group
from belfry.host.clock import SystemClock
from belfry.partitions.owner import PartitionRunner
from belfry.partitions.supervisor import Owners
from belfry.process.concerns import Concerns, stale_sentence
from belfry.process.worker import WorkerProcess
from belfry.telemetry.metrics import Metrics
from belfry.telemetry.tenant_metrics import TenantLook
from belfry.tenants.canary import CANARY

# States in which a changelog is still to be read.
CATCHING_UP = Ownership.CATCHING_UP
REPLAYING = Ownership.REPLAYING
# The longest age of a look at all tenants, in ms.
LOOK_AGAIN_MS: Final = 500.0
NOT_BEGUN: Final = "it was assigned, and its take-over has not begun yet"


class Running(NamedTuple):
    """The parts of a worker that has come up; a look reads from them.

    `owners` has its partitions, `guard` judges its clock, `group` is its membership, and `process`
    has its threads and its self-check.
    """

    owners: Owners
    guard: ClockGuard
    group: Group
    process: WorkerProcess
    concerns: Concerns


class View:
    """A worker's state; it exists from the first second, and is filled as the worker comes up.

    `identity` has the worker's names, and `metrics` are the gauges that a scrape brings up to date.
    """

    def __init__(self, identity: WorkerIdentity, clock: SystemClock, metrics: Metrics) -> None:
        self.identity = identity
        self._running: Running | None = None
        self._clock = clock
        self._metrics = metrics
        self._look = TenantLook()
        self._looked_ms: float | None = None
        self._awaits = ""

    def awaits(self, what: str) -> None:
        """Note what the start of this worker waits for, as a clause; empty for nothing."""
        self._awaits = what

    def show(self, running: Running) -> None:
        """Show a worker that has come up. It is called once, on the worker's event loop."""
        self._running = running

    def live(self) -> bool:
        """Whether it is live: failed partitions start over by themselves, stuck threads do not."""
        return self._running is None or self._running.process.live()

    def assignment_map(self) -> AssignmentMap:
        """The owners of all partitions, as the group named them last."""
        return AssignmentMap() if self._running is None else self._running.group.assignment_map

    def standbys(self) -> list[StandbyView]:
        """The partitions that this worker stands by for, each with the records left to read."""
        found = [] if self._running is None else self._running.owners.standbys()
        return [
            StandbyView(s.partition, s.warm, s.reading.end - s.reading.position, s.problem)
            for s in found
        ]

    def take_overs(self) -> Sequence[TakeOverEntry]:
        """The last partitions that this worker took over, the latest last."""
        return () if self._running is None else self._running.group.take_overs.latest()

    def posting(self) -> Posting:
        """Whether this worker posts to hosts of webhooks, and which of them do not answer."""
        return Posting() if self._running is None else self._running.concerns.posting()

    def readiness(self) -> Readiness:
        """Whether every owned partition fires, and the problems of those that do not.

        `problems` are sentences for people, the most general first.
        """
        if self._running is None:
            problem = f"the worker starts: {self._awaits}" if self._awaits else "the worker starts"
            return Readiness(ready=False, problems=[problem], started=False)
        owners, guard, _, process, concerns = self._running
        if not owners.answered:
            problem = f"the group {self.identity.app_id} has not answered yet"
            return Readiness(ready=False, problems=[problem], started=False)
        assigned = owners.assigned()
        views = [self._partition(runner) for runner in owners.runners()]
        # A partition that was just assigned has no runner yet.
        problems = [] if assigned <= {view.partition for view in views} else ["taking over"]
        if not guard.may_fire and assigned:
            problems.append(f"firing is paused: {guard.paused_because}")
        if process.self_check.reason:
            problems.append(f"unfit: {process.self_check.reason}")
        ready = not problems and all(view.missing is None for view in views)
        warnings = [*concerns.found(), *stale_sentence([each.stale for each in views])]
        return Readiness(ready, views, problems, warnings=warnings)

    def tenants(self) -> Mapping[str, TenantFigures]:
        """The tenants of the owned partitions; "" for requests without a known tenant."""
        return self._tenant_look().figures

    def _tenant_look(self) -> TenantLook:
        """A look at all tenants, at most `LOOK_AGAIN_MS` old: there may be many tenants and calls.

        Only partitions that are owned now count. Figures belong to an epoch, so that those of a new
        owner are not compared with the former one's.
        """
        now_ms = self._clock.monotonic_ms()
        if self._looked_ms is None or now_ms - self._looked_ms >= LOOK_AGAIN_MS:
            runners = [] if self._running is None else self._running.owners.runners()
            owned = {each.partition: each.owned for each in runners}
            counted = {
                (partition, each.epoch): _figures(each.engine)
                for partition, each in owned.items()
                if each is not None
            }
            self._look = TenantLook.of(counted, self._clock.wall_ms())
            self._looked_ms = now_ms
        return self._look

    def refresh(self) -> None:
        """Bring the gauges up to date, before they are scraped; it is called by the scrape."""
        self._metrics.readiness(ready=self.readiness().ready)
        if self._running is None:
            return
        owners, guard, *_, concerns = self._running
        concerns.show(self._metrics)
        runners = owners.runners()
        for view in [self._partition(runner) for runner in runners if runner.owned]:
            now_ms = self._clock.wall_ms()
            # Seconds behind the due instant.
            late = {why: (now_ms - due_ms) / 1000 for why, due_ms in view.oldest_due_ms.items()}
            self._metrics.held.partition(
                view.partition,
                pending=view.pending,
                waiting_seconds=late,
                ingest_lag_records=view.ingest_lag_records,
            )
            since_ms = view.stale.since_ms if view.stale.number else now_ms
            self._metrics.held.stale(view.partition, view.stale.number, (now_ms - since_ms) / 1000)
        # A partition that was given up meanwhile removed its gauges before they were set anew
        # above.
        still = {runner.partition for runner in owners.runners() if runner.owned}
        for gone in {runner.partition for runner in runners} - still:
            self._metrics.held.lost(gone)
        self._metrics.tenants(self._tenant_look())
        self._metrics.held.unread(self._unread(owners))
        self._metrics.held.stores(stores(owners))
        self._metrics.moves.stand(*groups_of(owners))
        self._metrics.held.standbys(sum(standby.warm for standby in owners.standbys()))
        self._metrics.clock_skew(guard.skew_ms / 1000)
        self._metrics.firing_paused(paused=not guard.may_fire)

    def _unread(self, owners: Owners) -> dict[int, int]:
        """Offsets of the changelogs that take-overs and standbys have still to read."""
        left = {s.partition: s.reading.end - s.reading.position for s in owners.standbys()}
        for runner in owners.runners():
            if runner.state in (CATCHING_UP, REPLAYING):
                left[runner.partition] = runner.reading.end - runner.reading.position
        return left

    def _partition(self, runner: PartitionRunner) -> PartitionView:
        """The view of an owned partition; without an engine it only has a state."""
        owned, missing = runner.owned, runner.arrivals.problem or None
        if runner.state is not Ownership.FIRING:
            idle = runner.state is Ownership.IDLE
            missing = runner.failures.problem or (NOT_BEGUN if idle else f"{runner.state}")
            if runner.state in (CATCHING_UP, REPLAYING):
                again = "; it starts over" if runner.failures.problem else ""
                missing += f"{again}: {runner.reading.sentence()}"
        if owned is None:
            return PartitionView(runner.partition, str(runner.state), missing=missing)
        engine = owned.engine
        return PartitionView(
            runner.partition,
            str(runner.state),
            pending=engine.pending,
            position=engine.position,
            oldest_due_ms=engine.oldest_due_ms(),
            ingest_lag_records=max(0, owned.source.end - engine.position),
            missing=missing,
            stale=engine.stale.found,
        )


def stores(owners: Owners) -> dict[int, dict[str, int]]:
    """The space that stores of owned partitions and of standbys take.

    By partition, then by figure, in bytes and numbers of files, as RocksDB reports them.
    """
    found = {each.partition: each.store() for each in owners.standbys()}
    found |= {
        runner.partition: owned.rows.figures()
        for runner in owners.runners()
        if (owned := runner.owned) is not None
    }
    return {place: each._asdict() for place, each in found.items() if each is not None}


def _figures(engine: PartitionEngine) -> dict[str, TenantFigures]:
    """Figures by tenant; belfry's own probes are left out, since they are not a user's load."""
    found = {name.decode(): figures for name, figures in engine.tenants().items()}
    found.pop(CANARY, None)
    return found


def groups_of(owners: Owners) -> GroupFigures:
    """Figures of key groups of all owned partitions that move, or lie away from home."""
    owned = [runner.owned for runner in owners.runners()]
    figures = [each.engine.groups() for each in owned if each is not None]
    return GroupFigures(*map(sum, zip(GroupFigures(), *figures, strict=True)))
