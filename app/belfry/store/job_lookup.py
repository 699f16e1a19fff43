"""What a store says of bulk jobs, for those who only look: how many a filter matches, and jobs.

    preview(rows, wanted, after, examine)   how many match among the next names, and where to go on
    jobs(rows, tenant)                      the jobs of a tenant in this partition

A preview reads what is committed and changes nothing.  It looks at `examine` names at most, so it
costs a bounded time, however many schedules there are.  Records are read only where the filter asks
for something that the place of a schedule does not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from belfry.schedules.bulk import BulkSpec
from belfry.store.layout import keys
from belfry.store.layout.jobs import JobRow, decode_job, jobs_range, names_of_job
from belfry.store.layout.keys import record_key
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.records import IN_PAUSED, decode_location, is_location
from belfry.store.lookup import Wanted, fits, in_state
from belfry.store.ordered_map import OrderedMap

CHUNK: Final = 256
MOST_SHOWN: Final = 10


class BulkPreview(NamedTuple):
    """How many schedules match, the first of them, the names looked at, and where to go on."""

    matched: int
    sample: list[str]
    examined: int
    after: bytes | None


def wanted_by(tenant: bytes, spec: BulkSpec) -> Wanted:
    """The filter of a job, as the store reads it."""
    return Wanted(
        tenant,
        (spec.schedule_id or spec.prefix).encode(),
        spec.due_from,
        spec.due_until,
        spec.state,
        None if spec.group is None else spec.group.encode(),
        None if spec.event_type is None else spec.event_type.encode(),
        exact=spec.schedule_id is not None,
    )


def preview(
    rows: OrderedMap,
    wanted: Wanted,
    after: bytes | None,
    examine: int,
    sampled: int = MOST_SHOWN,
) -> BulkPreview:
    """How many schedules that wait are wanted, among the next `examine` names behind a key."""
    start, end = map(keys.named_key, wanted.names)
    first = start if after is None else max(start, after + b"\0")
    walk = iter(rows.scan(first, end))
    matched = examined = 0
    sample: list[str] = []
    last: bytes | None = None
    while examined < examine:
        chunk = list(islice(walk, min(CHUNK, examine - examined)))
        if not chunk:
            return BulkPreview(matched, sample, examined, None)
        examined, last = examined + len(chunk), chunk[-1][0]
        found = _matching(rows, chunk, wanted)
        matched += len(found)
        sample += [_id_in(key) for key in found[: sampled - len(sample)]]
    return BulkPreview(matched, sample, examined, last)


def rows_of(rows: OrderedMap, tenant: bytes, ids: Sequence[str]) -> list[bytes]:
    """The records of these schedules; one that has moved since is left out."""
    names = [tenant + b"/" + each.encode() for each in ids]
    places = rows.get_many([keys.named_key(name) for name in names])
    found = [
        record_key(name, row)
        for name, row in zip(names, places, strict=True)
        if row is not None and is_location(row)
    ]
    return [record for record in rows.get_many(found) if record is not None]


def _matching(
    rows: OrderedMap, chunk: Sequence[tuple[bytes, bytes]], wanted: Wanted
) -> list[bytes]:
    """The keys of the schedules among these rows that are wanted."""
    found = [(key, row) for key, row in chunk if is_location(row) and _placed(row, wanted)]
    if wanted.group is wanted.event_type is None:
        return [key for key, _ in found]
    records = rows.get_many([record_key(keys.name_in(key), row) for key, row in found])
    # One without a record has moved since the walk began, and is not counted.
    return [
        key
        for (key, _), record in zip(found, records, strict=True)
        if record is not None and fits(decode_pending(record), wanted)
    ]


def _placed(row: bytes, wanted: Wanted) -> bool:
    where, due_ms, _, _ = decode_location(row)
    return wanted.in_range(due_ms) and in_state(wanted, is_paused=where == IN_PAUSED)


def _id_in(key: bytes) -> str:
    return keys.name_in(key).partition(b"/")[2].decode()


def jobs(rows: OrderedMap, tenant: bytes) -> list[tuple[str, JobRow]]:
    """The jobs of a tenant in this partition, by id."""
    first, end = map(keys.named_key, jobs_range(tenant))
    return [
        (names_of_job(keys.name_in(key))[1], decode_job(row)) for key, row in rows.scan(first, end)
    ]
