"""The partitions of this worker: owned, stood by for, or on their way out.

One thread brings what runs in line with what the group has said, so that the group's callback
returns at once.  Three things go beyond what the group says, and the fence makes all of them safe:

- what stays assigned through a rebalance goes on firing;
- what is assigned to another goes on until that one fences it;
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
# A loop that comes round less often than that is not well.
HANGS_MS: Final = 2_000.0
# Of what is being taken over: any owner's is higher.
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
        """These partitions, and no others, are this worker's; its standbys are in the group."""
        with self._lock:
            self._assigned = set(partitions)
            self._rivals.assigned_anew()
            for runner in self._runners.values():
                if runner.alive:
                    runner.leasing.allow(runner.partition in self._assigned)
            # Who was fenced off before owns anew by the group's word.
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
        """Runners of owned partitions and of those on their way out, by partition."""
        with self._lock:
            return [self._runners[key] for key in sorted(self._runners)]

    def runner(self, partition: int) -> PartitionRunner | None:
        """The runner of one partition, if there is one; quick, for readers in other threads."""
        return self._runners.get(partition)

    def standbys(self) -> list[Standby]:
        """Partitions that are stood by for."""
        return self._standbys.all()

    def assigned(self) -> set[int]:
        """What the group has assigned."""
        with self._lock:
            return set(self._assigned)

    def await_idle(self, limit_s: float) -> None:
        """Wait until no partition is owned here any more, or the time is over."""
        deadline = machine.monotonic() + limit_s
        for runner in self.runners():
            runner.join(max(0.0, deadline - machine.monotonic()))

    @property
    def working(self) -> bool:
        """Whether the thread that follows the group is there."""
        return self._thread.alive or not self.answered

    def holdings(self) -> tuple[dict[int, int], tuple[int, ...]]:
        """Epochs of what is owned or on its way here, and what is stood by for.

        Who takes a partition over says so, or another rebalance would begin it anew elsewhere.
        What is said here begins a rebalance: until it is over, nothing is read within a lease,
        so that no successor has to wait for a lease's end.
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

    def _reconcile(self, mine: set[int], told: Assignment) -> None:
        for runner in self.runners():
            runner.assigned = runner.partition in mine
            runner.preemptive = runner.preemptive and not runner.assigned
            if not runner.alive and not runner.assigned:
                self._drop(runner)
        if self._heartbeats is not None:
            self._heartbeats.follow(told)
        beside = set(told.stands_by) - mine
        SHARES.expect(len(mine | beside))
        starting = {partition for partition in mine if self._may_run(partition)}
        self._standbys.end((beside | mine) - starting, starting)
        for partition in starting:
            self._run_one(partition, assigned=True)
        for partition in sorted(beside | (mine - starting)):
            self._stand_by(partition, told, watched=partition in beside)
        self._set_paces(told)

    def _drop(self, runner: PartitionRunner) -> None:
        """A runner that had no right to the partition any more has ended."""
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

    def _stand_by(self, partition: int, told: Assignment, *, watched: bool) -> None:
        running = self._runners.get(partition)
        # What was added to the input alone keeps no state that could be followed.
        added = not self._opener.counted.holds(partition)
        if added or (running is not None and running.alive):
            return
        if self._standbys.follow(partition, told, watched=watched):
            log.warning("taking over ahead of the group", partition=partition)
            self._run_one(partition, assigned=False)

    def _set_paces(self, told: Assignment) -> None:
        """Say how often to sweep, and to commit: often where a standby goes by commits, or just
        before and after a hand-over; and where this worker's heartbeats are not taken or were late.
        """
        runners = self.runners()
        lost = self._heartbeats is not None and not self._heartbeats.acknowledged()
        often_ms = float(idle_commit_ms(len(runners)))
        for runner in runners:
            heard = lost or runner.partition in told.commits_for
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
