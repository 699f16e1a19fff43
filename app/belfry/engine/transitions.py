"""Transitions: what a valid request does to its schedule, by the table of transitions.

Each takes a request and gives the reply; its changes lie in the store's overlay and in the effects.
A schedule that is kept lies in the timeline, in its tenant's backlog (overdue), or aside (paused).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from belfry.engine.calendars import Calendars
from belfry.engine.compiled_rule import compiled
from belfry.engine.emit import fire_extra, fired_bytes
from belfry.engine.passed import nominal_at, passed_ms
from belfry.engine.reports import Reply, SourcePartition
from belfry.engine.sliding import slid
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.schedules.identity import generation_at
from belfry.schedules.instants import format_instant
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.outcomes import Outcome
from belfry.schedules.request import TRACE_HEADERS, ExportedState, Request
from belfry.schedules.rule import KINDS, ONE_SHOT, RECURRING, encode_rule, has_calendar, rule_of
from belfry.schedules.transitions import Transition as TableStep
from belfry.schedules.triggers import trigger_of
from belfry.store.layout.keys import awaited_key
from belfry.store.layout.locations import IN_PAUSED, Location
from belfry.store.layout.pending import (
    KIND_CODES,
    MOST_NUMBER,
    Pending,
    decode_pending,
    encode_headers,
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
from belfry.store.layout.records import ENDED_COMPLETED, ENDED_FIRED, ENDED_MISSED, decode_marker
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Tenant
from belfry.wire.record import SourceRecord

# The reply to a request that comes too late: code, and what has become of the schedule.
ENDS: Final = {
    ENDED_FIRED: ("fired", "has fired"),
    ENDED_COMPLETED: ("completed", "was completed"),
    ENDED_MISSED: ("missed", "was given up as too late"),
}


@dataclass(slots=True)
class Asked:
    """A valid request on its way to its verdict; `row` is what its name holds today.

    `generation` is that of the schedule (its life); a step that begins one sets it.
    """

    request: Request
    record: SourceRecord
    tenant: Tenant
    name: bytes
    row: bytes | None
    version: int
    generation: int | None


class Transitions:
    """Carries steps of the table out; `accepted_ms` is the arrival of the request."""

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        waiting: Waiting,
        calendars: Calendars | None = None,
    ) -> None:
        """`calendars` has the days of schedules; without it no schedule is defined."""
        self._calendars = calendars
        self._place = place
        self._store = store
        self._waiting = waiting
        self.accepted_ms = 0
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
        row = self._pending(asked, life, 1)
        standing = asked.request["standing"]
        if standing is not None:
            row = self._imported(asked, row, standing)
            since = _over_since(asked, row.due_ms)
            if since is not None:
                return since
        asked.generation = life
        record = encode_pending(row, PAUSED if standing is not None and standing["paused"] else 0)
        if (size := fired_bytes(row, record)) > asked.tenant.max_record_bytes:
            return _oversize(asked.tenant, size)
        return self._keep(asked, row, record, step)

    def _imported(self, asked: Asked, row: Pending, standing: ExportedState) -> Pending:
        """The row of a life that goes on where an exported one stood."""
        nominal_ms, number = nominal_at(row, standing["next_at"]), standing["occurrence"]
        due_ms = nominal_ms + self._jitter(asked, nominal_ms)
        return row._replace(
            due_ms=due_ms, nominal_ms=nominal_ms, version=standing["version"], occurrence=number
        )

    def replace(self, asked: Asked, step: Step) -> Reply:
        """Replace the definition; the cadence goes on where the trigger stays as it was."""
        assert asked.row is not None
        before = self._store.pending_at(asked.name, asked.row)
        old = decode_pending(before)
        readable = not why_unreadable(before)
        version = min(old.version + 1, MOST_NUMBER)
        passed = self._passed_ms(old, step) if readable else 0
        row = self._pending(asked, old.life, version, passed)
        goes_on = readable and _goes_on(old, row)
        longest_ms = asked.request["max_wait_ms"]
        if longest_ms is not None:
            row = slid(row, old if readable else None, longest_ms)
        elif goes_on:
            if row.extra and old.occurrence >= compiled(row.extra).max_fires:
                return _used_up(asked, old.occurrence)
            # The instant stays, of a delay that runs too, and so does the number of the next fire.
            due_ms = old.nominal_ms + self._jitter(asked, old.nominal_ms)
            row = row.following(due_ms, old.nominal_ms, old.occurrence)
        record = encode_pending(row)
        if same_definition(before, record) and not (longest_ms and row.due_ms != old.due_ms):
            return Reply(Outcome.UNCHANGED, old.version, old.due_ms)
        if old.version == MOST_NUMBER:
            return _changed_too_often(old.version)
        if (size := fired_bytes(row, record)) > asked.tenant.max_record_bytes:
            return _oversize(asked.tenant, size)
        if paused(before) and goes_on:
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
        if same_definition(before, encode_pending(self._pending(asked, old.life, old.version))):
            reason = "A schedule with this id and this very definition exists."
            return Reply(Outcome.CONFLICT, old.version, old.due_ms, "same_definition", reason)
        reason = "A schedule with this id exists; UPSERT replaces it."
        return Reply(Outcome.CONFLICT, asked.version, None, "exists", reason)

    def too_late(self, asked: Asked, _step: Step) -> Reply:
        assert asked.row is not None
        marker = decode_marker(asked.row)
        code, became = ENDS[marker.how]
        reason = f"The schedule {became} within the last 24 hours."
        return Reply(Outcome.TOO_LATE, asked.version, marker.due_ms, code, reason)

    def not_found(self, _asked: Asked, _step: Step) -> Reply:
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

    def _pending(self, asked: Asked, life: int, version: int, passed_ms: int = 0) -> Pending:
        """The row that a request asks for; a rhythm begins after what has passed of another."""
        request = asked.request
        rule = encode_rule(rule_of(request, self._days(request)))
        nominal_ms, when = self._instant(asked, rule, passed_ms)
        due_ms = nominal_ms + self._jitter(asked, nominal_ms)
        group, event_type = request["group"], request["event_type"]
        tenant = asked.tenant.name_bytes
        return Pending(
            due_ms,
            nominal_ms,
            self.accepted_ms,
            asked.record[0],
            life,
            version,
            0,
            KIND_CODES[request["kind"]],
            when,
            request["jitter_ms"] or 0,
            tenant,
            asked.name[len(tenant) + 1 :],
            group.encode() if group else b"",
            event_type.encode() if event_type else b"",
            request["key"],
            _headers(asked) if asked.record[4] or request["headers"] else b"",
            rule,
            request["payload"],
        )

    def _passed_ms(self, old: Pending, step: Step) -> int:
        """What the rhythm of before has passed, whatever its calendar says of it by now."""
        if self._calendars is None or not has_calendar(old.extra):
            return passed_ms(old, 0)
        return passed_ms(old, self._calendars.passed_ms(old, step))

    def _days(self, request: Request) -> bytes | None:
        """The days of the calendar that a request names, at rest."""
        name = request["calendar"]
        if name is None or self._calendars is None:
            return None
        return self._calendars.days_of(request["tenant"], name)

    def _jitter(self, asked: Asked, nominal_ms: int) -> int:
        most_ms = asked.request["jitter_ms"]
        return jitter_ms(asked.name, nominal_ms, most_ms) if most_ms else 0

    def _instant(self, asked: Asked, rule: bytes, passed_ms: int) -> tuple[int, int]:
        """Nominal instant, and the part of it that the definition holds beside the rule."""
        if asked.request["kind"] in RECURRING:
            trigger = trigger_of(rule)
            first_ms = trigger.first_ms(max(self.accepted_ms, passed_ms))
            if first_ms is None:
                first_ms = trigger.first_ms(self.accepted_ms)
            standing = asked.request["standing"]
            if first_ms is None and standing is not None:
                # An imported schedule may have nothing before it but its last one, overdue.
                return standing["next_at"], 0
            assert first_ms is not None, "a rule that never fires is refused by the checks"
            return first_ms, 0
        kind = ONE_SHOT[asked.request["kind"]]
        said_ms: int = kind.asked(asked.request)
        return kind.instant_ms(said_ms, self.accepted_ms), said_ms


def _over_since(asked: Asked, due_ms: int) -> Reply | None:
    """The answer to an import of what has fired, or ended, after it was exported; None for others.

    A marker of a later due instant than the imported one says that this one is over as well.
    """
    if not asked.version or asked.row is None:
        return None
    marker = decode_marker(asked.row)
    if due_ms > marker.due_ms:
        return None
    code, became = ENDS[marker.how]
    at = format_instant(marker.ended_ms)
    reason = f"It {became} since, at {at}: an import does not begin it again."
    return Reply(Outcome.TOO_LATE, marker.version, marker.due_ms, code, reason)


def _goes_on(old: Pending, row: Pending) -> bool:
    """Whether an update leaves the trigger as it was, so that cadence, count and pause stay."""
    if KINDS[old.kind] not in RECURRING:
        return old.once_as == row.once_as
    if old.kind != row.kind:
        return False
    trigger = trigger_of(row.extra)
    end_at = trigger.rule.end_at
    in_time = end_at is None or old.nominal_ms <= end_at
    return in_time and trigger.same_cadence(trigger_of(old.extra))


def _changed_too_often(version: int) -> Reply:
    reason = (
        f"The schedule's version is {version}, the largest there is: cancel it, and create it anew."
    )
    return Reply(Outcome.REJECTED, None, None, "version_used_up", reason)


def _used_up(asked: Asked, fires: int) -> Reply:
    reason = (
        f"max_fires is {asked.request['max_fires']}, and the schedule has fired {fires} times: give"
        " more, or cancel it."
    )
    return Reply(Outcome.REJECTED, None, None, "bad_max_fires", reason)


def _oversize(tenant: Tenant, size: int) -> Reply:
    reason = (
        f"The fired record would take {size} bytes, and {tenant.topic} takes"
        f" {tenant.max_record_bytes}: store the content elsewhere and schedule its address (claim"
        " check)."
    )
    return Reply(Outcome.REJECTED, None, None, "payload_too_large", reason)


def _headers(asked: Asked) -> bytes:
    """The user's headers, and the trace that the request's own record carries."""
    headers = [(h["name"].encode(), h["value"]) for h in asked.request["headers"]]
    names = {name for name, _ in headers}
    for name, value in asked.record[4] or ():
        if name in TRACE_HEADERS and name.encode() not in names:
            headers.append((name.encode(), value))
    return encode_headers(headers)
