"""Handing over: requests of a tenant's own input topic go to where the tenant lives.

A consumer never sees who produced a record, so on the shared topic anybody may claim to be any
tenant.  On `belfry.schedules.<tenant>` the broker's ACLs say who may write, and the topic says
whose request it is.  Each record goes on as it is, with the place of its first arrival and that
tenant in its headers.  Nothing is decoded here: the verdict falls at the home.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from belfry.engine.effects import Effects, Rerouted
from belfry.engine.intake import MAX_STRAY_BYTES
from belfry.engine.reports import Place, Reports
from belfry.engine.step import Step
from belfry.schedules.rejections import Rejection
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from belfry.wire.claims import signature
from belfry.wire.headers import asked_by, refused_unread
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


class Inlet(NamedTuple):
    """A partition of a tenant's own input topic; what is handed over is signed with a secret."""

    place: Place
    tenant: str
    secret: bytes = b""

    @property
    def home(self) -> int:
        """The partition at which the tenant's requests are handed over."""
        return self.place.homes.of(self.tenant)


def hand_over(
    records: Sequence[SourceRecord], inlet: Inlet, now_ms: int, effects: Effects
) -> Effects:
    """Send requests of an inlet on, in their order; what is too large to go on is refused."""
    place, home = inlet.place, inlet.home
    for record in records:
        offset, timestamp_ms, key, value, _ = record
        refused = refused_unread(record[4]) if record[4] else None
        if refused is not None or size_of(record) > MAX_STRAY_BYTES:
            refused = refused or _too_large(record, inlet)
            _refuse(record, inlet, refused, Step.alone(now_ms, effects))
            continue
        origin = Origin(place.topic, place.partition, offset, timestamp_ms, rerouted=False)
        headers = handed_over(record, origin, inlet.tenant)
        if inlet.secret:
            shown = signature(inlet.secret, inlet.tenant, key, value, headers)
            headers.append((SIGNATURE, shown))
        headers = vouched(place.origin_keys, key, value, headers)
        effects.room -= size_of(record)
        effects.rerouted.append(Rerouted(home, key, value, headers))
    return effects


def _refuse(record: SourceRecord, inlet: Inlet, rejection: Rejection, step: Step) -> None:
    """Refuse a request that cannot go on, and tell of it if it can be read as it is."""
    offset, timestamp_ms, key, value, headers = record
    record = (offset, timestamp_ms, key, value, without_origin(headers))
    request = RequestReader().read_whole(record)
    named = asked_by(record) if isinstance(request, Rejection) else request
    if named is not None:
        named["tenant"] = inlet.tenant
    Reports(inlet.place, ScheduleStore(MemoryMap())).reject(record, named, rejection, step)


def _too_large(record: SourceRecord, inlet: Inlet) -> Rejection:
    reason = (
        f"The request takes {size_of(record)} bytes; {MAX_STRAY_BYTES} can be handed over from"
        f" {inlet.place.topic}. Store its content elsewhere and schedule the address (claim check)."
    )
    return Rejection("request_too_large", reason)
