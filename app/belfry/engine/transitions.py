"""Transitions: the effect of a valid request on its schedule, by the table of transitions.

Each takes a request and gives the reply; its changes lie in the store's overlay and in the effects.
A schedule that is kept lies in the timeline, in its tenant's backlog (overdue), or aside (paused).

An update keeps as much of the schedule as it says nothing about:

    UPSERT of what waits     version    cadence and count    pause
    nothing new              stays      stay                 stays      UNCHANGED
    another payload          + 1        stay                 stays      UPDATED
    another trigger          + 1        begin anew           is over    UPDATED

The row that a request asks for is made in `asked_rows.py`; its conditions are in `conditions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from belfry.engine.after_acks import AfterAcks
from belfry.engine.asked_rows import (
    Asked,
    AskedRows,
    first_flags,
    goes_on,
    imported,
    jitter_of,
    slid,
)
from belfry.engine.calendars import Calendars
from belfry.engine.compiled_rule import compiled
from belfry.engine.conditions import (
    all_passed,
    changed_too_often,
    not_found,
    over,
    over_since,
    oversize,
    used_up,
)
from belfry.engine.dependence_checks import DependenceChecks
from belfry.engine.emit import fire_extra, fired_bytes
from belfry.engine.groups import position_of
from belfry.engine.large_payloads import note_object
from belfry.engine.payloads import decrypted, is_same
from belfry.engine.reply import Reply
from belfry.engine.reports import SourcePartition
from belfry.engine.step import Step
from belfry.engine.triggered import not_fired
from belfry.engine.waiting import Waiting
from belfry.schedules.identity import generation_at
from belfry.schedules.outcomes import Outcome
from belfry.schedules.transitions import Transition as TableStep
from belfry.store.layout.locations import IN_PAUSED, Location
from belfry.store.layout.pending import MOST_NUMBER, Pending, decode_pending, encode_pending
from belfry.store.layout.pending_bytes import (
    DEPENDS,
    depends,
    held,
    kind_and_flags,
    paused,
    resumed,
    with_fires_of,
)
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore
from belfry.tenants.regrouped import as_if_here


class Transitions:
    """Carries steps of the table out."""

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        waiting: Waiting,
        calendars: Calendars | None = None,
        after_acks: AfterAcks | None = None,
    ) -> None:
        """Without `calendars` no schedule is defined, without `after_acks` none acknowledged."""
        self._rows = AskedRows(calendars)
        self._place = place
        self._store = store
        self._waiting = waiting
        self._checks = DependenceChecks(store, waiting)
        self.carry_out: dict[TableStep, Callable[[Asked, Step], Reply]] = {
            TableStep.BEGIN: self.begin,
            TableStep.REPLACE: self.replace,
            TableStep.END: self.end,
            TableStep.PAUSE: self.pause,
            TableStep.RESUME: self.resume,
            TableStep.UNCHANGED: self.unchanged,
            TableStep.EXTRA: self.extra,
            TableStep.CONFLICT: self.conflict,
            TableStep.TOO_LATE: lambda asked, _step: over(asked),
            TableStep.NOT_FOUND: lambda _asked, _step: not_found(),
        }
        if after_acks is not None:
            acknowledge = after_acks.acknowledge
            self.carry_out[TableStep.ACKNOWLEDGE] = acknowledge
            self.carry_out[TableStep.ACKNOWLEDGE_LAST] = acknowledge

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
        flags = first_flags(row, standing)
        if flags & DEPENDS and (no := self._checks.problem(asked)):
            return no
        asked.generation = life
        record = encode_pending(row, flags)
        if (size := fired_bytes(row, record)) > asked.tenant.max_record_bytes:
            return oversize(asked.tenant, size)
        return self._keep(asked, row, record, step)

    def replace(self, asked: Asked, step: Step) -> Reply:
        """Replace the definition; the cadence goes on where the trigger stays as it was."""
        before, old = self._found(asked)
        readable = not why_unreadable(before)
        version = min(old.version + 1, MOST_NUMBER)
        passed = self._rows.passed_ms(old, step) if readable else 0
        row = self._rows.row(asked, old.life, version, passed)
        same_trigger = readable and goes_on(old, row)
        no = None if same_trigger else all_passed(row, passed)
        if (longest_ms := asked.request["max_wait_ms"]) is not None:
            row = slid(row, old if readable else None, longest_ms)
        elif same_trigger:
            if row.extra and old.occurrence >= compiled(row.extra).max_fires:
                return used_up(asked, old.occurrence)
            # The instant stays, of a delay that runs too, and so does the number of the next fire.
            due_ms = old.nominal_ms + jitter_of(asked, old.nominal_ms)
            row = row.following(due_ms, old.nominal_ms, old.occurrence)
        flags = kind_and_flags(before)[1] & DEPENDS if same_trigger else first_flags(row, None)
        record = encode_pending(row, flags)
        same = is_same(before, old, record, asked.tenant)
        if same and not (longest_ms and row.due_ms != old.due_ms):
            return Reply(Outcome.UNCHANGED, old.version, old.due_ms)
        if old.version == MOST_NUMBER:
            return changed_too_often(old.version)
        if (size := fired_bytes(row, record)) > asked.tenant.max_record_bytes:
            return oversize(asked.tenant, size)
        if no or (flags and not same_trigger and (no := self._checks.problem(asked))):
            return no
        if paused(before) and same_trigger:
            # Another payload is no reason to go on.
            record = held(record)
        if readable and old.jitter_ms == row.jitter_ms:
            record = with_fires_of(before, record, same_rule=same_trigger)
        self._drop(asked)
        return replace(self._keep(asked, row, record, step), outcome=Outcome.UPDATED)

    def end(self, asked: Asked, _step: Step) -> Reply:
        """Cancel: the schedule goes, and leaves no marker."""
        due_ms = self._found(asked)[1].due_ms
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
        return self._with_flags(asked, held, Outcome.PAUSED, step)

    def resume(self, asked: Asked, step: Step) -> Reply:
        """Put the schedule back; where its instant is over, it is late as after an outage."""
        return self._with_flags(asked, resumed, Outcome.RESUMED, step)

    def _with_flags(
        self, asked: Asked, change: Callable[[bytes], bytes], outcome: Outcome, step: Step
    ) -> Reply:
        record, row = self._found(asked)
        self._drop(asked)
        kept = change(record)
        step.effects.room -= len(kept)
        self._put(asked, row, kept, step)
        return Reply(outcome, row.version, row.due_ms)

    def unchanged(self, asked: Asked, _step: Step) -> Reply:
        """The schedule is already as asked for."""
        return Reply(Outcome.UNCHANGED, asked.version, self._found(asked)[1].due_ms)

    def extra(self, asked: Asked, step: Step) -> Reply:
        """Fire once more, now; the schedule itself stays as it is."""
        if stopped := as_if_here(asked.tenant).stopped:
            reason = f"Events of {asked.tenant.name} wait: {stopped}. Try again."
            return Reply(Outcome.REJECTED, code="tenant_held", reason=reason)
        record, row = self._found(asked)
        if no := not_fired(record, row, asked.tenant, self._waiting):
            return no
        plain = decrypted(row, asked.tenant.name, asked.tenant.payload_keys)
        position = position_of(self._place, asked.tenant, asked.record[0])
        identity = fire_extra(plain, asked.tenant, position, step)
        return Reply(Outcome.TRIGGERED, asked.version, row.due_ms, fire_id=identity.decode())

    def conflict(self, asked: Asked, _step: Step) -> Reply:
        """It exists; the code tells whether it is the very schedule that was asked for."""
        before, old = self._found(asked)
        wanted = encode_pending(self._rows.row(asked, old.life, old.version))
        if is_same(before, old, wanted, asked.tenant):
            reason = "A schedule with this id and this very definition exists."
            return Reply(Outcome.CONFLICT, old.version, old.due_ms, "same_definition", reason)
        reason = "A schedule with this id exists; UPSERT replaces it."
        return Reply(Outcome.CONFLICT, asked.version, None, "exists", reason)

    def _keep(self, asked: Asked, row: Pending, record: bytes, step: Step) -> Reply:
        step.effects.room -= len(record)
        step.effects.tenants.add(asked.tenant.name)
        if asked.tenant.claims_over is not None:
            note_object(asked.request, row, asked.tenant, step)
        self._put(asked, row, record, step)
        return Reply(Outcome.ACCEPTED, row.version, row.due_ms)

    def _put(self, asked: Asked, row: Pending, record: bytes, step: Step) -> None:
        self._store.rewrite(asked.name, record)
        if paused(record):
            self._store.move(asked.name, record, Location(IN_PAUSED, *row.sort_key))
        elif depends(record):
            self._waiting.dependents.hold(row, record)
        else:
            self._waiting.put(row, record, step)
