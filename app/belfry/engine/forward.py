"""Forwarding: requests of a tenant's own input topic go to where the tenant lives.

A consumer never sees the producer of a record, so on the shared topic anybody may claim to be any
tenant.  On `belfry.schedules.<tenant>` the broker's ACLs say who may write, and the topic says
whose request it is.  Each record goes on as it is, with the place of its first arrival and that
tenant in its headers.  Nothing is decoded here: the verdict falls at the home.

    belfry.schedules.shop/0, offset 17, 12:00:00.000      key shop/a, value …
      ─► belfry.schedules/3                               the same key and value, and headers:
                                                          origin: topic, partition 0, offset 17,
                                                          12:00:00.000; tenant: shop

The position in the tenant's topic moves in the transaction that forwards, so each record goes on
once.  A header that only a worker can sign vouches for the origin, where workers share a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from belfry.engine.effects import Effects, Rerouted
from belfry.engine.reports import Reports, SourcePartition
from belfry.engine.rerouting import MAX_MISROUTED_BYTES
from belfry.engine.step import Step
from belfry.engine.unforeseen import read_whole
from belfry.schedules.rejections import Rejection
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from belfry.wire.claims import signature
from belfry.wire.headers import asked_by
from belfry.wire.origins import vouched
from belfry.wire.record import (
    SIGNATURE,
    Origin,
    SourceRecord,
    handed_over,
    size_of,
    without_origin,
)
from belfry.wire.requests import RequestReader
from belfry.wire.unread import refused_unread


class TenantInput(NamedTuple):
    """A partition of a tenant's own input topic; what is forwarded is signed with a secret."""

    place: SourcePartition
    tenant: str
    secret: bytes = b""

    @property
    def home(self) -> int:
        """The partition at which the tenant's requests are forwarded to."""
        return self.place.homes.of(self.tenant)


def forward_requests(
    records: Sequence[SourceRecord], tenant_input: TenantInput, now_ms: int, effects: Effects
) -> Effects:
    """Send requests of a tenant's input on, in their order; refuse those that are too large for it.

    Fills and returns `effects`.  A record that its reader could not unpack is refused as well; its
    headers say why (`wire.headers.refused_unread`).
    """
    place, home = tenant_input.place, tenant_input.home
    for record in records:
        offset, timestamp_ms, key, value, _ = record
        refused = refused_unread(record[4]) if record[4] else None
        if refused is not None or size_of(record) > MAX_MISROUTED_BYTES:
            refused = refused or _too_large(record, tenant_input)
            _refuse(record, tenant_input, refused, Step.alone(now_ms, effects))
            continue
        origin = Origin(place.topic, place.partition, offset, timestamp_ms, rerouted=False)
        headers = handed_over(record, origin, tenant_input.tenant)
        if tenant_input.secret:
            shown = signature(tenant_input.secret, tenant_input.tenant, key, value, headers)
            headers.append((SIGNATURE, shown))
        headers = vouched(place.origin_keys, key, value, headers)
        effects.room -= size_of(record)
        effects.rerouted.append(Rerouted(home, key, value, headers))
    return effects


def _refuse(
    record: SourceRecord, tenant_input: TenantInput, rejection: Rejection, step: Step
) -> None:
    """Refuse a request that cannot go on, and tell of it if it can be read as it is."""
    offset, timestamp_ms, key, value, headers = record
    record = (offset, timestamp_ms, key, value, without_origin(headers))
    request = read_whole(RequestReader(), record, step)
    named = asked_by(record) if isinstance(request, Rejection) else request
    if named is not None:
        named["tenant"] = tenant_input.tenant
    Reports(tenant_input.place, ScheduleStore(MemoryMap())).reject(record, named, rejection, step)


def _too_large(record: SourceRecord, tenant_input: TenantInput) -> Rejection:
    reason = (
        f"The request takes {size_of(record)} bytes; {MAX_MISROUTED_BYTES} can be handed over from"
        f" {tenant_input.place.topic}. Store its content elsewhere and schedule the address (claim"
        " check)."
    )
    return Rejection("request_too_large", reason)
