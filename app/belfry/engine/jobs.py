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

What a step put down shows to a walk once it is committed, so no job works in the step that begins
it.  A schedule that was asked for after the job lies behind its offset, and is left alone.

Jobs of one tenant are done one after the other, in the order in which they were asked for.  Those
of several tenants take turns.  Each has a rate, and a step has a `Budget`, which its caller chooses
by the time that steps take.

A tenant that is spread lives in several partitions.  The request goes from home to home; the first
gives the verdict, the others follow, and each has a row and a cursor of its own.  `homes` divides
the rate among them: 500 a second over four homes are 125 in each.

    home 1   request ─► verdict ACCEPTED ─► forwarded ─► walks a … m
    home 2                                  request ───► walks b … z        no verdict

The row of an ended job stays for a week, so that its id names one job and its counts can be read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from belfry.engine.backfill import Backfill
from belfry.engine.bulk_change import BulkChange, JobAtWork
from belfry.engine.calendars import Calendars
from belfry.engine.job_counts import Budget, Counts, Walked
from belfry.engine.queues import Queues
from belfry.engine.reports import MOST_REASON, Reply, SourcePartition
from belfry.engine.step import Step, Tracked, UndoLog
from belfry.engine.waiting import Waiting
from belfry.firing.rates import Rate
from belfry.schedules.bulk import BACKFILL, FIRING, BulkSpec, read_bulk
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.store.job_lookup import wanted_by
from belfry.store.layout.jobs import (
    DONE,
    JOB_END,
    JOB_PREFIX,
    RUNNING,
    STOPPED,
    JobRow,
    decode_job,
    encode_job,
    job_key,
    jobs_range,
    names_of_job,
)
from belfry.store.recovery import age_of
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants
from belfry.wire.record import Origin, SourceRecord

BURST_MS: Final = 250
# Jobs of a tenant that are under way in a partition, and ended ones that are kept there.
MOST_UNDER_WAY: Final = 20
MOST_ENDED: Final = 200
# The code of an outcome that is about a job and no schedule.
CODE: Final = "bulk_job"


class Begun(NamedTuple):
    """What a request for a job says besides itself: where it came in, and where it goes.

    `homes` is the number of partitions that carry it out, `at_ms` when it arrived (epoch ms).
    """

    origin: Origin
    homes: int
    at_ms: int


class JobMeans(NamedTuple):
    """What jobs change besides the store."""

    waiting: Waiting
    queues: Queues
    calendars: Calendars


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
        waiting, self._queues, self._calendars = parts
        self._store = store
        self._tenants = tenants
        self._change = BulkChange(place, store, waiting)
        self._backfill = Backfill(store, self._change)
        rows = ((key, decode_job(row)) for key, row in store.between(JOB_PREFIX, JOB_END))
        self._running = Tracked(undo, {key: row for key, row in rows if row.state == RUNNING})
        self._rate = Rate(BURST_MS, Tracked(undo))
        self._fresh: set[bytes] = set()
        self._undo = undo
        self.left_off = False
        # Whose turn was the last one.
        self._last = b""
        undo.scratch(self._fresh.clear)

    @property
    def under_way(self) -> bool:
        """Whether there is something to do."""
        return bool(self._running) or self._calendars.under_way

    # -- requests --------------------------------------------------------------------------------

    def begin(self, record: SourceRecord, request: Request, begun: Begun, step: Step) -> Reply:
        """Begin the job of a request; ACCEPTED, or CONFLICT where one of its id is there."""
        key = job_key(request["tenant"], request["schedule_id"])
        if self._store.named(key) is not None:
            reason = "A job with this id exists, or ended within a week: give this one another id."
            return Reply(Outcome.CONFLICT, code="exists", reason=reason)
        tenant = request["tenant"].encode()
        if sum(names_of_job(each)[0] == tenant for each in self._running) >= MOST_UNDER_WAY:
            reason = (
                f"{MOST_UNDER_WAY} jobs of the tenant are under way: wait until one has ended, or"
                " stop one."
            )
            return Reply(Outcome.REJECTED, code="too_many_jobs", reason=reason)
        self._keep(key, record, request, begun, step)
        return Reply(Outcome.ACCEPTED, code=CODE)

    def stop(self, request: Request, step: Step, *, elsewhere: bool) -> Reply:
        """End a job: CANCELLED; UNCHANGED where it has ended in all homes, NOT_FOUND for none.

        With `elsewhere` the tenant has other homes, in which the job may still be under way.
        """
        key = job_key(request["tenant"], request["schedule_id"])
        row = self._store.named(key)
        if row is None:
            reason = "No job has this id, or it ended more than a week ago."
            return Reply(Outcome.NOT_FOUND, code="not_found", reason=reason)
        job = self._running.get(key)
        if job is not None:
            self._end(key, job, STOPPED, step)
        elif not elsewhere:
            return Reply(Outcome.UNCHANGED, code=CODE)
        return Reply(Outcome.CANCELLED, code=CODE)

    def follow(self, record: SourceRecord, request: Request, begun: Begun, step: Step) -> None:
        """Begin what has begun in another home of the tenant; its verdict has fallen there."""
        key = job_key(request["tenant"], request["schedule_id"])
        known = self._store.named(key)
        place = (begun.origin.partition, begun.origin.offset)
        if known is None or (decode_job(known).origin != place and key not in self._running):
            self._keep(key, record, request, begun, step)

    def _keep(
        self, key: bytes, record: SourceRecord, request: Request, begun: Begun, step: Step
    ) -> None:
        assert request["bulk"] is not None
        row = JobRow(
            spec=request["bulk"],
            offset=record[0],
            begun_ms=begun.at_ms,
            origin=(begun.origin.partition, begun.origin.offset),
            homes=begun.homes,
            reason=None if request["reason"] is None else request["reason"][:MOST_REASON],
        )
        self._running[key] = row
        self._fresh.add(key)
        self._note(key, row, step)
        self._forget_oldest(request["tenant"].encode())

    def _forget_oldest(self, tenant: bytes) -> None:
        """Keep no more than `MOST_ENDED` jobs that have ended."""
        rows = ((key, decode_job(row)) for key, row in self._store.between(*jobs_range(tenant)))
        ended = sorted((row.ended_ms, key) for key, row in rows if row.ended_ms is not None)
        for _, key in ended[: max(0, len(ended) - MOST_ENDED)]:
            if key not in self._store.changed:
                self._store.note(key, None)

    def _end(self, key: bytes, row: JobRow, how: str, step: Step) -> None:
        del self._running[key]
        self._note(key, row._replace(state=how, ended_ms=step.now_ms), step)

    def _note(self, key: bytes, row: JobRow, step: Step) -> None:
        kept = encode_job(row)
        step.effects.room -= len(kept)
        self._store.note(key, kept)

    # -- work ------------------------------------------------------------------------------------

    def advance(self, step: Step, budget: Budget) -> None:
        """Go on with the jobs, as far as the budget goes; schedules follow calendars first.

        Calendars have half of it where there are jobs, so that neither waits for the other's end.
        """
        self._undo.attribute(self, "_last")
        self._undo.attribute(self, "left_off")
        left = share = budget.half if self._running else budget
        if self._calendars.under_way:
            left = Budget(*self._calendars.advance(step, *share))
            budget = budget.less(share.names - left.names, share.changes - left.changes)
        for key in self._turns():
            if budget.used_up or step.effects.room <= 0:
                break
            self._last, _ = names_of_job(key)
            budget = self._work(key, step, budget)
        self.left_off = budget.used_up or left.used_up

    def _turns(self) -> list[bytes]:
        """The first job of each tenant; those behind the tenant of the last turn come first.

        So tenants take turns in the order of their names, round and round, and a tenant with many
        jobs has no more of a step than one with a single job.
        """
        first: dict[bytes, bytes] = {}
        for key in sorted(self._running, key=lambda key: age_of(self._running[key].offset)):
            first.setdefault(names_of_job(key)[0], key)
        turns = sorted(first, key=lambda tenant: (tenant <= self._last, tenant))
        return [first[tenant] for tenant in turns if first[tenant] not in self._fresh]

    def _work(self, key: bytes, step: Step, budget: Budget) -> Budget:
        name, job = names_of_job(key)
        row, tenant = self._running[key], self._tenants.of_bytes(name)
        spec = _spec(row.spec)
        if name in self._tenants.removed:
            # Nobody is there for whom it could be done.
            self._end(key, row, STOPPED, step)
            return budget
        if isinstance(spec, Rejection) or (spec.action in FIRING and tenant.stopped):
            # A later release began it, or nothing fires of the tenant: it waits, as events do.
            return budget
        per_second = spec.per_second / row.homes
        changes = min(budget.changes, self._rate.room(key, per_second, step.now_ms))
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
            self._end(key, now, DONE, step)
        else:
            self._running[key] = now
            self._note(key, now, step)
        return budget.less(now.examined - row.examined, touched + counted)

    def _walk(self, work: JobAtWork, budget: Budget, step: Step) -> Walked:
        """Walk on through the names."""
        counts = Counts(work.row)
        first, end = work.wanted.names
        cursor = work.row.cursor.encode()
        for name, _ in self._store.between(cursor + b"\0" if cursor else first, end):
            if counts.examined >= budget.names or counts.matched >= budget.changes:
                break
            if step.effects.room <= 0:
                break
            counts.add(self._change.apply(name, work, step), work.spec.action, step)
            cursor = name
        else:
            return Walked(counts.of(work.row, cursor), ended=True)
        return Walked(counts.of(work.row, cursor), ended=False)


@lru_cache(maxsize=256)
def _spec(text: str) -> BulkSpec | Rejection:
    return read_bulk(text)
