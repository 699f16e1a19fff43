"""The work of an owner besides taking requests in and firing: sweeps, jobs, manifests, flushes.

    jobs      bulk jobs go on, some schedules in each step, as many as take a few milliseconds;
              key groups that move go on with them, one step soon after the other
    sweep     rows that are kept for a day are forgotten, some a second, more where it is behind;
              less often on a worker of many partitions, where it is not awaited
    manifest  a commit without events, every half minute or more often: it shows that this owner
              lives, measures the clock, renews a read lease, and proves the fence before tenants'
              own inputs are read
    signing   rows that former owners left unsigned are written again, some in each step
    flush     the store writes its memory tables, so that little is to be replayed after a crash
    checkpoint  where they are kept and one is wanted, the store is linked for it
    day files   where a store for them is set, payloads go there and come back

A partition that keeps no state needs none of this, but commits its position again every hour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.engine.effects import Effects
from belfry.firing.clock_guard import ClockGuard
from belfry.host import rocks
from belfry.host.clock import SystemClock
from belfry.partitions.day_files import DayFileTurns
from belfry.partitions.forwarding import RENEW_MS
from belfry.partitions.leasing import Leasing
from belfry.partitions.pacing import JobsPace
from belfry.partitions.term import Owned

# Rows of one sweep, and the time between two sweeps: usually, and where it is behind.
SWEEP_ROWS: Final = 500
SWEEP_EVERY_MS: Final = 1_000
SWEEP_BEHIND_MS: Final = 100
# A sweep looks at many places even where there is little to forget, for half a millisecond of CPU.
# So a worker has at most so many sweeps in a second, and with more partitions each has fewer.
SWEPT_EACH_SECOND: Final = 16
# The longest time between two commits of an owner with nothing to do.
HEARTBEAT_MS: Final = 30_000.0
FLUSH_EVERY_MS: Final = 20_000
RESIGN_EVERY_S: Final = 0.05
JOBS_EVERY_S: Final = 0.05
# The time between slices of a group that leaves: its events wait for the last slice.
MOVES_EVERY_S: Final = 0.002


class Upkeep:
    """Decides which upkeep is due, for one partition; instants are monotonic milliseconds.

    `idle_commit_ms` is the longest time between two commits. `sweep_every_ms` is the time between
    two sweeps where sweeping is not behind and not awaited.
    """

    def __init__(
        self,
        guard: ClockGuard,
        leasing: Leasing,
        clock: SystemClock,
        checkpoint: Callable[[rocks.RocksMap, float], None] | None = None,
        day_files: DayFileTurns | None = None,
    ) -> None:
        """`checkpoint` is called with a store, and for how many ms it has been flushed."""
        self._day_files = day_files
        self._checkpoint = checkpoint
        self.idle_commit_ms = HEARTBEAT_MS
        self.sweep_every_ms: float = SWEEP_EVERY_MS
        self._clock = clock
        self._jobs_pace = JobsPace()
        self._guard = guard
        self._leasing = leasing
        self._swept_ms = self._beaten_ms = self._flushed_ms = 0.0
        self._began_ms = -HEARTBEAT_MS

    def begin(self, now_ms: float) -> None:
        """The partition was taken over."""
        if self._day_files is not None:
            self._day_files.begin()
        self._began_ms = self._flushed_ms = now_ms
        if self._checkpoint is not None:
            # A new owner may have to link its store soon, and linking would first write all its
            # memory.
            self._flushed_ms -= FLUSH_EVERY_MS

    def proves_every_ms(self, often_ms: float) -> float:
        """Milliseconds from the last commit to the one that proves that it still is the owner.

        A take-over is abandoned when the group moves the partition, but not between its last look
        at that and the fence.  So a former owner may fence its successor shortly after the move,
        and goes on until it is fenced in turn.  The successor learns of that by a commit.  Such a
        fence becomes less likely with time, so the time between two proofs doubles:

            owned for     0 s   0.3 s   0.6 s   1.2 s  …  19.2 s   38.4 s   68.4 s
            until a look  0.3 s   0.3 s   0.6 s   1.2 s  …  19.2 s     30 s     30 s

        It is `often_ms` at first, and half a minute at most.
        """
        return min(max(often_ms, self._beaten_ms - self._began_ms), HEARTBEAT_MS)

    def committed(self, now_ms: float) -> None:
        """A step was committed: the next manifest without events may wait."""
        self._beaten_ms = now_ms

    def add_to(
        self, owned: Owned, effects: Effects | None, now_ms: float, wall_ms: Callable[[], int]
    ) -> Effects | None:
        """The step's effects with the upkeep that is due now; `wall_ms` is called where needed.

        The engine adds to the effects of the step that is under way, so all of this is one
        transaction.
        """
        if not owned.keeps_state:
            silent = now_ms - self._beaten_ms >= RENEW_MS
            return owned.engine.claim(None) if silent else effects
        if now_ms - self._swept_ms >= self._swept_every_ms(owned) and self._guard.may_fire:
            self._swept_ms = now_ms
            effects = owned.engine.sweep(wall_ms(), SWEEP_ROWS)
        if owned.engine.jobs.under_way and self._guard.may_fire:
            effects = self._jobs(owned, wall_ms())
        if self._day_files is not None and self._guard.may_fire:
            effects = self._day_files.add_to(owned.engine, effects, now_ms, wall_ms)
        if self._wants_manifest(owned, now_ms):
            effects = owned.engine.claim(None)
        if owned.resigning is not None and owned.resigning.under_way:
            effects = owned.engine.claim(None)
            owned.resigning.add(effects.rows)
        if now_ms - self._flushed_ms >= FLUSH_EVERY_MS:
            self._flushed_ms = now_ms
            owned.rows.flush()
        if self._checkpoint is not None and isinstance(owned.rows, rocks.RocksMap):
            self._checkpoint(owned.rows, now_ms - self._flushed_ms)
        return effects

    def _swept_every_ms(self, owned: Owned) -> float:
        """Milliseconds from one sweep to the next, in the present state."""
        if owned.engine.sweeps_behind:
            return SWEEP_BEHIND_MS
        return SWEEP_EVERY_MS if owned.engine.sweeps_awaited else self.sweep_every_ms

    def _jobs(self, owned: Owned, now_ms: int) -> Effects:
        """The step's effects with the changes of bulk jobs."""
        began_ms = self._clock.monotonic_ms()
        effects = owned.engine.advance_jobs(now_ms, self._jobs_pace.budget)
        took_ms = self._clock.monotonic_ms() - began_ms
        self._jobs_pace.took(took_ms, used_up=owned.engine.jobs.left_off)
        return effects

    def longest_s(self, owned: Owned) -> float:
        """The longest time in seconds until upkeep is due."""
        if owned.resigning is not None and owned.resigning.under_way:
            return RESIGN_EVERY_S
        if owned.engine.jobs.under_way:
            # Without a clock that is trusted no slice leaves.
            hurries = owned.engine.jobs.moves and self._guard.may_fire
            return MOVES_EVERY_S if hurries else JOBS_EVERY_S
        if self._day_files is not None and owned.keeps_state:
            return min(self.idle_commit_ms / 1000, self._day_files.pause_s)
        return self.idle_commit_ms / 1000

    def _wants_manifest(self, owned: Owned, now_ms: float) -> bool:
        if now_ms - self._beaten_ms >= self.idle_commit_ms or self._guard.wants_probe(int(now_ms)):
            return True
        if self._leasing.wants_commit(owned.producer.lease):
            return True
        return owned.tenant_inputs is not None and owned.tenant_inputs.wanted


def sweep_every_ms(partitions: int) -> float:
    """Milliseconds between two sweeps that are not awaited, on a worker of so many partitions.

        partitions     1 to 16     32     64
        a sweep            1 s    2 s    4 s

    The more partitions a worker has, the fewer rows each of them holds. So a sweep of all rows of a
    worker takes no longer.
    """
    return SWEEP_EVERY_MS * max(1.0, partitions / SWEPT_EACH_SECOND)
