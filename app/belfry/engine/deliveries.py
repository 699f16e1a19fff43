"""Deliveries: the record that a fire adds to the topic of deliveries, beside its fired record.

A schedule's own targets come first, else its tenant's.  Each delivery is a `FiredEvent` with the
headers of the fired record and a state of its own; it is written in the transaction of the fire, so
neither can be without the other.

    fire ─► fired record              belfry.fired.<tenant>     for consumers of Kafka
         └► a delivery per target     belfry.deliveries         for the process that posts

With strategy ALL each target has a delivery of its own, so a slow one holds up no other; targets
that are tried together (FIRST_AVAILABLE, ROUND_ROBIN) share one.  The key of a delivery is the
ordering key: events of one group, or of one schedule, are delivered in order.  A fire without
targets never comes here: `emit` asks its rule and its tenant's route first.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.effects import Effects
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rule import awaits, has_targets, targets_in
from belfry.schedules.targets import decode_targets
from belfry.store.layout.pending import Pending
from belfry.tenants.deliveries import HEADER, KEY_HEADER
from belfry.tenants.effective import Tenant
from belfry.wire.fired import FiredEvent, encode_fired
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.record import Headers

# Beyond it neither the topic of deliveries nor a retry's request would take it.
MOST_BYTES: Final = 990_000
OVERHEAD_BYTES: Final = 1_024


def fired_event(row: Pending, tenant: Tenant, fire: tuple[bytes, int], missed: int) -> FiredEvent:
    """A fire as an envelope has it; `fire` is its id (32 digits) and the instant of the step."""
    identity, now_ms = fire
    return FiredEvent(
        tenant=tenant.name,
        schedule_id=row.schedule_id.decode(),
        fire_id=identity.decode(),
        version=row.version,
        occurrence=row.occurrence,
        scheduled_at=row.nominal_ms,
        due_at=row.due_ms,
        fired_at=now_ms,
        event_type=row.event_type.decode() or None,
        group=row.group.decode() or None,
        missed=missed,
        payload=row.payload,
    )


def deliver(
    row: Pending, tenant: Tenant, event: FiredEvent, headers: Headers, effects: Effects
) -> None:
    """Add the deliveries of a fire whose fired record has these headers.

    A delivery of more than `MOST_BYTES` would fit neither its topic nor the request of a retry, so
    it ends as FAILED at once (code `too_large`); the fired record itself is not touched by that.
    """
    key = f"{event.tenant}/{event.group or event.schedule_id}".encode()
    body = encode_fired(event)
    if row.key is not None:
        headers = [*headers, (KEY_HEADER, row.key)]
    size = len(key) + len(body) + OVERHEAD_BYTES
    size += sum(len(name.encode()) + len(value or b"") + 16 for name, value in headers)
    # An extra fire is not awaited.
    acks = event.occurrence >= 0 and awaits(row.extra)
    for state in _states(row.extra, tenant, acks=acks):
        if size + len(state) > MOST_BYTES:
            effects.lifecycle.append(_too_large(event, tenant.topic, size + len(state)))
        else:
            effects.deliveries.append((key, body, [*headers, (HEADER, state)]))
            effects.room -= size


def _states(rule: bytes, tenant: Tenant, *, acks: bool) -> tuple[bytes, ...]:
    """How the deliveries begin: to the rule's targets, else to the tenant's."""
    if has_targets(rule):
        return tenant.deliveries_to(decode_targets(targets_in(rule)), acks=acks)
    if acks:
        return tenant.deliveries_to(tenant.effective.policy.http_targets, acks=True)
    return tenant.hooks


def _too_large(event: FiredEvent, topic: str, size: int) -> LifecycleEvent:
    return LifecycleEvent(
        tenant=event.tenant,
        schedule_id=event.schedule_id,
        outcome=Outcome.FAILED,
        fire_id=event.fire_id,
        version=event.version,
        at=event.fired_at,
        due_at=event.due_at,
        code="too_large",
        reason=f"The delivery takes {size} bytes; at most {MOST_BYTES} are delivered over HTTP. The"
        f" event is in {topic}: store the content elsewhere and schedule its address (claim"
        " check).",
    )
