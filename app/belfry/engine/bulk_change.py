"""The effect of a bulk job on one schedule: the step of the table, a move, or nothing.

    row under the name ─ does the filter match? ─► transition, or move ─► one outcome, told of

A schedule is the job's business where it waits, was defined before the job was asked for, and fits
the filter.  A request that defines a schedule anew while a job runs has the last word: the job
leaves it as it is.  A schedule that fires meanwhile is over, and no business of the job's either.

A job that encrypts payloads anew concerns all pending schedules under another key (`rekeying.py`).

A move changes the instant of a one-shot and leaves all else: another version, the same place among
events of one instant.  A delay counts from the same acceptance as before, so it changes with the
instant.  A recurring schedule is not moved: its rule says when it is due.

    job at offset 900: MOVE by 1 h, prefix a
    a1  defined at offset 100, due 12:00     UPDATED, due 13:00, version + 1
    a2  defined at offset 950                left alone: its definition is younger than the job
    a3  fired at 11:59                       left alone: it is over
    a4  recurs                               REJECTED, not_movable

"Defined before" is a comparison of offsets and needs no clock, so each owner that goes on with the
job decides the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from belfry.engine.asked_rows import Asked
from belfry.engine.culprits import FAULTS, JOB, JOB_UNTOLD, Culprits
from belfry.engine.rekeying import is_under_another, newest_of, rekey
from belfry.engine.reply import Reply
from belfry.engine.reports import SourcePartition
from belfry.engine.step import Step
from belfry.engine.transitions import Transitions
from belfry.engine.unforeseen import CODE, tell
from belfry.engine.waiting import Waiting
from belfry.schedules.bulk import MOVE, REKEY, BulkSpec
from belfry.schedules.fields import EMPTY
from belfry.schedules.identity import generation_of
from belfry.schedules.instant_bounds import instant_problem
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.outcomes import Outcome
from belfry.schedules.transitions import TABLE, State
from belfry.store.layout.jobs import JobRow
from belfry.store.layout.locations import IN_PAUSED, Location, decode_location, is_location
from belfry.store.layout.pending import AT, MOST_NUMBER, Pending, decode_pending, encode_pending
from belfry.store.layout.pending_bytes import PAUSED, depends, is_one_shot, paused
from belfry.store.lookup import Wanted, fits, in_state
from belfry.store.readable import why_unreadable
from belfry.store.recovery import age_of
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Tenant
from belfry.wire.lifecycle import LifecycleEvent

# About the size of an outcome.
OUTCOME_BYTES: Final = 300


@dataclass(frozen=True, slots=True)
class JobAtWork:
    """A job at work: its tenant, its id, its action, and the schedules that it concerns.

    `row` is the job's row as the step found it, `wanted` the filter of `spec` as the store's
    lookups take it.
    """

    tenant: Tenant
    job: str
    row: JobRow
    spec: BulkSpec
    wanted: Wanted


class BulkChange:
    """Carries the action of a job out on one schedule after the other."""

    def __init__(
        self, place: SourcePartition, store: ScheduleStore, waiting: Waiting, culprits: Culprits
    ) -> None:
        self._culprits = culprits
        self._place = place
        self._store = store
        self._waiting = waiting
        self._transitions = Transitions(place, store, waiting)

    def apply(self, name: bytes, work: JobAtWork, step: Step) -> Outcome | str | None:
        """The outcome for a schedule, or the code of a refusal; None where it is left alone."""
        try:
            return self._apply(name, work, step)
        except FAULTS as error:
            self.blame(error, name)
            raise

    def blame(self, error: BaseException, name: bytes) -> None:
        """The step has failed while a job changed the schedule of this name."""
        self._culprits.blame(error, (JOB, name), (JOB_UNTOLD, name))

    @property
    def enough(self) -> bool:
        """Whether the step has met faults enough, and goes on with no other schedule."""
        return self._culprits.enough

    def passes_over(self, name: bytes, step: Step) -> bool:
        """Whether the step has failed before even the refusal of this schedule."""
        fault = self._culprits.of(JOB_UNTOLD, name) if self._culprits.some else None
        if fault is None:
            return False
        self._culprits.of(JOB, name)
        tell(fault, step)
        return True

    def failed(self, name: bytes, version: int, step: Step) -> Reply | None:
        """The refusal of a schedule amid which the step has failed before; None for others."""
        fault = self._culprits.of(JOB, name) if self._culprits.some else None
        if fault is None:
            return None
        tell(fault, step)
        reason = f"What does so ended in {fault.kind}, which is a fault of belfry: report it."
        return Reply(Outcome.REJECTED, version, code=CODE, reason=reason)

    def _apply(self, name: bytes, work: JobAtWork, step: Step) -> Outcome | str | None:
        found = None if self.passes_over(name, step) else self.matched(name, work)
        if found is None:
            return None
        location, row, record = found
        asked = _asked(name, location, row, work)
        if refusal := self.failed(name, row.version, step):
            reply = refusal
        elif work.spec.action == REKEY:
            reply = rekey(found, work.tenant, self._store, step)
        elif work.spec.action == MOVE:
            reply = self._move(asked, (row, record), work.spec, step)
        else:
            state = State.PAUSED if paused(record) else State.PENDING
            reply = self._transitions.carry_out[TABLE[state, work.spec.action]](asked, step)
        self.tell(row, reply, work, step)
        return reply.code or "" if reply.outcome is Outcome.REJECTED else reply.outcome

    def matched(
        self, name: bytes, work: JobAtWork, *, amid: bool = False
    ) -> tuple[bytes, Pending, bytes] | None:
        """Location, row and record of a schedule that is the job's business, or None.

        One that a job is amid (a backfill that has fired some of its range) has fitted the filter
        before, and need not do so again: it fires by itself meanwhile, so that the instant which it
        waits for may have left the filter.
        """
        location = self._store.named(name)
        if not is_location(location):
            return None
        where, due_ms, seq, _ = decode_location(location)
        rekeys = work.spec.action == REKEY
        if age_of(seq) >= age_of(work.row.offset) and not rekeys:
            return None
        placed = work.wanted.in_range(due_ms) and in_state(
            work.wanted, is_paused=where == IN_PAUSED
        )
        if not (amid or placed):
            return None
        record = self._store.pending_at(name, location)
        row = decode_pending(record)
        if rekeys and not is_under_another(row, newest_of(work.tenant)):
            return None
        return (location, row, record) if amid or fits(row, work.wanted) else None

    def _move(
        self, asked: Asked, found: tuple[Pending, bytes], spec: BulkSpec, step: Step
    ) -> Reply:
        assert spec.move_ms is not None
        assert asked.row is not None
        row, record = found
        nominal_ms = row.nominal_ms + spec.move_ms
        refusal = _no_move(row, record, nominal_ms, step.now_ms)
        if refusal is not None:
            return refusal
        most_ms = row.jitter_ms
        due_ms = nominal_ms + (jitter_ms(asked.name, nominal_ms, most_ms) if most_ms else 0)
        when = nominal_ms if row.kind == AT else max(0, row.when + spec.move_ms)
        moved = row._replace(
            due_ms=due_ms, nominal_ms=nominal_ms, version=row.version + 1, when=when
        )
        kept = encode_pending(moved, PAUSED if paused(record) else 0)
        step.effects.room -= len(kept)
        step.effects.accepted[row.tenant] += 1
        self._waiting.left(row.tenant, asked.row)
        self._store.remove(asked.name, asked.row)
        self._store.rewrite(asked.name, kept)
        if paused(kept):
            self._store.move(asked.name, kept, Location(IN_PAUSED, *moved.sort_key))
        else:
            self._waiting.put(moved, kept, step)
        return Reply(Outcome.UPDATED, moved.version, due_ms)

    def tell(self, row: Pending, reply: Reply, work: JobAtWork, step: Step) -> None:
        """Each schedule that a job touches has one outcome, whatever its tenant's level is."""
        life = generation_of(row.life)
        self._told(row.schedule_id, reply, work, step, (reply.version or row.version, life))

    def tell_gone(self, name: bytes, reply: Reply, work: JobAtWork, step: Step) -> None:
        """The outcome for a schedule that was replaced, or ended, while a job changed it."""
        _, _, schedule_id = name.partition(b"/")
        self._told(schedule_id, reply, work, step, (None, None))

    def _told(
        self,
        schedule_id: bytes,
        reply: Reply,
        work: JobAtWork,
        step: Step,
        which: tuple[int | None, int | None],
    ) -> None:
        said = f"bulk job {work.job}" + (f": {work.row.reason}" if work.row.reason else "")
        partition, offset = work.row.origin
        step.effects.room -= OUTCOME_BYTES
        step.effects.lifecycle.append(
            LifecycleEvent(
                tenant=work.tenant.name,
                schedule_id=schedule_id.decode(),
                outcome=reply.outcome,
                fire_id=reply.fire_id,
                version=which[0],
                at=step.now_ms,
                due_at=reply.due_ms,
                code=reply.code,
                reason=said if reply.reason is None else f"{said}. {reply.reason}",
                source_topic=self._place.topic,
                source_partition=partition,
                source_offset=offset,
                generation=which[1],
            )
        )


def _asked(name: bytes, location: bytes, row: Pending, work: JobAtWork) -> Asked:
    """The request that a job stands for; it lies where the job's own request does."""
    request: Any = {**EMPTY, "tenant": work.tenant.name, "action": work.spec.action}
    record = (work.row.offset, work.row.begun_ms, None, None, None)
    begun_ms = work.row.begun_ms
    return Asked(request, record, work.tenant, name, location, row.version, row.life, begun_ms)


def _no_move(row: Pending, record: bytes, nominal_ms: int, now_ms: int) -> Reply | None:
    """Why a schedule is not moved to this instant, or None."""
    if why := why_unreadable(record):
        reason = f"The schedule cannot be read by this worker: {why}."
        return Reply(Outcome.REJECTED, row.version, code="unreadable_schedule", reason=reason)
    if not is_one_shot(record):
        reason = "It recurs, and its rule says when it is due: update the rule instead."
        return Reply(Outcome.REJECTED, row.version, code="not_movable", reason=reason)
    if depends(record):
        reason = "It waits for an acknowledgement, and has no instant yet: update it instead."
        return Reply(Outcome.REJECTED, row.version, code="not_movable", reason=reason)
    if row.version == MOST_NUMBER:
        reason = "Its version is the largest there is: cancel it, and create it anew."
        return Reply(Outcome.REJECTED, row.version, code="version_used_up", reason=reason)
    found = instant_problem(nominal_ms, now_ms)
    if found is None:
        return None
    return Reply(Outcome.REJECTED, row.version, code=found.code, reason=found.reason)
