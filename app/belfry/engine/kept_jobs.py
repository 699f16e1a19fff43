"""Bulk jobs as their partition keeps them: begun and stopped by requests, ended by their walks.

    request BULK ────► row, RUNNING ── walk ──► row with its cursor ── walk ──► DONE
    BULK_STOP ─────────────┴──────────────────────────┴──────────────────────► STOPPED

A tenant that is spread lives in several partitions.  The request goes from home to home; the first
gives the verdict, the others follow, and each has a row and a cursor of its own:

    home 1   request ─► verdict ACCEPTED ─► forwarded ─► walks a … m
    home 2                                  request ───► walks b … z        no verdict

The row of an ended job stays for a week, so that its id names one job and its counts can be read.
No more than `MOST_ENDED` of a tenant stay, and no more than `MOST_UNDER_WAY` are under way.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.reply import MOST_REASON, Reply
from belfry.engine.step import Step
from belfry.engine.undo import Tracked, UndoLog
from belfry.schedules.outcomes import Outcome
from belfry.schedules.request import Request
from belfry.store.layout.jobs import (
    JOB_END,
    JOB_PREFIX,
    KEPT_MS,
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
from belfry.wire.record import Origin, SourceRecord

# Jobs of a tenant that are under way in a partition, and ended ones that are kept there.
MOST_UNDER_WAY: Final = 20
MOST_ENDED: Final = 200
# The code of an outcome that is about a job and no schedule.
CODE: Final = "bulk_job"


class Begun(NamedTuple):
    """The origin of a request for a job, and its way on: where it came in, and where it goes.

    `homes` is the number of partitions that carry it out, `at_ms` when it arrived (epoch ms).
    """

    origin: Origin
    homes: int
    at_ms: int


class KeptJobs:
    """The rows of one partition's jobs; those that are under way are remembered.

    A walk sees the rows of a step once they are committed, so a job that was begun in this very
    step is not among the `oldest`.
    """

    def __init__(self, store: ScheduleStore, undo: UndoLog) -> None:
        self._store = store
        rows = ((key, decode_job(row)) for key, row in store.between(JOB_PREFIX, JOB_END))
        self._running = Tracked(undo, {key: row for key, row in rows if row.state == RUNNING})
        self._fresh: set[bytes] = set()
        undo.scratch(set.clear, self._fresh)

    @property
    def under_way(self) -> bool:
        """Whether any job is."""
        return bool(self._running)

    def tenants(self) -> set[bytes]:
        """The tenants that have a job under way."""
        return {names_of_job(key)[0] for key in self._running}

    def oldest(self) -> dict[bytes, tuple[bytes, JobRow]]:
        """By tenant the job that was asked for first, if this step has not begun it."""
        first: dict[bytes, tuple[bytes, JobRow]] = {}
        for key in sorted(self._running, key=lambda key: age_of(self._running[key].offset)):
            first.setdefault(names_of_job(key)[0], (key, self._running[key]))
        return {tenant: job for tenant, job in first.items() if job[0] not in self._fresh}

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
            self.end(key, job, STOPPED, step)
        elif not elsewhere:
            return Reply(Outcome.UNCHANGED, code=CODE)
        return Reply(Outcome.CANCELLED, code=CODE)

    def follow(self, record: SourceRecord, request: Request, begun: Begun, step: Step) -> None:
        """Begin a job that another home of the tenant has begun; its verdict has fallen there."""
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
        self._fresh.add(key)
        self.come_to(key, row, step)
        self._forget_oldest(request["tenant"].encode())

    def _forget_oldest(self, tenant: bytes) -> None:
        """Keep no more than `MOST_ENDED` jobs that have ended."""
        rows = ((key, decode_job(row)) for key, row in self._store.between(*jobs_range(tenant)))
        ended = sorted((row.ended_ms, key) for key, row in rows if row.ended_ms is not None)
        for _, key in ended[: max(0, len(ended) - MOST_ENDED)]:
            if key not in self._store.changed:
                self._store.note(key, None)

    # -- changed by walks -----------------------------------------------------------------------

    def come_to(self, key: bytes, row: JobRow, step: Step) -> None:
        """Keep how far a job has come; its row is written in the step that made the changes."""
        self._running[key] = row
        self._note(key, row, step)

    def end(self, key: bytes, row: JobRow, how: str, step: Step) -> None:
        """A job is over: DONE or STOPPED."""
        del self._running[key]
        self._note(key, row._replace(state=how, ended_ms=step.now_ms), step)

    def _note(self, key: bytes, row: JobRow, step: Step) -> None:
        kept = encode_job(row)
        step.effects.room -= len(kept)
        self._store.note(key, kept, None if row.ended_ms is None else KEPT_MS)
