"""A backfill at work: it fires the occurrences of a range of the past, schedule after schedule.

    names      a                   b                           c
    instants   ●  ●  ●             ●  ●  ●  ●                  ●
    step 7     ──────────────────────────►                          cursor a, amid b: 2 fired
    step 8     ─ killed, rolled back ─                              cursor a, amid b: 2 fired
    step 8'                               ────────────────────►     cursor c, DONE

The place within a schedule is the instant of its last occurrence that was fired, and lies in the
row of the job beside the end of its range, which is found when the schedule is begun: its pending
occurrence at that time fires by itself, also amid the job.  So each occurrence fires once, and with
the id that follows from job, schedule and instant.  A schedule has its outcome when its range is
done: TRIGGERED with the number, UNCHANGED where the range holds none.  A schedule that ends, or is
defined anew, amid its range is left there.

These fires are extra ones, as those of a TRIGGER are: they lock nothing, wait for no lock, and
count for no `max_fires`.

`schedules/backfill.py` says which instants a range holds, `jobs.py` when the job has its turn.
A job fires 100 000 occurrences at most; a schedule whose range would be too long is refused as a
whole, before its first fire, and the job goes on with the next schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from belfry.engine.bulk_change import BulkChange, JobAtWork
from belfry.engine.compiled_rule import compiled
from belfry.engine.culprits import FAULTS
from belfry.engine.emit import fire_past, route_to
from belfry.engine.job_counts import Budget, Counts, Walked
from belfry.engine.payloads import decrypted, why_undecryptable
from belfry.engine.reply import Reply
from belfry.engine.step import Step
from belfry.schedules.backfill import MOST_OCCURRENCES, PastRange, past_range
from belfry.schedules.bulk import BACKFILL
from belfry.schedules.identity import backfill_fire_id
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.jobs import JobRow
from belfry.store.layout.pending import Pending
from belfry.store.layout.pending_bytes import is_one_shot
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore

# About the size of a fired record without the user's value and headers.
FIRED_BYTES: Final = 300


class Amid(NamedTuple):
    """The schedule that a backfill is amid: the instant of its last fire, and how many there are.

    Before the first of them `fired` is 0, and the instants mean nothing.  From then on its range
    ends before `until_ms`, also when the schedule has fired by itself meanwhile.
    """

    name: bytes
    at_ms: int = 0
    fired: int = 0
    until_ms: int = 0


class Advance(NamedTuple):
    """Where a schedule stands after a step, and its outcome, if its range is done.

    `found` is None where the schedule is left alone, else as `BulkChange.apply` has it.  `counted`
    days were looked at to count its range, and of one that was refused, or begun and not done,
    instants as well.
    """

    amid: Amid
    is_over: bool = True
    found: Outcome | str | None = None
    counted: int = 0


class Backfill:
    """Walks through the schedules of a job, and through the past of each."""

    def __init__(self, store: ScheduleStore, change: BulkChange) -> None:
        self._store = store
        self._change = change

    def walk(self, work: JobAtWork, budget: Budget, step: Step) -> Walked:
        """Walk on; occurrences that are counted one by one take from the budget as fires do.

        Ends with the budget, with the room of the step, or with the last name of the job.
        """
        counts, row = Counts(work.row), work.row
        cursor, amid = row.cursor.encode(), _amid(row)
        fired, most = row.fired, row.fired + budget.changes
        counted = 0
        for name in self._names(work, cursor, amid):
            used_up = counts.examined >= budget.names or fired + counted >= most
            if used_up or step.effects.room <= 0 or self._change.enough:
                return Walked(
                    _row(counts.of(row, cursor), fired, amid), ended=False, counted=counted
                )
            before = amid or Amid(name)
            try:
                done = self._schedule(before, work, (fired, most - fired), step)
            except FAULTS as error:
                self._change.blame(error, name)
                raise
            fired += done.amid.fired - before.fired
            counted += done.counted
            if not done.is_over:
                now = _row(counts.of(row, cursor), fired, done.amid)
                return Walked(now, ended=False, counted=counted)
            counts.add(done.found, BACKFILL, step)
            cursor, amid = name, None
        return Walked(_row(counts.of(row, cursor), fired, None), ended=True, counted=counted)

    def _names(self, work: JobAtWork, cursor: bytes, amid: Amid | None) -> Iterator[bytes]:
        """The names to go on with; the one that the job is amid may be gone, and comes first."""
        first, end = work.wanted.names
        if amid is not None:
            yield amid.name
            cursor = amid.name
        for name, _ in self._store.between(cursor + b"\0" if cursor else first, end):
            yield name

    def _schedule(self, amid: Amid, work: JobAtWork, fires: tuple[int, int], step: Step) -> Advance:
        """Go on with a schedule; `fires` are those of the job so far, and how many may follow."""
        if self._change.passes_over(amid.name, step):
            return Advance(amid)
        standing = self._change.matched(amid.name, work, amid=amid.fired > 0)
        if standing is None and not amid.fired:
            return Advance(amid)
        if standing is None:
            refusal = _gone(amid)
            self._change.tell_gone(amid.name, refusal, work, step)
            return Advance(amid, found=refusal.code)
        _, row, record = standing
        if failed := self._change.failed(amid.name, row.version, step):
            self._change.tell(row, failed, work, step)
            return Advance(amid, found=failed.code)
        past, counted, looks = _past(row, record, amid, work), 0, 0
        if isinstance(past, PastRange) and not amid.fired:
            looks = past.looks
            past, counted = _bounded(past, fires[0])
        if isinstance(past, Reply):
            self._change.tell(row, past, work, step)
            return Advance(amid, found=past.code, counted=counted + looks)
        plain = decrypted(row, work.tenant.name, work.tenant.payload_keys)
        done = self._fire(plain, past, amid, work, fires[1], step)
        return done._replace(counted=looks if done.is_over else counted + looks)

    def _fire(
        self, row: Pending, past: PastRange, amid: Amid, work: JobAtWork, most: int, step: Step
    ) -> Advance:
        """Fire so many of a range at most, and tell of the schedule behind the last."""
        route, size = route_to(work.tenant, step), FIRED_BYTES + len(row.name)
        for nominal_ms in past.instants(amid.at_ms if amid.fired else None):
            if not most or step.effects.room <= 0:
                return Advance(amid, is_over=False)
            identity = backfill_fire_id(row.name, row.life, work.row.origin, nominal_ms)
            fire_past(row, route, (identity, nominal_ms), work.job, step)
            step.effects.room -= size
            amid, most = Amid(amid.name, nominal_ms, amid.fired + 1, past.end_ms), most - 1
        reply = _told(amid)
        self._change.tell(row, reply, work, step)
        return Advance(amid, found=reply.outcome)


def _amid(row: JobRow) -> Amid | None:
    if not row.amid:
        return None
    return Amid(row.amid.encode(), row.amid_ms, row.amid_fired, row.amid_until)


def _row(row: JobRow, fired: int, amid: Amid | None) -> JobRow:
    """The row of the job with where it stands; a schedule is begun once it has fired."""
    at = amid if amid is not None and amid.fired else Amid(b"")
    return row._replace(
        fired=fired,
        amid=at.name.decode(),
        amid_ms=at.at_ms,
        amid_fired=at.fired,
        amid_until=at.until_ms,
    )


def _past(row: Pending, record: bytes, amid: Amid, work: JobAtWork) -> PastRange | Reply:
    """The range of a schedule that is over, or why it has none."""
    if why := why_unreadable(record) or why_undecryptable(row, work.tenant):
        reason = f"The schedule cannot be fired by this worker: {why}."
        return Reply(Outcome.REJECTED, row.version, code="unreadable_schedule", reason=reason)
    if is_one_shot(record):
        reason = "It fires once, and waits for that: a range of the past is for what recurs."
        return Reply(Outcome.REJECTED, row.version, code="not_recurring", reason=reason)
    spec = work.spec
    assert spec.range_from is not None
    assert spec.range_until is not None
    until_ms = amid.until_ms if amid.fired else min(spec.range_until, work.row.begun_ms)
    return past_range(compiled(row.extra).trigger, row.nominal_ms, spec.range_from, until_ms)


def _bounded(past: PastRange, fired: int) -> tuple[PastRange | Reply, int]:
    """The range, or the refusal of one that is too long for what the job may still fire.

    And how many instants were looked at for that.
    """
    room = min(MOST_OCCURRENCES - fired, past.most)
    count = past.number(room)
    counted = count if past.trigger.looks_at_each else 0
    if count <= room:
        return past, counted
    if past.is_too_long:
        reason = (
            "The range has more days than are counted for a rule that has so much to look at on"
            " each: ask for a shorter range. None of its occurrences was fired."
        )
        return Reply(Outcome.REJECTED, code="too_many_occurrences", reason=reason), counted
    before = f" beside the {fired} of schedules before it" if fired else ""
    holds = f"at least {count}" if counted else f"{count}"
    moved = f", and {past.most} of a schedule that a calendar moves" if counted else ""
    reason = (
        f"The range holds {holds} occurrences{before}, and a job fires at most"
        f" {MOST_OCCURRENCES}{moved}: ask for a shorter range. None of them was fired."
    )
    return Reply(Outcome.REJECTED, code="too_many_occurrences", reason=reason), counted


def _gone(amid: Amid) -> Reply:
    reason = (
        f"It ended, or was defined anew, amid the job: {amid.fired} occurrences were fired, the"
        f" last that of {format_instant(amid.at_ms)}."
    )
    return Reply(Outcome.REJECTED, code="schedule_changed", reason=reason)


def _told(amid: Amid) -> Reply:
    """The reply for a schedule whose range is done."""
    if not amid.fired:
        return Reply(Outcome.UNCHANGED, reason="The range holds no occurrence that is over")
    number = f"{amid.fired} {'occurrence was' if amid.fired == 1 else 'occurrences were'} fired"
    return Reply(
        Outcome.TRIGGERED, reason=f"{number}, the last that of {format_instant(amid.at_ms)}"
    )
