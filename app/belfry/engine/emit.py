"""The emitter: an occurrence that fires becomes a fired record, and is told of where it is wanted.

    pending row + route ─► headers, key, value ─► effects.fired       (the tenant's topic)
                                    │      └────► effects.deliveries  (if there are HTTP targets)
                                    └───────────► effects.lifecycle   (FIRED, where it is wanted)

A *route* has the answers that firing needs of a tenant: its topic, its form, whether fires are told
of, and whether its events have to wait.  It is asked once per chunk of due rows, and again after
something has happened that may change it.

The form of a fired record is the tenant's choice:

    plain        value: the payload, byte for byte      headers: the user's, then belfry's
    CloudEvents  the same, and headers ce_… (Kafka binding of CloudEvents 1.0, binary mode)
    envelope     value: a `FiredEvent` in Avro with the payload in it
    source       header `belfry-source`: where the schedule's request lies

    key          the schedule's own, else its group's name, else its id
    partition    of one group all events go to one partition, so that their order holds
    shared       on the topic that tenants share, key and group have `tenant/` before them

It runs once per event, which is why names are local and tuples are taken apart by place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from belfry.engine.deliveries import deliver, fired_event
from belfry.engine.dressing import dress
from belfry.engine.step import Step
from belfry.schedules.identity import extra_fire_id
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rule import has_targets
from belfry.store.layout.pending import Pending, PendingRow, as_pending, decode_headers
from belfry.tenants.deliveries import RETRIES
from belfry.tenants.effective import Tenant
from belfry.wire.fired import rfc3339
from belfry.wire.headers import BACKFILL, EVENT_TYPE, GROUP, TENANT, VERSION
from belfry.wire.headers import PREFIX as OURS
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.missed import missed_reason
from belfry.wire.record import Headers

EXTRA: Final = -1
# How names of belfry's own headers begin; some readers take capitals for the same.
OURS_BYTES: Final = OURS.encode()
LENGTH: Final = len(OURS)
# The size of a fired record beyond its row, without texts that it repeats; and the most with them.
FIXED_OVERHEAD_BYTES: Final = 614
MOST_OVERHEAD_BYTES: Final = FIXED_OVERHEAD_BYTES + 5 * 255 + 3 * 100
# Headers that most events have in common.
_FIRST_OCCURRENCE: Final = ("belfry-occurrence", b"0")
_FIRST_VERSION: Final = (VERSION, b"1")


@dataclass(slots=True)
class Route:
    """How events of a tenant leave; `waits` where they join its backlog instead.

    `enveloped` records are more than the user's bytes; fires are `told` of by a lifecycle record;
    `non_transactional` records need not be in the transaction.  `lateness_ms` is the list of the
    tenant's fires in this step.  `of` stands before keys and groups: ``tenant/`` on a shared topic.
    All of it is read per event, which slots make quicker than a named tuple.
    """

    tenant: Tenant
    topic: str
    enveloped: bool
    told: bool
    non_transactional: bool
    lateness_ms: list[int]
    waits: bool = False
    of: bytes = b""
    # The header that says whose the event is.
    named: tuple[str, bytes] = TENANT, b""


class Emit(Protocol):
    """Fires an occurrence: `emit`, or a function that tells of it as well (`traces.py`)."""

    def __call__(
        self, row: PendingRow, route: Route, identity: bytes, step: Step, missed: int = 0
    ) -> None: ...


def route_to(tenant: Tenant, step: Step, *, waits: bool = False) -> Route:
    """The route of a tenant in this step; `waits` where its events have to join the backlog."""
    told_of = Outcome.FIRED in tenant.written
    late = step.effects.lateness.setdefault(tenant.name, [])
    topic, outside = tenant.topic, tenant.non_transactional
    key_of, named = tenant.key_of, (TENANT, tenant.name_bytes)
    return Route(tenant, topic, tenant.enveloped, told_of, outside, late, waits, key_of, named)


def emit(
    row: PendingRow, route: Route, identity: bytes, step: Step, missed: int = 0, job: bytes = b""
) -> None:
    """Fire an occurrence under this id; it may stand for others that were missed.

    `identity` are the 32 hexadecimal digits of `schedules.identity`; `missed` is how many
    occurrences it stands for besides itself.  `job` is the backfill that it fires for.
    """
    (due_ms, nominal_ms, _, _, _, version, occurrence, _, _, _,
     _, schedule_id, group, event_type, key, given, rule, value) = row  # fmt: skip
    effects = step.effects
    headers: Headers = [
        ("belfry-fire-id", identity),
        ("belfry-schedule-id", schedule_id),
        _scheduled_at(nominal_ms),
        ("belfry-occurrence", b"%d" % occurrence) if occurrence else _FIRST_OCCURRENCE,
        route.named,
        (VERSION, b"%d" % version) if version > 1 else _FIRST_VERSION,
    ]
    if group or event_type:
        headers += [each for each in ((GROUP, group), (EVENT_TYPE, event_type)) if each[1]]
    if missed:
        headers.append(("belfry-missed", b"%d" % missed))
    if job:
        headers.append((BACKFILL, job))
    if given:
        headers = _users(given, route.tenant) + headers
        effects.room -= len(given)
    if value:
        effects.room -= len(value)
    if route.enveloped or (rule and has_targets(rule)):
        named = as_pending(row)
        event = fired_event(named, route.tenant, (identity, step.now_ms), missed)
        value = dress(named, event, route.tenant, headers, effects)
        if route.tenant.hooks or has_targets(rule):
            deliver(named, route.tenant, event, headers, effects)
    if route.non_transactional:
        effects.non_transactional.add(route.topic)
    if key is None:
        key = group or schedule_id
    of = route.of
    effects.fired.append((route.topic, of + key, of + group if group else None, value, headers))
    effects.fire_ids.append(identity)
    route.lateness_ms.append(step.now_ms - due_ms)


@lru_cache(maxsize=1024)
def _scheduled_at(nominal_ms: int) -> tuple[str, bytes]:
    """The header with an event's instant, which many events have."""
    return "belfry-scheduled-at", rfc3339(nominal_ms)


def tell_fired(row: Pending, route: Route, identity: bytes, step: Step) -> None:
    """Tell of a fire whose tenant wants it."""
    event = told(row, route.tenant, Outcome.FIRED, step.now_ms)
    event.fire_id = identity.decode()
    step.effects.lifecycle.append(event)


def fire_extra(row: Pending, tenant: Tenant, position: int, step: Step) -> bytes:
    """Fire the extra occurrence that a TRIGGER at source offset `position` asked for; its id.

    It is due now and has the number -1, so that no consumer takes it for one of the rule.  The same
    TRIGGER gives the same id however often its step is done.
    """
    identity = extra_fire_id(row.name, row.life, row.version, position)
    now_ms = step.now_ms
    extra = row._replace(nominal_ms=now_ms, due_ms=now_ms, occurrence=EXTRA)
    emit(extra, route_to(tenant, step), identity, step)
    return identity


def fire_past(row: Pending, route: Route, fire: tuple[bytes, int], job: str, step: Step) -> None:
    """Fire the occurrence of an instant of the past, under the id of `fire`, for a backfill.

    It is due now, by the job: its lateness says nothing of belfry.
    """
    identity, nominal_ms = fire
    past = row._replace(nominal_ms=nominal_ms, due_ms=step.now_ms, occurrence=EXTRA)
    emit(past, route, identity, step, job=job.encode())
    if route.told:
        event = told(past, route.tenant, Outcome.FIRED, step.now_ms)
        event.fire_id, event.code = identity.decode(), "backfill"
        event.reason = f"bulk job {job}: the occurrence of {format_instant(nominal_ms)}"
        step.effects.lifecycle.append(event)


def fired_bytes(row: Pending, record: bytes) -> int:
    """How large a fired record of this row may become at most; `record` is the row's."""
    # Headers say them, of a CloudEvent too, and an envelope, and the key of a shared topic.
    texts = 3 * len(row.tenant) + len(row.schedule_id) + 2 * (len(row.group) + len(row.event_type))
    return len(record) + FIXED_OVERHEAD_BYTES + texts


def told(row: Pending, tenant: Tenant, outcome: Outcome, now_ms: int) -> LifecycleEvent:
    """The report of an occurrence."""
    return LifecycleEvent(
        tenant=tenant.name,
        schedule_id=row.schedule_id.decode(),
        outcome=outcome,
        version=row.version,
        at=now_ms,
        due_at=row.due_ms,
    )


def _users(given: bytes, tenant: Tenant) -> Headers:
    """A schedule's own headers, without those under names of belfry's: readers believe these.

    They come with a fired event that is scheduled anew.  Headers of retries are belfry's.
    """
    headers = decode_headers(given)
    if OURS_BYTES not in given.lower() or tenant.name == RETRIES:
        return headers
    return [each for each in headers if each[0][:LENGTH].lower() != OURS]


def tell_missed(
    row: Pending, route: Route, step: Step, number: int, end: str, code: str = "late"
) -> None:
    """Count occurrences from this one on that will not fire; `end` says how far, in words.

    A run is counted in full and told of in one record, so a year of missed seconds is one record.
    """
    step.effects.outcomes[Outcome.MISSED] += number
    if Outcome.MISSED not in route.tenant.written:
        return
    event = told(row, route.tenant, Outcome.MISSED, step.now_ms)
    event.code = code
    event.reason = missed_reason(number, row.nominal_ms, end)
    step.effects.lifecycle.append(event)
