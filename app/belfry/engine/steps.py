"""The steps of the transition table: what a valid request at its home does to its schedule.

Each takes what was asked and gives the answer; what it changes lies in the store's overlay and in
the effects.  A schedule that is kept lies in the timeline, in its tenant's backlog (its instant is
over), or aside (it is paused).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from belfry.engine.effects import Effects
from belfry.engine.firing import RULE, fire_extra
from belfry.engine.plan import plan_of
from belfry.engine.verdicts import Answer, Place
from belfry.engine.waiting import TENANT, Waiting
from belfry.schedules.identity import life_of
from belfry.schedules.instants import format_instant
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.outcomes import Outcome
from belfry.schedules.request import TRACE_HEADERS, Request, Standing
from belfry.schedules.rule import KINDS, ONE_SHOT, RECURRING, encode_rule, rule_of
from belfry.schedules.tenant import Tenant
from belfry.schedules.transitions import Step
from belfry.schedules.triggers import trigger_of
from belfry.store.keys import awaited_key
from belfry.store.readable import why_unreadable
from belfry.store.records import (
    ENDED_COMPLETED,
    ENDED_FIRED,
    ENDED_MISSED,
    IN_PAUSED,
    KIND_CODES,
    MOST_NUMBER,
    PAUSED,
    Pending,
    PendingRow,
    decode_marker,
    decode_pending,
    encode_headers,
    encode_pending,
    paused,
    same_definition,
    with_flags,
)
from belfry.store.schedules import ScheduleStore
from belfry.wire.record import SourceRecord

RECORD_OVERHEAD_BYTES: Final = 512
# Kind, `when` and jitter lie next to each other in a pending row: when a one-shot is due.
VERSION: Final = 5
OCCURRENCE: Final = 6
KIND: Final = 7
# What a request is told that comes too late: code and reason.
ENDS: Final = {
    ENDED_FIRED: ("fired", "The schedule has fired within the last 24 hours."),
    ENDED_COMPLETED: ("completed", "The schedule was completed within the last 24 hours."),
    ENDED_MISSED: ("missed", "The schedule was given up as too late within the last 24 hours."),
}
SINCE: Final = {
    ENDED_FIRED: "It has fired",
    ENDED_COMPLETED: "It was completed",
    ENDED_MISSED: "It was given up as too late",
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


class Steps:
    """Carries steps out; `now_ms` is the engine step's, `accepted_ms` the request's arrival."""

    def __init__(self, place: Place, store: ScheduleStore, waiting: Waiting) -> None:
        self._place = place
        self._store = store
        self._waiting = waiting
        self.now_ms = self.accepted_ms = 0
        self.carry_out: dict[Step, Callable[[Asked, Effects], Answer]] = {
            Step.BEGIN: self.begin,
            Step.REPLACE: self.replace,
            Step.END: self.end,
            Step.PAUSE: self.pause,
            Step.RESUME: self.resume,
            Step.UNCHANGED: self.unchanged,
            Step.EXTRA: self.extra,
            Step.ACKNOWLEDGE: self.acknowledge,
            Step.ACKNOWLEDGE_LAST: self.acknowledge,
            Step.CONFLICT: self.conflict,
            Step.TOO_LATE: self.too_late,
            Step.NOT_FOUND: self.not_found,
        }

    def begin(self, asked: Asked, effects: Effects) -> Answer:
        life = life_of(self._place.partition, asked.record[0])
        row = self._pending(asked, life, 1)
        standing = asked.request["standing"]
        if standing is not None:
            row = self._imported(asked, row, standing)
            since = _over_since(asked, row[0])
            if since is not None:
                return since
        asked.generation = life
        record = encode_pending(row, PAUSED if standing is not None and standing["paused"] else 0)
        if len(record) + RECORD_OVERHEAD_BYTES > asked.tenant.max_record_bytes:
            return _oversize(asked.tenant, record)
        return self._keep(asked, row, record, effects)

    def _imported(self, asked: Asked, row: PendingRow, standing: Standing) -> PendingRow:
        """The row of a life that goes on where an exported one stood."""
        nominal_ms, number = standing["next_at"], standing["occurrence"]
        due_ms = nominal_ms + self._jitter(asked, nominal_ms)
        return (due_ms, nominal_ms, *row[2:VERSION], standing["version"], number, *row[KIND:])

    def replace(self, asked: Asked, effects: Effects) -> Answer:
        assert asked.row is not None
        before = self._store.pending_at(asked.name, asked.row)
        old = decode_pending(before)
        readable = not why_unreadable(before)
        version = min(old.version + 1, MOST_NUMBER)
        row = self._pending(asked, old.life, version, _passed_ms(old) if readable else 0)
        goes_on = readable and _goes_on(old, row)
        if goes_on:
            if row[RULE] and old.occurrence >= plan_of(row[RULE]).max_fires:
                return _used_up(asked, old.occurrence)
            # The instant stays, of a delay that runs too, and so does the number of the next fire.
            due_ms = old.nominal_ms + self._jitter(asked, old.nominal_ms)
            row = (due_ms, old.nominal_ms, *row[2:OCCURRENCE], old.occurrence, *row[KIND:])
        record = encode_pending(row)
        if same_definition(before, record):
            return Answer(Outcome.UNCHANGED, old.version, old.due_ms)
        if old.version == MOST_NUMBER:
            return _changed_too_often(old.version)
        if len(record) + RECORD_OVERHEAD_BYTES > asked.tenant.max_record_bytes:
            return _oversize(asked.tenant, record)
        if paused(before) and goes_on:
            # Another payload is no reason to go on.
            record = with_flags(record, PAUSED)
        self._drop(asked)
        return replace(self._keep(asked, row, record, effects), outcome=Outcome.UPDATED)

    def end(self, asked: Asked, effects: Effects) -> Answer:
        assert asked.row is not None
        due_ms = decode_pending(self._store.pending_at(asked.name, asked.row)).due_ms
        self._drop(asked)
        self._store.set_named(asked.name, None)
        effects.rows[asked.name] = None
        return Answer(Outcome.CANCELLED, asked.version, due_ms)

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

    def pause(self, asked: Asked, effects: Effects) -> Answer:
        """Take the schedule out of the timeline; its instant stays as it is."""
        record, row = self._found(asked)
        self._drop(asked)
        kept = effects.rows[asked.name] = with_flags(record, PAUSED)
        effects.room -= len(kept)
        self._put(asked, row, kept)
        return Answer(Outcome.PAUSED, row.version, row.due_ms)

    def resume(self, asked: Asked, effects: Effects) -> Answer:
        """Put the schedule back; where its instant is over, it is late as after an outage."""
        record, row = self._found(asked)
        self._drop(asked)
        kept = effects.rows[asked.name] = with_flags(record, 0)
        effects.room -= len(kept)
        self._put(asked, row, kept)
        return Answer(Outcome.RESUMED, row.version, row.due_ms)

    def unchanged(self, asked: Asked, _effects: Effects) -> Answer:
        """The schedule is already as asked for."""
        return Answer(Outcome.UNCHANGED, asked.version, self._found(asked)[1].due_ms)

    def extra(self, asked: Asked, effects: Effects) -> Answer:
        assert asked.row is not None
        if asked.tenant.stopped:
            reason = f"Events of {asked.tenant.name} wait: {asked.tenant.stopped}. Try again."
            return Answer(Outcome.REJECTED, code="tenant_held", reason=reason)
        record, row = self._found(asked)
        if why := why_unreadable(record):
            reason = f"The schedule cannot be fired by this worker: {why}."
            return Answer(Outcome.REJECTED, code="unreadable_schedule", reason=reason)
        identity = fire_extra(row, asked.tenant, asked.record[0], self.now_ms, effects)
        return Answer(Outcome.TRIGGERED, asked.version, row.due_ms, fire_id=identity.decode())

    def acknowledge(self, asked: Asked, effects: Effects) -> Answer:
        """Let go on what waits for a fire: the schedule's next, or the next of its group."""
        fire_id = asked.request["fire_id"] or ""
        key = awaited_key(asked.tenant.name_bytes, fire_id.encode())
        awaited = self._waiting.gates.awaited(key)
        if awaited is None or awaited.schedule_id != asked.request["schedule_id"].encode():
            if not asked.version:
                return self.not_found(asked, effects)
            reason = "It was acknowledged before, its time-out is over, or it asked for none."
            return Answer(Outcome.UNCHANGED, asked.version, None, "not_awaited", reason, fire_id)
        let_go = self._waiting.gates.open(key, effects)
        effects.room -= sum([len(record) for _, record in let_go])
        self._waiting.let_go(let_go)
        version, due_ms = awaited.version, awaited.due_ms
        return Answer(Outcome.UPDATED, version, due_ms, fire_id=fire_id)

    def conflict(self, asked: Asked, _effects: Effects) -> Answer:
        """It exists; the code tells whether it is the very schedule that was asked for."""
        before, old = self._found(asked)
        if same_definition(before, encode_pending(self._pending(asked, old.life, old.version))):
            reason = "A schedule with this id and this very definition exists."
            return Answer(Outcome.CONFLICT, old.version, old.due_ms, "same_definition", reason)
        reason = "A schedule with this id exists; UPSERT replaces it."
        return Answer(Outcome.CONFLICT, asked.version, None, "exists", reason)

    def too_late(self, asked: Asked, _effects: Effects) -> Answer:
        assert asked.row is not None
        marker = decode_marker(asked.row)
        code, reason = ENDS[marker.how]
        return Answer(Outcome.TOO_LATE, asked.version, marker.due_ms, code, reason)

    def not_found(self, _asked: Asked, _effects: Effects) -> Answer:
        return Answer(Outcome.NOT_FOUND, code="not_found", reason="No schedule has this id.")

    # -- keeping a schedule ----------------------------------------------------------------------

    def _keep(self, asked: Asked, row: PendingRow, record: bytes, effects: Effects) -> Answer:
        due_ms, version = row[0], row[5]
        effects.rows[asked.name] = record
        effects.room -= len(record)
        effects.tenants.add(asked.tenant.name)
        self._put(asked, row, record)
        return Answer(Outcome.ACCEPTED, version, due_ms)

    def _put(self, asked: Asked, row: PendingRow, record: bytes) -> None:
        if paused(record):
            self._store.put(asked.name, record, (IN_PAUSED, row[0], row[3]))
        else:
            self._waiting.keep(row, record)

    def _pending(self, asked: Asked, life: int, version: int, passed_ms: int = 0) -> PendingRow:
        """The row that a request asks for; a rhythm begins after what has passed of another."""
        request = asked.request
        rule = encode_rule(rule_of(request))
        nominal_ms, when = self._instant(asked, rule, passed_ms)
        due_ms = nominal_ms + self._jitter(asked, nominal_ms)
        group, event_type = request["group"], request["event_type"]
        tenant = asked.tenant.name_bytes
        return (
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
                # What is imported may have nothing before it but its last one, overdue.
                return standing["next_at"], 0
            assert first_ms is not None, "a rule that never fires is refused by the checks"
            return first_ms, 0
        kind = ONE_SHOT[asked.request["kind"]]
        said_ms: int = kind.asked(asked.request)
        return kind.instant_ms(said_ms, self.accepted_ms), said_ms


def _passed_ms(old: Pending) -> int:
    """The last instant of a rhythm that has fired or was given up; 0 where there is none to mind.

    It may be later than the arrival of the request that ends the rhythm, which was read after it.
    """
    if KINDS[old.kind] not in RECURRING:
        return 0
    trigger = trigger_of(old.extra)
    if not old.occurrence and trigger.first_ms(old.accepted_ms) == old.nominal_ms:
        return 0
    return trigger.before_ms(old.nominal_ms, old.accepted_ms)


def _over_since(asked: Asked, due_ms: int) -> Answer | None:
    """The answer to an import of what has fired, or ended, after it was exported; None for others.

    A marker of a later due instant than the imported one says that this one is over as well.
    """
    if not asked.version or asked.row is None:
        return None
    marker = decode_marker(asked.row)
    if due_ms > marker.due_ms:
        return None
    code, _ = ENDS[marker.how]
    at = format_instant(marker.ended_ms)
    reason = f"{SINCE[marker.how]} since, at {at}: an import does not begin it again."
    return Answer(Outcome.TOO_LATE, marker.version, marker.due_ms, code, reason)


def _goes_on(old: Pending, row: PendingRow) -> bool:
    """Whether an update leaves the trigger as it was, so that cadence, count and pause stay."""
    if KINDS[old.kind] not in RECURRING:
        return old[KIND:TENANT] == row[KIND:TENANT]
    if old.kind != row[KIND]:
        return False
    trigger = trigger_of(row[RULE])
    end_at = trigger.rule.end_at
    in_time = end_at is None or old.nominal_ms <= end_at
    return in_time and trigger.same_cadence(trigger_of(old.extra))


def _changed_too_often(version: int) -> Answer:
    reason = (
        f"The schedule's version is {version}, the largest there is: cancel it, and create it anew."
    )
    return Answer(Outcome.REJECTED, None, None, "version_used_up", reason)


def _used_up(asked: Asked, fires: int) -> Answer:
    reason = (
        f"max_fires is {asked.request['max_fires']}, and the schedule has fired {fires} times: give"
        " more, or cancel it."
    )
    return Answer(Outcome.REJECTED, None, None, "bad_max_fires", reason)


def _oversize(tenant: Tenant, record: bytes) -> Answer:
    size = len(record) + RECORD_OVERHEAD_BYTES
    reason = (
        f"The fired record would take {size} bytes, and {tenant.topic} takes"
        f" {tenant.max_record_bytes}: store the content elsewhere and schedule its address (claim"
        " check)."
    )
    return Answer(Outcome.REJECTED, None, None, "payload_too_large", reason)


def _headers(asked: Asked) -> bytes:
    """The user's headers, and the trace that the request's own record carries."""
    headers = [(h["name"].encode(), h["value"]) for h in asked.request["headers"]]
    names = {name for name, _ in headers}
    for name, value in asked.record[4] or ():
        if name in TRACE_HEADERS and name.encode() not in names:
            headers.append((name.encode(), value))
    return encode_headers(headers)
