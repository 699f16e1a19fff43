"""Firing: due rows to fired records, markers and outcomes.

    backlog (held back, late)  ┐                         ┌ fired record   (tenant's topic)
    timeline (due by now)      ┴─► one chunk per step ──►│ marker         (changelog, for a day)
                                                         └ FIRED outcome  (if the tenant wants it)

A tenant's backlog leaves before its timeline, both in due order; while some of a backlog is left,
what comes due of that tenant joins it.  Held tenants' events wait in the backlog, others fire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belfry.engine.deliveries import deliver, fired_event
from belfry.engine.effects import Effects
from belfry.engine.gates import group_gate
from belfry.engine.plain_fires import PlainFires
from belfry.engine.queues import SHORT_STEP, Look, Queues, Turn
from belfry.engine.waiting import Waiting
from belfry.firing.due import Most, ScanPosition, due_chunk
from belfry.schedules.deliveries import RETRIES
from belfry.schedules.identity import extra_fire_id, fire_id
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rule import has_targets
from belfry.schedules.tenant import Delivery, Tenant
from belfry.schedules.tenants import StepTenants
from belfry.store.layout.keys import sort_key
from belfry.store.layout.pending import Pending, decode_headers, decode_pending, fires_once
from belfry.store.layout.records import encode_fired_marker
from belfry.store.schedules import ScheduleStore
from belfry.wire.fired import FiredEvent, encode_fired
from belfry.wire.headers import PREFIX as OURS
from belfry.wire.instants import rfc3339
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.record import Headers

if TYPE_CHECKING:
    from belfry.engine.ruled import Ruled

EXTRA: Final = -1
# Due instant and sequence in a line; place, row and record of what was put back.
Place = tuple[int, int]
Again = tuple[Place, Pending, bytes]
CE_VERSION: Final = "ce_specversion"
# How names of belfry's own headers begin; some readers take capitals for the same.
OURS_BYTES: Final = OURS.encode()
LENGTH: Final = len(OURS)


class Firing:
    """Fires what is due in one partition's store."""

    def __init__(
        self, store: ScheduleStore, tenants: StepTenants, waiting: Waiting, ruled: Ruled
    ) -> None:
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._plain = PlainFires(store, tenants, waiting, ruled.zones)
        self._ruled = ruled
        self.queues = Queues(store, tenants, waiting)

    def fire_due(
        self, reach: ScanPosition, now_ms: int, at_most: int, effects: Effects
    ) -> ScanPosition:
        """Fire at most `at_most` events due up to `now_ms`; returns how far that reaches."""
        self._waiting.edge_ms = max(now_ms, reach.horizon_ms)
        self._waiting.reach = reach
        self._ruled.begin(now_ms, effects)
        room = at_most
        if self._waiting.backlog:
            first_ms = self._store.first_due_ms(reach.next)
            share = self.queues.room(at_most, first_ms, now_ms)
            room -= self._fire_backlog(reach, now_ms, share, effects)
            if self._waiting.heads:
                room = min(room, SHORT_STEP)
        timeline = self._store.timeline(reach.next, now_ms)
        chunk = due_chunk(timeline, reach, now_ms, Most(max(1, room), max(1, effects.room)))
        self._store.take(chunk.rows)
        for record in self._plain.fire(chunk.rows, now_ms, effects):
            self._plain.forget(self._leave_timeline(record, now_ms, effects))
        return chunk.position

    def _leave_timeline(self, record: bytes, now_ms: int, effects: Effects) -> bytes:
        """Fire or judge a due row, or hold it back; its tenant, who may be held up by it."""
        row = decode_pending(record)
        tenant = self._tenants.of_bytes(row.tenant)
        full = effects.room <= 0
        if tenant.aside or full or row.tenant in self._waiting.backlog:
            self._waiting.hold(row, record)
            effects.moved = True
        elif not self._held_behind(row, record, effects):
            if not fires_once(record):
                self._ruled.leave(row, record, tenant, row.due_ms)
            else:
                self._fire(row, tenant, now_ms, effects)
        return row.tenant

    def _held_behind(self, row: Pending, record: bytes, effects: Effects) -> bool:
        """Whether the gate of a row's group held it back."""
        gates = self._waiting.gates
        if not row.group or row.tenant not in gates.tenants or gates.passes(row):
            return False
        gates.hold(group_gate(row), row, record)
        effects.moved = True
        return True

    def _fire_backlog(
        self, reach: ScanPosition, now_ms: int, at_most: int, effects: Effects
    ) -> int:
        fired = 0
        for turn, turns in self.queues.turns(reach, now_ms):
            if fired >= at_most or effects.room <= 0:
                break
            look = self.queues.peek(turn, Most((at_most - fired) // turns, effects.room // turns))
            rows = look.rows
            left, did = self._leave_backlog(turn, look, now_ms, effects)
            self._store.take(rows[:left])
            self.queues.took(turn, look, left, did, now_ms)
            fired += did
            if left or not (rows or turn.behind or turn.name in self._waiting.heads):
                self._waiting.shrink(turn.name, left)
        return fired

    def _leave_backlog(
        self, turn: Turn, look: Look, now_ms: int, effects: Effects
    ) -> tuple[int, int]:
        """Fire a turn's rows and what follows them, in due order, up to one that has to wait.

        How many of the rows have left, and how many occurrences have left in all.
        """
        waiting, left, done = self._waiting, 0, 0
        waiting.begin_turn()
        while done < look.most and (effects.room > 0 or not done):
            place, record, again = _next_of(look, left, waiting.next_again)
            if record is None or (again and place[0] > now_ms):
                break
            row = decode_pending(record)
            if waiting.overtakes(place, turn.name) or self._ruled.has_to_slow(row, record, turn):
                break
            if again:
                waiting.take_again()
            left, done = left + (not again), done + 1
            placed = row if row.due_ms == place[0] else row.at(place[0], row.nominal_ms)
            if self._held_behind(placed, record, effects):
                continue
            if not fires_once(record):
                self._ruled.leave(row, record, turn.tenant, place[0])
            else:
                self._fire(row, turn.tenant, now_ms, effects)
        waiting.end_turn()
        return left, done

    def _fire(self, row: Pending, tenant: Tenant, now_ms: int, effects: Effects) -> None:
        name = row.name
        identity = fire_id(name, row.life, row.version, row.nominal_ms)
        emit(row, tenant, (identity, now_ms), effects)
        marker = encode_fired_marker(now_ms, row.due_ms, row.life, row.version, row.occurrence + 1)
        self._store.end(name, marker)
        if Outcome.FIRED in tenant.written:
            event = told(row, tenant, Outcome.FIRED, now_ms)
            event.fire_id = identity.decode()
            effects.lifecycle.append(event)


def _next_of(look: Look, left: int, again: Again | None) -> tuple[Place, bytes | None, bool]:
    """Place and record of what leaves next, if anything may; and whether it was put back before."""
    if left < len(look.rows):
        key, record = look.rows[left]
        place = sort_key(key)
        if again is None or place < again[0]:
            return place, record, False
    elif again is None or again[0][0] >= look.beyond_ms:
        return (0, 0), None, False
    return again[0], again[2], True


def told(row: Pending, tenant: Tenant, outcome: Outcome, now_ms: int) -> LifecycleEvent:
    """What is told of an occurrence."""
    pending = row
    return LifecycleEvent(
        tenant=tenant.name,
        schedule_id=pending.schedule_id.decode(),
        outcome=outcome,
        version=pending.version,
        at=now_ms,
        due_at=pending.due_ms,
    )


def fire_extra(row: Pending, tenant: Tenant, position: int, now_ms: int, effects: Effects) -> bytes:
    """Fire the extra occurrence that a TRIGGER at source offset `position` asked for."""
    name = row.name
    identity = extra_fire_id(name, row.life, row.version, position)
    extra = row._replace(nominal_ms=now_ms, due_ms=now_ms, occurrence=EXTRA)
    emit(extra, tenant, (identity, now_ms), effects)
    return identity


def emit(
    row: Pending, tenant: Tenant, fire: tuple[bytes, int], effects: Effects, missed: int = 0
) -> None:
    """Add the fired record of a fire (its id, its instant) to the effects.

    It may stand for occurrences that were missed.
    """
    (due_ms, nominal_ms, _, _, _, _, occurrence, _, _, _,
     _, schedule_id, group, _, key, given, rule, value) = row  # fmt: skip
    identity, now_ms = fire
    headers: Headers = [
        ("belfry-fire-id", identity),
        ("belfry-schedule-id", schedule_id),
        ("belfry-scheduled-at", rfc3339(nominal_ms)),
        ("belfry-occurrence", b"0" if occurrence == 0 else b"%d" % occurrence),
    ]
    if missed:
        headers.append(("belfry-missed", b"%d" % missed))
    if given:
        headers = _users(given, tenant) + headers
    effects.room -= len(value or b"") + len(given)
    if tenant.dressed or has_targets(rule):
        event = fired_event(row, tenant, fire, missed)
        value = _dress(event, tenant, headers, effects)
        if tenant.hooks or has_targets(rule):
            deliver(row, tenant, event, headers, effects)
    if key is None:
        key = group or schedule_id
    if tenant.loose:
        effects.loose.add(tenant.topic)
    effects.fired.append((tenant.topic, key, group or None, value, headers))
    effects.fire_ids.append(identity)
    effects.lateness_ms.append(now_ms - due_ms)


def _users(given: bytes, tenant: Tenant) -> Headers:
    """A schedule's own headers, without those under names of belfry's: readers believe these.

    They come with what fired before and is scheduled anew.  What retries carry is belfry's.
    """
    headers = decode_headers(given)
    if OURS_BYTES not in given.lower() or tenant.name == RETRIES:
        return headers
    return [each for each in headers if each[0][:LENGTH].lower() != OURS]


def _dress(event: FiredEvent, tenant: Tenant, headers: Headers, effects: Effects) -> bytes | None:
    """The value of a fired record that is more than the user's bytes; adds to its headers."""
    if tenant.cloudevents and not any(name == CE_VERSION for name, _ in headers):
        headers += _cloudevent(event, tenant)
    if tenant.delivery is not Delivery.ENVELOPE:
        return event.payload
    if not tenant.envelope_head:
        effects.unframed.add(tenant.name)
    return tenant.envelope_head + encode_fired(event)


def _cloudevent(event: FiredEvent, tenant: Tenant) -> Headers:
    """Headers of Kafka's binding of CloudEvents, binary mode."""
    return [
        (CE_VERSION, b"1.0"),
        ("ce_id", event.fire_id.encode()),
        ("ce_source", b"/belfry/" + tenant.name_bytes),
        ("ce_type", (event.event_type or "io.belfry.fired").encode()),
        ("ce_time", rfc3339(event.scheduled_at)),
    ]
