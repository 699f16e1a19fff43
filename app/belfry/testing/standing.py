"""Schedules in memory as `get` and `list` show them: the rows of the store, read as they lie.

A worker answers such questions over HTTP, with JSON in between. Here the same rows become the same
objects of the client, without either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from belfry.client.requests import instant_ms
from belfry.client.scheduled import AckLock, Filters, FiresSoFar, PastFire, Scheduled
from belfry.schedules.identity import generation_of
from belfry.store import lock_lookup
from belfry.store.last_fires import (
    FireCounts,
    LastFire,
    counts_of_record,
    fires_of_marker,
    fires_of_record,
)
from belfry.store.layout import keys
from belfry.store.layout.pending import KIND_CODES, decode_headers, decode_pending
from belfry.store.layout.pending_bytes import is_one_shot, paused
from belfry.store.layout.records import (
    ENDED_CANCELLED,
    ENDED_COMPLETED,
    ENDED_FIRED,
    ENDED_MISSED,
    LOCKS_GROUP,
    LOCKS_OWN,
    Marker,
    decode_marker,
    is_marker,
)
from belfry.store.ordered_map import OrderedMap
from belfry.store.schedules import ScheduleStore

# How a schedule has ended, by the byte that its marker has.
ENDS: Final = {
    ENDED_FIRED: "FIRED",
    ENDED_CANCELLED: "CANCELLED",
    ENDED_COMPLETED: "COMPLETED",
    ENDED_MISSED: "MISSED",
}
# More locks than a test makes: one look finds all.
MOST_LOCKS: Final = 1_000_000
KINDS: Final = {code: kind for kind, code in KIND_CODES.items()}


def one(rows: OrderedMap, tenant: str, schedule_id: str, last: int = 0) -> Scheduled | None:
    """A schedule with so many of its last fires, or None if there is no such schedule.

    For one that has ended it tells how it ended.
    """
    name = keys.schedule_key(tenant, schedule_id)
    store = ScheduleStore(rows)
    row = store.named(name)
    if row is None:
        return None
    if is_marker(row):
        marker = decode_marker(row)
        found, fires = _over(tenant, schedule_id, marker), fires_of_marker(marker)
    else:
        record = store.pending_at(name, row)
        found, fires = _waiting(record), fires_of_record(record)
        if last and not is_one_shot(record) and (counts := counts_of_record(record)):
            found = replace(found, fires=_so_far(counts))
    return replace(found, last_fires=tuple(map(_past, fires[-last:]))) if last else found


def all_of(rows: OrderedMap, tenant: str, filters: Filters) -> Iterator[Scheduled]:
    """A tenant's schedules by id, as a list shows them: without what they will send.

    Those that have ended and are still remembered are among them, as over HTTP.
    """
    start = keys.NAMED_PREFIX + keys.schedule_key(tenant, "")
    for key, _ in rows.scan(start, start[:-1] + b"0"):
        schedule_id = key[len(start) :].decode()
        found = one(rows, tenant, schedule_id)
        if found is not None and _fits(found, filters):
            yield Scheduled(
                tenant=found.tenant,
                schedule_id=found.schedule_id,
                state=found.state,
                version=found.version,
                due_ms=found.due_ms,
                occurrence=found.occurrence,
                kind=found.kind,
                event_type=found.event_type,
                group=found.group,
                generation=found.generation,
            )


def locks_of(rows: OrderedMap, tenant: str) -> Iterator[AckLock]:
    """A tenant's ack locks, by fire id; instants in epoch ms."""
    names = {"group": LOCKS_GROUP, "schedule": LOCKS_OWN}
    for fire_id, fire in lock_lookup.locks(rows, tenant.encode(), None, limit=MOST_LOCKS)[0]:
        yield AckLock(
            tenant=tenant,
            schedule_id=fire.schedule_id.decode(),
            fire_id=fire_id.decode(),
            group=fire.group.decode() or None,
            locks=tuple(name for name, bit in names.items() if fire.locks & bit),
            version=fire.version,
            due_ms=fire.due_ms,
            fired_ms=fire.fired_ms,
            expires_ms=fire.until_ms,
        )


def _so_far(counts: FireCounts) -> FiresSoFar:
    return FiresSoFar(*counts, counts.success_rate, counts.share_within_1s)


def _past(fire: LastFire) -> PastFire:
    return PastFire(**fire._asdict(), late_ms=fire.late_ms)


def _fits(found: Scheduled, filters: Filters) -> bool:
    """Whether a schedule is one of those that all filters let pass."""
    due_from, due_until = filters.get("due_from"), filters.get("due_until")
    same = ("state", "group", "event_type")
    return (
        found.schedule_id.startswith(filters.get("prefix", ""))
        and all(getattr(found, name) == filters[name] for name in same if name in filters)  # type: ignore[literal-required]
        and (due_from is None or found.due_ms >= instant_ms(due_from))
        and (due_until is None or found.due_ms < instant_ms(due_until))
    )


def _waiting(record: bytes) -> Scheduled:
    """A schedule that waits or is paused, from its record."""
    row = decode_pending(record)
    return Scheduled(
        tenant=row.tenant.decode(),
        schedule_id=row.schedule_id.decode(),
        state="PAUSED" if paused(record) else "PENDING",
        version=row.version,
        due_ms=row.due_ms,
        occurrence=row.occurrence,
        kind=KINDS[row.kind],
        event_type=row.event_type.decode() or None,
        group=row.group.decode() or None,
        payload=row.payload,
        key=row.key,
        headers=decode_headers(row.headers),
        generation=generation_of(row.life),
    )


def _over(tenant: str, schedule_id: str, marker: Marker) -> Scheduled:
    """A schedule that has ended, from its marker."""
    return Scheduled(
        tenant=tenant,
        schedule_id=schedule_id,
        state=ENDS[marker.how],
        version=marker.version,
        due_ms=marker.due_ms,
        occurrence=marker.occurrence,
        generation=generation_of(marker.life),
    )
