"""The partitions of this worker: owned, stood by for, or on their way out.

One thread brings what runs in line with what the group has said, so that the group's callback
returns at once.  Three things go beyond what the group says, and the fence makes all of them safe:

- what stays assigned through a rebalance goes on firing;
- what is assigned to another goes on until that one fences it;
- a standby whose owner is silent takes over at once, and the group follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event, Lock
from time import monotonic
from typing import Final

import structlog

from belfry.balance.assignment import Assignment, Watched
from belfry.balance.assignment_map import idle_commit_ms
from belfry.engine.ownership import Ownership
from belfry.group.failure_detector import DetectorTimeouts, Timeouts
from belfry.group.group import Group
from belfry.group.heartbeats import Heartbeats
from belfry.host.background import Background
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.owner import PartitionRunner
from belfry.partitions.standby import Standby
from belfry.partitions.term import Warm
from belfry.partitions.upkeep import HEARTBEAT_MS

LOOK_S: Final = 0.5
STOP_S: Final = 15.0
STEADY_S: Final = 300.0
# A loop that comes round less often than that is not well.
HANGS_MS: Final = 2_000.0
# Of what is being taken over: any owner's is higher.
NO_EPOCH: Final = -1
# How long a move that is under way may take to be told to both sides.
ASK_S: Final = 1.0

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
        self._lock = Lock()
        self._assigned: set[int] = set()
        self._runners: dict[int, PartitionRunner] = {}
        self._standbys: dict[int, Standby] = {}
        self._ended_at: dict[int, float] = {}
        self._asked: set[int] = set()
        self._backing_off: dict[int, tuple[int, float]] = {}
        self._changed = Event()
        self._thread = Background(
            "owners",
            self._turn,
            log,
            "partitions not brought in line; trying again",
            again_s=LOOK_S,
        )
        self._thread.last = self._end
        self.answered = False

    def start(self) -> None:
        """Begin to follow the group."""
        self._thread.start()

    def assign(self, partitions: Iterable[int]) -> None:
        """These partitions, and no others, are this worker's; its standbys are in the group."""
        with self._lock:
            self._assigned = set(partitions)
            self._ended_at.clear()
            self._asked.clear()
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
        with self._lock:
            return [self._standbys[key] for key in sorted(self._standbys)]

    def assigned(self) -> set[int]:
        """What the group has assigned."""
        with self._lock:
            return set(self._assigned)

    def await_idle(self, limit_s: float) -> None:
        """Wait until no partition is owned here any more, or the time is over."""
        deadline = monotonic() + limit_s
        for runner in self.runners():
            runner.join(max(0.0, deadline - monotonic()))

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
        self._end_standbys(set(), set())
        self._end_all()

    def _reconcile(self, mine: set[int], told: Assignment) -> None:
        for runner in self.runners():
            runner.assigned = runner.partition in mine
            runner.preemptive = runner.preemptive and not runner.assigned
            if not runner.alive and not runner.assigned:
                self._drop(runner)
        if self._heartbeats is not None:
            self._heartbeats.follow(told)
        beside = set(told.stands_by) - mine
        starting = {partition for partition in mine if self._may_run(partition)}
        self._end_standbys((beside | mine) - starting, starting)
        for partition in starting:
            self._run_one(partition, assigned=True)
        for partition in sorted(beside | (mine - starting)):
            self._stand_by(partition, told, watched=partition in beside)
        self._set_beats(told)

    def _drop(self, runner: PartitionRunner) -> None:
        """A runner that had no right to the partition any more has ended."""
        with self._lock:
            self._runners.pop(runner.partition, None)
        self._opener.metrics.lost(runner.partition)
        # A standby that fenced an owner in haste, and was fenced by it, waits longer next time.
        times, _ = self._backing_off.get(runner.partition, (0, 0.0))
        if runner.preemptive:
            self._backing_off[runner.partition] = times + 1, monotonic()

    def _may_run(self, partition: int) -> bool:
        """Whether an assigned partition is to be taken over now."""
        running = self._runners.get(partition)
        return running is None or (not running.alive and self._may_restart(running))

    def _run_one(self, partition: int, assigned: bool) -> None:
        with self._lock:
            standby = self._standbys.pop(partition, None)
        warm = None if standby is None else standby.hand_over()
        runner = self._make_runner(partition, warm)
        runner.assigned, runner.preemptive = assigned, not assigned
        with self._lock:
            self._runners[partition] = runner
            runner.start()

    def _stand_by(self, partition: int, told: Assignment, watched: bool) -> None:
        running = self._runners.get(partition)
        if running is not None and running.alive:
            return
        standby = self._standbys.get(partition)
        if standby is None:
            standby = Standby(partition, self._opener, self._alarmed)
            with self._lock:
                self._standbys[partition] = standby
            standby.start()
        owner = told.owner(partition) if watched else None
        if owner is None:
            standby.watch(None)
        else:
            heard = None if self._heartbeats is None else self._heartbeats.watch(owner.heartbeat)
            standby.watch(self._timeouts(partition, owner), heard)
        if standby.silent:
            log.warning("taking over ahead of the group", partition=partition)
            self._run_one(partition, assigned=False)

    def _alarmed(self, _partition: int) -> None:
        self._changed.set()

    def _timeouts(self, partition: int, owner: Watched) -> Timeouts | None:
        """For how long the owner may be silent; None where that is left to the group.

        The second standby waits for the first one, and who was wrong lately waits longer.
        """
        settings = self._opener.settings
        if not settings.silence_limit_ms:
            return None
        times, since = self._backing_off.get(partition, (0, 0.0))
        if times and monotonic() - since > STEADY_S:
            del self._backing_off[partition]
            times = 0
        waits = DetectorTimeouts(settings.silence_limit_ms, 2.0 * settings.session_timeout_ms)
        return waits.timeouts(owner.owns, owner.ranks[partition], times)

    def _set_beats(self, told: Assignment) -> None:
        """Commit often where a standby goes by commits, or just before and after a hand-over.

        Everywhere, where this worker's heartbeats are not taken or were late.
        """
        now_ms = self._opener.clock.monotonic_ms()
        runners = self.runners()
        lost = self._heartbeats is not None and not self._heartbeats.acknowledged()
        often_ms = float(idle_commit_ms(len(runners)))
        for runner in runners:
            heard = lost or runner.partition in told.commits_for
            moves = not runner.assigned or runner.upkeep.young(now_ms)
            runner.upkeep.idle_commit_ms = often_ms if heard or moves else HEARTBEAT_MS

    def _may_restart(self, ended: PartitionRunner) -> bool:
        """Whether a partition that ended by itself is to be tried again.

        Fenced off means that another owner is alive: try again only if the group has not moved
        the partition within a session.  It may be an owner of before the last rebalance, who was
        late, so the group is asked to share anew; whatever it says is acted on at once.
        """
        if ended.state is not Ownership.STOPPED:
            return True
        since = self._ended_at.setdefault(ended.partition, monotonic())
        waited_s = monotonic() - since
        if waited_s >= ASK_S and ended.partition not in self._asked:
            self._asked.add(ended.partition)
            log.warning(
                "owned here by the group and fenced off: asking it", partition=ended.partition
            )
            self._group.rejoin()
        if waited_s < self._opener.settings.session_timeout_ms / 1000:
            return False
        del self._ended_at[ended.partition]
        self._asked.discard(ended.partition)
        return True

    # -- ends ------------------------------------------------------------------------------------

    def _end_standbys(self, kept: set[int], promoted: set[int]) -> None:
        """End all but these; the promoted are only asked to, and are handed over afterwards."""
        leaving = [standby for standby in self.standbys() if standby.partition not in kept]
        for standby in leaving:
            standby.ask_to_stop()
        for standby in leaving:
            if standby.partition not in promoted:
                standby.stop()
                with self._lock:
                    self._standbys.pop(standby.partition, None)

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
