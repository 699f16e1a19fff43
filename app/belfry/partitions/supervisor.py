"""The partitions of this worker: owned, followed by a standby, or about to be given up.

One thread starts and ends owners and standbys as the group assigns partitions, so the group's
callback returns at once.  Three rules go beyond that, and the fence makes all of them safe:

- a partition that stays assigned through a rebalance goes on firing;
- a partition that is assigned to another worker goes on until that worker fences it;
- a standby whose owner is silent takes over at once, and the group follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import structlog

from belfry.balance.assignment import Assignment
from belfry.balance.assignment_map import idle_commit_ms
from belfry.group.group import Group
from belfry.group.heartbeats import Heartbeats
from belfry.host import machine
from belfry.host.background import Background
from belfry.host.rocks_options import SHARES
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.owner import PartitionRunner
from belfry.partitions.rivals import Rivals
from belfry.partitions.standby import Standby
from belfry.partitions.standing_by import Standbys
from belfry.partitions.term import Warm
from belfry.partitions.upkeep import sweep_every_ms

LOOK_S: Final = 0.5
STOP_S: Final = 15.0
# A loop that has not come round for so long is not well.
HANGS_MS: Final = 2_000.0
# The epoch of a partition that is being taken over: the epoch of any owner is higher.
NO_EPOCH: Final = -1

log = structlog.get_logger(__name__)

MakeRunner = Callable[[int, Warm | None], PartitionRunner]


class Owners:
    """Runners and standbys of this worker; `make_runner` makes a runner that is not started."""

    def __init__(
        self,
        opener: PartitionOpener,
        make_runner: MakeRunner,
        group: Group,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        self._opener = opener
        self._make_runner = make_runner
        self._heartbeats = heartbeats
        self._group = group
        self._lock = machine.Lock()
        self._assigned: set[int] = set()
        self._runners: dict[int, PartitionRunner] = {}
        self._rivals = Rivals(opener.settings, group)
        self._standbys = Standbys(
            opener, self._rivals, heartbeats, lambda _partition: self._changed.set()
        )
        self._changed = machine.Event()
        failing = "partitions not brought in line; trying again"
        self._thread = Background("owners", self._turn, log, failing, again_s=LOOK_S)
        self._thread.last = self._end
        self.answered = False

    def start(self) -> None:
        """Begin to follow the group."""
        self._thread.start()

    def assign(self, partitions: Iterable[int]) -> None:
        """Own these partitions and no others; the group's assignment tells the standbys."""
        with self._lock:
            self._assigned = set(partitions)
            self._rivals.assigned_anew()
            for runner in self._runners.values():
                if runner.alive:
                    runner.leasing.allow(runner.partition in self._assigned)
            # A runner that was fenced off before may own again, because the group says so.
            ended = [key for key, runner in self._runners.items() if not runner.alive]
            for key in ended:
                del self._runners[key]
        for key in ended:
            self._opener.metrics.lost(key)
        self.answered = True
        self._changed.set()

    def stop(self) -> None:
        """Give all partitions up: each finishes its step."""
        self._thread.stopping.set()
        self._changed.set()
        self._thread.stop()

    def runners(self) -> list[PartitionRunner]:
        """Runners of owned partitions and of those about to be given up, by partition."""
        with self._lock:
            return [self._runners[key] for key in sorted(self._runners)]

    def runner(self, partition: int) -> PartitionRunner | None:
        """The runner of one partition, if there is one; quick, for readers in other threads."""
        return self._runners.get(partition)

    def standbys(self) -> list[Standby]:
        """The standbys of this worker."""
        return self._standbys.all()

    def assigned(self) -> set[int]:
        """The partitions that the group has assigned to this worker."""
        with self._lock:
            return set(self._assigned)

    def await_idle(self, limit_s: float) -> None:
        """Wait until no partition is owned here any more, for `limit_s` at most."""
        deadline = machine.monotonic() + limit_s
        for runner in self.runners():
            runner.join(max(0.0, deadline - machine.monotonic()))

    @property
    def working(self) -> bool:
        """Whether the thread that follows the group is there."""
        return self._thread.alive or not self.answered

    def holdings(self) -> tuple[dict[int, int], tuple[int, ...]]:
        """Epochs of partitions that are owned or being taken over, and the warm standbys.

        A worker that takes a partition over says so, or another rebalance would begin the take-over
        anew elsewhere. The group asks this at the begin of a rebalance: until its end, no read is
        answered within a lease, so that no successor has to wait for one.
        """
        owns: dict[int, int] = {}
        for runner in self.runners():
            runner.leasing.allow(False)
            if runner.alive and runner.epoch is not None:
                owns[runner.partition] = runner.epoch
            elif runner.alive and runner.assigned and runner.failures.since_ms is None:
                owns[runner.partition] = NO_EPOCH
        warm = tuple(s.partition for s in self.standbys() if s.warm)
        return owns, warm

    def well(self) -> list[int]:
        """The owned partitions whose loops come round: a heartbeat vouches for them."""
        now_ms = self._opener.clock.monotonic_ms()
        return [
            runner.partition
            for runner in self.runners()
            if runner.alive and runner.owned is not None and runner.turned_ms_ago(now_ms) < HANGS_MS
        ]

    # -- the thread ------------------------------------------------------------------------------

    def _turn(self) -> None:
        self._changed.wait(LOOK_S)
        self._changed.clear()
        self._reconcile(self.assigned(), self._group.assignment)

    def _end(self) -> None:
        self._standbys.end()
        self._end_all()
        SHARES.expect(0)

    def _reconcile(self, mine: set[int], assignment: Assignment) -> None:
        for runner in self.runners():
            runner.assigned = runner.partition in mine
            runner.preemptive = runner.preemptive and not runner.assigned
            if not runner.alive and not runner.assigned:
                self._drop(runner)
        if self._heartbeats is not None:
            self._heartbeats.follow(assignment)
        stood_by = set(assignment.stands_by) - mine
        SHARES.expect(len(mine | stood_by))
        starting = {partition for partition in mine if self._may_run(partition)}
        self._standbys.end((stood_by | mine) - starting, starting)
        for partition in starting:
            self._run_one(partition, assigned=True)
        for partition in sorted(stood_by | (mine - starting)):
            self._stand_by(partition, assignment, watched=partition in stood_by)
        self._set_paces(assignment)

    def _drop(self, runner: PartitionRunner) -> None:
        """Forget a runner that has ended, and whose partition the group does not assign here."""
        with self._lock:
            self._runners.pop(runner.partition, None)
        self._opener.metrics.lost(runner.partition)
        if runner.preemptive:
            self._rivals.fenced_in_haste(runner.partition)

    def _may_run(self, partition: int) -> bool:
        """Whether an assigned partition is to be taken over now."""
        running = self._runners.get(partition)
        return running is None or (not running.alive and self._rivals.may_restart(running))

    def _run_one(self, partition: int, assigned: bool) -> None:
        runner = self._make_runner(partition, self._standbys.promote(partition))
        runner.assigned, runner.preemptive = assigned, not assigned
        with self._lock:
            self._runners[partition] = runner
            runner.start()

    def _stand_by(self, partition: int, assignment: Assignment, *, watched: bool) -> None:
        running = self._runners.get(partition)
        # A partition that was added to the input alone keeps no state that could be followed.
        added = not self._opener.counted.holds(partition)
        if added or (running is not None and running.alive):
            return
        if self._standbys.follow(partition, assignment, watched=watched):
            log.warning("taking over ahead of the group", partition=partition)
            self._run_one(partition, assigned=False)

    def _set_paces(self, assignment: Assignment) -> None:
        """Set how often runners sweep and commit: often where a standby judges by commits, shortly
        before and after a hand-over, and where this worker's heartbeats are not taken or were late.
        """
        runners = self.runners()
        lost = self._heartbeats is not None and not self._heartbeats.acknowledged()
        often_ms = float(idle_commit_ms(len(runners)))
        for runner in runners:
            heard = lost or runner.partition in assignment.commits_for
            often = heard or not runner.assigned
            proves_ms = runner.upkeep.proves_every_ms(often_ms)
            runner.upkeep.idle_commit_ms = often_ms if often else proves_ms
            runner.upkeep.sweep_every_ms = sweep_every_ms(len(runners))

    # -- ends ------------------------------------------------------------------------------------

    def _end_all(self) -> None:
        leaving = self.runners()
        for runner in leaving:
            runner.stop()
        for runner in leaving:
            if not runner.join(STOP_S):
                log.error("a partition's thread does not end", partition=runner.partition)
                continue
            with self._lock:
                self._runners.pop(runner.partition, None)
            self._opener.metrics.lost(runner.partition)
