"""Transitions: what a valid request does to its schedule, by the table of transitions.

Each takes a request and gives the reply; its changes lie in the store's overlay and in the effects.
A schedule that is kept lies in the timeline, in its tenant's backlog (overdue), or aside (paused).

An update keeps as much of the schedule as it says nothing about:

    UPSERT of what waits     version    cadence and count    pause
    nothing new              stays      stay                 stays      UNCHANGED
    another payload          + 1        stay                 stays      UPDATED
    another trigger          + 1        begin anew           is over    UPDATED

The row that a request asks for is made in `asked_rows.py`; what stands in its way is in
`conditions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from belfry.engine.asked_rows import Asked, AskedRows, goes_on, imported, jitter_of, slid
from belfry.engine.calendars import Calendars
from belfry.engine.compiled_rule import compiled
from belfry.engine.conditions import changed_too_often, over, over_since, oversize, used_up
from belfry.engine.emit import fire_extra, fired_bytes
from belfry.engine.reply import Reply
from belfry.engine.reports import SourcePartition
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.schedules.identity import generation_at
from belfry.schedules.outcomes import Outcome
from belfry.schedules.transitions import Transition as TableStep
from belfry.store.layout.keys import awaited_key
from belfry.store.layout.locations import IN_PAUSED, Location
from belfry.store.layout.pending import (
    MOST_NUMBER,
    Pending,
    decode_pending,
    encode_pending,
)
from belfry.store.layout.pending_bytes import (
    PAUSED,
    held,
    paused,
    resumed,
    same_definition,
    with_fires_of,
)
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore


class Transitions:
    """Carries steps of the table out."""

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        waiting: Waiting,
        calendars: Calendars | None = None,
    ) -> None:
        """`calendars` has the days of schedules; without it no schedule is defined."""
        self._rows = AskedRows(calendars)
        self._place = place
        self._store = store
        self._waiting = waiting
        self.carry_out: dict[TableStep, Callable[[Asked, Step], Reply]] = {
            TableStep.BEGIN: self.begin,
            TableStep.REPLACE: self.replace,
            TableStep.END: self.end,
            TableStep.PAUSE: self.pause,
            TableStep.RESUME: self.resume,
            TableStep.UNCHANGED: self.unchanged,
            TableStep.EXTRA: self.extra,
            TableStep.ACKNOWLEDGE: self.acknowledge,
            TableStep.ACKNOWLEDGE_LAST: self.acknowledge,
            TableStep.CONFLICT: self.conflict,
            TableStep.TOO_LATE: self.too_late,
            TableStep.NOT_FOUND: self.not_found,
        }

    def begin(self, asked: Asked, step: Step) -> Reply:
        """Begin a generation, at its first occurrence or where an export stood."""
        life = generation_at(self._place.partition, asked.record[0])
        row = self._rows.row(asked, life, 1)
        standing = asked.request["standing"]
        if standing is not None:
            row = imported(asked, row, standing)
            since = over_since(asked, row.due_ms)
            if since is not None:
                return since
        asked.generation = life
        record = encode_pending(row, PAUSED if standing is not None and standing["paused"] else 0)
        if (size := fired_bytes(row, record)) > asked.tenant.max_record_bytes:
            return oversize(asked.tenant, size)
        return self._keep(asked, row, record, step)

    def replace(self, asked: Asked, step: Step) -> Reply:
        """Replace the definition; the cadence goes on where the trigger stays as it was."""
        assert asked.row is not None
        before = self._store.pending_at(asked.name, asked.row)
        old = decode_pending(before)
        readable = not why_unreadable(before)
        version = min(old.version + 1, MOST_NUMBER)
        passed = self._rows.passed_ms(old, step) if readable else 0
        row = self._rows.row(asked, old.life, version, passed)
        same_trigger = readable and goes_on(old, row)
        longest_ms = asked.request["max_wait_ms"]
        if longest_ms is not None:
            row = slid(row, old if readable else None, longest_ms)
        elif same_trigger:
            if row.extra and old.occurrence >= compiled(row.extra).max_fires:
                return used_up(asked, old.occurrence)
            # The instant stays, of a delay that runs too, and so does the number of the next fire.
            due_ms = old.nominal_ms + jitter_of(asked, old.nominal_ms)
            row = row.following(due_ms, old.nominal_ms, old.occurrence)
        record = encode_pending(row)
        if same_definition(before, record) and not (longest_ms and row.due_ms != old.due_ms):
            return Reply(Outcome.UNCHANGED, old.version, old.due_ms)
        if old.version == MOST_NUMBER:
            return changed_too_often(old.version)
        if (size := fired_bytes(row, record)) > asked.tenant.max_record_bytes:
            return oversize(asked.tenant, size)
        if paused(before) and same_trigger:
            # Another payload is no reason to go on.
            record = held(record)
        if readable and old.jitter_ms == row.jitter_ms:
            record = with_fires_of(before, record)
        self._drop(asked)
        return replace(self._keep(asked, row, record, step), outcome=Outcome.UPDATED)

    def end(self, asked: Asked, _step: Step) -> Reply:
        """Cancel: the schedule goes, and leaves no marker."""
        assert asked.row is not None
        due_ms = decode_pending(self._store.pending_at(asked.name, asked.row)).due_ms
        self._drop(asked)
        return Reply(Outcome.CANCELLED, asked.version, due_ms)

    def _found(self, asked: Asked) -> tuple[bytes, Pending]:
        """The pending record that the schedule's name leads to."""
        assert asked.row is not None
        record = self._store.pending_at(asked.name, asked.row)
        return record, decode_pending(record)

    def _drop(self, asked: Asked) -> None:
        """Take the pending record of a schedule away."""
        assert asked.row is not None
        self._waiting.left(asked.tenant.name_bytes, asked.row)
        self._store.remove(asked.name, asked.row)

    def pause(self, asked: Asked, step: Step) -> Reply:
        """Take the schedule out of the timeline; its instant stays as it is."""
        record, row = self._found(asked)
        self._drop(asked)
        kept = held(record)
        step.effects.room -= len(kept)
        self._put(asked, row, kept, step)
        return Reply(Outcome.PAUSED, row.version, row.due_ms)

    def resume(self, asked: Asked, step: Step) -> Reply:
        """Put the schedule back; where its instant is over, it is late as after an outage."""
        record, row = self._found(asked)
        self._drop(asked)
        kept = resumed(record)
        step.effects.room -= len(kept)
        self._put(asked, row, kept, step)
        return Reply(Outcome.RESUMED, row.version, row.due_ms)

    def unchanged(self, asked: Asked, _step: Step) -> Reply:
        """The schedule is already as asked for."""
        return Reply(Outcome.UNCHANGED, asked.version, self._found(asked)[1].due_ms)

    def extra(self, asked: Asked, step: Step) -> Reply:
        """Fire once more, now; the schedule itself stays as it is."""
        assert asked.row is not None
        if asked.tenant.stopped:
            reason = f"Events of {asked.tenant.name} wait: {asked.tenant.stopped}. Try again."
            return Reply(Outcome.REJECTED, code="tenant_held", reason=reason)
        record, row = self._found(asked)
        if why := why_unreadable(record):
            reason = f"The schedule cannot be fired by this worker: {why}."
            return Reply(Outcome.REJECTED, code="unreadable_schedule", reason=reason)
        identity = fire_extra(row, asked.tenant, asked.record[0], step)
        return Reply(Outcome.TRIGGERED, asked.version, row.due_ms, fire_id=identity.decode())

    def acknowledge(self, asked: Asked, step: Step) -> Reply:
        """Let go on what waits for a fire: the schedule's next, or the next of its group."""
        fire_id = asked.request["fire_id"] or ""
        key = awaited_key(asked.tenant.name_bytes, fire_id.encode())
        awaited = self._waiting.locks.awaited(key)
        if awaited is None or awaited.schedule_id != asked.request["schedule_id"].encode():
            if not asked.version:
                return self.not_found(asked, step)
            reason = "It was acknowledged before, its time-out is over, or it asked for none."
            return Reply(Outcome.UNCHANGED, asked.version, None, "not_awaited", reason, fire_id)
        let_go = self._waiting.locks.open(key)
        step.effects.room -= sum([len(record) for _, record in let_go])
        self._waiting.let_go(let_go)
        version, due_ms = awaited.version, awaited.due_ms
        return Reply(Outcome.UPDATED, version, due_ms, fire_id=fire_id)

    def conflict(self, asked: Asked, _step: Step) -> Reply:
        """It exists; the code tells whether it is the very schedule that was asked for."""
        before, old = self._found(asked)
        if same_definition(before, encode_pending(self._rows.row(asked, old.life, old.version))):
            reason = "A schedule with this id and this very definition exists."
            return Reply(Outcome.CONFLICT, old.version, old.due_ms, "same_definition", reason)
        reason = "A schedule with this id exists; UPSERT replaces it."
        return Reply(Outcome.CONFLICT, asked.version, None, "exists", reason)

    def too_late(self, asked: Asked, _step: Step) -> Reply:
        """The schedule is over, and remembered for a day."""
        return over(asked)

    def not_found(self, _asked: Asked, _step: Step) -> Reply:
        """There is none, or none that is remembered."""
        return Reply(Outcome.NOT_FOUND, code="not_found", reason="No schedule has this id.")

    # -- keeping a schedule ----------------------------------------------------------------------

    def _keep(self, asked: Asked, row: Pending, record: bytes, step: Step) -> Reply:
        due_ms, version = row.due_ms, row.version
        step.effects.room -= len(record)
        step.effects.tenants.add(asked.tenant.name)
        self._put(asked, row, record, step)
        return Reply(Outcome.ACCEPTED, version, due_ms)

    def _put(self, asked: Asked, row: Pending, record: bytes, step: Step) -> None:
        self._store.rewrite(asked.name, record)
        if paused(record):
            self._store.move(asked.name, record, Location(IN_PAUSED, *row.sort_key))
        else:
            self._waiting.put(row, record, step)
