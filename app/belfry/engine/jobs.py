"""Bulk jobs of one partition: begun by a request, done a little in each step, and told of.

    request BULK ─► row of the job ─► step ─ some names on, some schedules changed ─► … ─► DONE
                                       └── cursor, counts and effects: one transaction

A job walks through the names of its tenant, in their order, from its cursor on.  It goes by names
and not by instants, so a schedule that it moves is not met again.  The row with the cursor is
written in the step that makes the changes.  So a kill at any point leaves both or neither, and the
next owner goes on behind the last name.

    names       a1   a2   a3   b1   b2            a job of prefix `a`, two names a step
    step 7      ──────────►                       cursor a2, done 2
    step 8      ─ killed, rolled back ─           cursor a2, done 2
    step 8'               ────► end of `a`        cursor a3, done 3, DONE

A walk sees the rows of a step once they are committed, so no job works in the step that begins it.
A schedule that was asked for after the job lies behind its offset, and is left alone.

Jobs of one tenant are done one after the other, in the order in which they were asked for.  Those
of several tenants take turns.  Each has a rate, and a step has a `Budget`, which its caller chooses
by the time that steps take.

A tenant that is spread lives in several partitions, and each of them has a row and a cursor of its
own.  `homes` divides the rate among them: 500 a second over four homes are 125 in each.  How rows
are begun and ended is in `kept_jobs.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from belfry.engine.after_acks import AfterAcks
from belfry.engine.backfill import Backfill
from belfry.engine.bulk_change import BulkChange, JobAtWork
from belfry.engine.calendar_followers import CalendarFollowers
from belfry.engine.culprits import Culprits
from belfry.engine.job_counts import Budget, Counts, Walked, WorkAsLogged
from belfry.engine.kept_jobs import KeptJobs
from belfry.engine.moving import GroupMoves, Releases
from belfry.engine.queues import Queues
from belfry.engine.rekeying import waits_for_key
from belfry.engine.reports import SourcePartition
from belfry.engine.step import Step
from belfry.engine.undo import Tracked, UndoLog
from belfry.engine.waiting import Waiting
from belfry.firing.rates import Rate
from belfry.schedules.bulk import BACKFILL, FIRING, REKEY, BulkSpec, read_bulk
from belfry.schedules.rejections import Rejection
from belfry.store.job_lookup import wanted_by
from belfry.store.layout.jobs import DONE, STOPPED, JobRow, names_of_job
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants

BURST_MS: Final = 250


class JobMeans(NamedTuple):
    """The limits of jobs, and the parts that they change besides the store."""

    kept: KeptJobs
    waiting: Waiting
    queues: Queues
    followers: CalendarFollowers
    after_acks: AfterAcks
    moving: GroupMoves
    releases: Releases
    culprits: Culprits


class Jobs:
    """The jobs of one partition.

    `left_off` says that the last step had no budget for all that was to be done, so the loop need
    not rest before the next one.
    """

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        tenants: StepTenants,
        parts: JobMeans,
        undo: UndoLog,
    ) -> None:
        self._kept, waiting, self._queues, self._followers, self._after_acks = parts[:5]
        self._moving, self._releases = parts[5:7]
        self._store = store
        self._tenants = tenants
        self._culprits = parts.culprits
        self._change = BulkChange(place, store, waiting, parts.culprits)
        self._backfill = Backfill(store, self._change)
        self._rate = Rate(BURST_MS, Tracked(undo))
        self._undo = undo
        self.left_off = False
        # Whose turn was the last one.
        self._last = b""

    @property
    def under_way(self) -> bool:
        """Whether there is something to do."""
        here = self._kept.under_way or self._followers.under_way or self._after_acks.under_way
        return here or self._moving.under_way

    @property
    def moves(self) -> bool:
        """Whether groups leave or requests that waited for one go on: all of it waits for the last
        of these steps.
        """
        return self._moving.under_way

    def advance(self, step: Step, budget: Budget, as_logged: WorkAsLogged | None = None) -> None:
        """Go on with the jobs, as far as the budget goes; schedules follow calendars first.

        Before both, groups that somebody waits for are walked through.

        Calendars have half of it where there are jobs, so that neither waits for the other's end.
        Where a log tells it (`as_logged`), jobs that are allotted something do that in this order,
        no other job does anything, and groups end that have ended there.
        """
        allotted = None if as_logged is None else as_logged.allotted
        self._undo.attribute(self, "_last")
        self._undo.attribute(self, "left_off")
        if self._moving.under_way:
            self._moving.advance(step, self._releases)
        if self._after_acks.under_way:
            let_go = None if as_logged is None else as_logged.let_go
            budget = self._after_acks.advance(step, budget, let_go)
        left = share = budget.half if self._kept.under_way else budget
        if self._followers.under_way:
            left = Budget(*self._followers.advance(step, *share))
            budget = budget.less(share.names - left.names, share.changes - left.changes)
        for key, row in self._turns(allotted):
            if budget.used_up or step.effects.room <= 0:
                break
            self._last, _ = names_of_job(key)
            if allotted is None:
                budget = self._work(key, row, step, budget)
            else:
                self._work(key, row, step, allotted[key], at_rate=False)
        self.left_off = budget.used_up or left.used_up

    def _turns(self, allotted: Mapping[bytes, Budget] | None) -> list[tuple[bytes, JobRow]]:
        """The first job of each tenant; those behind the tenant of the last turn come first.

        So tenants take turns in the order of their names, round and round, and a tenant with many
        jobs has no more of a step than one with a single job.  Jobs that are `allotted` something
        come in their order there.
        """
        first = self._kept.oldest()
        if allotted is not None:
            known = dict(first.values())
            return [(key, known[key]) for key in allotted if key in known]
        turns = sorted(first, key=lambda tenant: (tenant <= self._last, tenant))
        return [first[tenant] for tenant in turns]

    def _work(
        self, key: bytes, row: JobRow, step: Step, budget: Budget, *, at_rate: bool = True
    ) -> Budget:
        name, job = names_of_job(key)
        tenant = self._tenants.of_bytes(name)
        spec = _spec(row.spec)
        if name in self._tenants.removed:
            # The tenant was removed, so there is nobody to do it for.
            self._kept.end(key, row, STOPPED, step)
            return budget
        if isinstance(spec, Rejection) or (spec.action in FIRING and tenant.stopped):
            # A later release began it, or nothing fires of the tenant: it waits, as events do.
            return budget
        if spec.action == REKEY and waits_for_key(spec, tenant):
            return budget
        per_second, changes = spec.per_second / row.homes, budget.changes
        if at_rate:
            changes = min(changes, self._rate.room(key, per_second, step.now_ms))
            if spec.action in FIRING:
                changes = min(changes, self._queues.extra_room(tenant, step))
            if changes <= 0:
                return budget
        work = JobAtWork(tenant, job, row, spec, wanted_by(name, spec))
        walk = self._backfill.walk if spec.action == BACKFILL else self._walk
        now, ended, counted = walk(work, Budget(budget.names, changes), step)
        fired = now.fired - row.fired if spec.action == BACKFILL else now.done - row.done
        touched = fired if spec.action == BACKFILL else now.matched - row.matched
        if spec.action in FIRING:
            self._queues.took_extra(tenant, fired, step)
        if touched:
            self._rate.take(key, per_second, step.now_ms, touched)
        if ended:
            self._kept.end(key, now, DONE, step)
        else:
            self._kept.come_to(key, now, step)
        return budget.less(now.examined - row.examined, touched + counted)

    def _walk(self, work: JobAtWork, budget: Budget, step: Step) -> Walked:
        """Walk on through the names."""
        counts = Counts(work.row)
        first, end = work.wanted.names
        cursor = work.row.cursor.encode()
        for name, _ in self._store.between(cursor + b"\0" if cursor else first, end):
            if counts.examined >= budget.names or counts.matched >= budget.changes:
                break
            if step.effects.room <= 0 or self._culprits.enough:
                break
            counts.add(self._change.apply(name, work, step), work.spec.action, step)
            cursor = name
        else:
            return Walked(counts.of(work.row, cursor), ended=True)
        return Walked(counts.of(work.row, cursor), ended=False)


@lru_cache(maxsize=256)
def _spec(text: str) -> BulkSpec | Rejection:
    return read_bulk(text)
