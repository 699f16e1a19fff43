"""The parts of a fired record besides the user's bytes, where its tenant's policy asks for them.

    source       belfry-source: belfry.schedules/3/4711    topic, partition and offset of a request
    CloudEvents  ce_specversion, ce_id, ce_source, ce_type, ce_time
    envelope     a `FiredEvent` around the payload

The *source* is the record of the topic of requests that gave the schedule the definition it fires
by: the last UPSERT that changed it.  It lies at the schedule's owning partition.  A request that
came in elsewhere was sent on to there, and that record has headers (`belfry-origin-…`) that say
from where.  A schedule that was carried over from an earlier input (a mirror, a recovery) has no
source: its request does not lie in this topic.

    offset 17   UPSERT  every hour, payload 1     ─► events say …/3/17
    offset 29   UPSERT  the same, payload 2       ─► events say …/3/29
    offset 31   PAUSE, 40 RESUME, 41 TRIGGER      ─► still …/3/29

Tenants without any of this never come here: `emit` asks their route first.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.effects import Effects
from belfry.schedules.identity import partition_of_life
from belfry.store.layout.pending import Pending
from belfry.store.recovery import EARLIER_INPUT
from belfry.tenants.effective import Delivery, Tenant
from belfry.wire.fired import FiredEvent, encode_fired, rfc3339
from belfry.wire.headers import SOURCE
from belfry.wire.record import Headers

CE_VERSION: Final = "ce_specversion"
# How the content type of a CloudEvent begins whose value holds all of it: structured mode.
STRUCTURED: Final = b"application/cloudevents"


def dress(
    row: Pending, event: FiredEvent, tenant: Tenant, headers: Headers, effects: Effects
) -> bytes | None:
    """The value of a fired record that is more than the user's bytes; adds to its headers."""
    if tenant.source_topic and row.seq < EARLIER_INPUT:
        source = b"%b/%d/%d" % (tenant.source_topic, partition_of_life(row.life), row.seq)
        headers.append((SOURCE, source))
    if tenant.cloudevents and not _is_cloudevent(headers):
        headers += _cloudevent(event, tenant)
    if tenant.delivery is not Delivery.ENVELOPE:
        return event.payload
    if not tenant.envelope_head:
        effects.unframed.add(tenant.name)
    return tenant.envelope_head + encode_fired(event)


def _is_cloudevent(headers: Headers) -> bool:
    """Whether the user's record is a CloudEvent, in binary or in structured mode."""
    return any(
        name == CE_VERSION
        or (name.lower() == "content-type" and (value or b"").lower().startswith(STRUCTURED))
        for name, value in headers
    )


def _cloudevent(event: FiredEvent, tenant: Tenant) -> Headers:
    """Headers of Kafka's binding of CloudEvents, binary mode."""
    return [
        (CE_VERSION, b"1.0"),
        ("ce_id", event.fire_id.encode()),
        ("ce_source", b"/belfry/" + tenant.name_bytes),
        ("ce_type", (event.event_type or "io.belfry.fired").encode()),
        ("ce_time", rfc3339(event.scheduled_at)),
    ]
