"""Bulk jobs of a store, for readers who change nothing: how many a filter matches, and jobs.

    preview(rows, wanted, after, examine)     how many match among the next names, where to go on
    past_preview(rows, wanted, span, after)   the same of a backfill, and what it would fire
    jobs(rows, tenant)                        the jobs of a tenant in this partition

A preview reads committed rows and changes nothing.  It looks at `examine` names at most, so it
costs a bounded time, however many schedules there are.  Records are read only where the filter asks
for something that the place of a schedule does not say.

A range of the past is counted by days and not by occurrences, so a page of some hundred schedules
takes a bounded time.  Instants that a calendar moves are counted one by one: of a schedule no
more than a job may fire.  A page ends behind so many, and behind as many days that are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from belfry.schedules.backfill import MOST_MOVED, PastRange, past_range
from belfry.schedules.bulk import BulkSpec
from belfry.schedules.triggers import trigger_of
from belfry.store.layout import keys
from belfry.store.layout.jobs import JobRow, decode_job, jobs_range, names_of_job
from belfry.store.layout.locations import IN_PAUSED, decode_location, is_location, record_key
from belfry.store.layout.pending import Pending, decode_pending
from belfry.store.layout.pending_bytes import is_one_shot
from belfry.store.lookup import Wanted, fits, in_state
from belfry.store.ordered_map import OrderedMap
from belfry.store.readable import why_unreadable

CHUNK: Final = 256
MOST_SHOWN: Final = 10
# Rows that a page of a backfill looks at.
EXAMINE: Final = 200


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
    also: Callable[[Pending], bool] | None = None,
) -> BulkPreview:
    """How many schedules that wait are wanted, among the next `examine` names behind a key.

    `also` is asked of the rows that fit: rows that it denies do not match.
    """
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
        found = _matching(rows, chunk, wanted, also)
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
    rows: OrderedMap,
    chunk: Sequence[tuple[bytes, bytes]],
    wanted: Wanted,
    also: Callable[[Pending], bool] | None,
) -> list[bytes]:
    """The keys of the schedules among these rows that are wanted."""
    found = [(key, row) for key, row in chunk if is_location(row) and _placed(row, wanted)]
    if wanted.group is wanted.event_type is None and also is None:
        return [key for key, _ in found]
    records = rows.get_many([record_key(keys.name_in(key), row) for key, row in found])
    # One without a record has moved since the walk began, and is not counted.
    pairs = zip(found, records, strict=True)
    known = [(key, decode_pending(record)) for (key, _), record in pairs if record is not None]
    return [key for key, row in known if fits(row, wanted) and (also is None or also(row))]


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


class PastPreview(NamedTuple):
    """A page of the matches of a job, and the occurrences that it would fire (epoch ms)."""

    page: BulkPreview
    occurrences: int
    first_ms: int | None
    last_ms: int | None


def past_preview(
    rows: OrderedMap, wanted: Wanted, span: tuple[int, int], after: bytes | None
) -> PastPreview:
    """The past instants of the range from `span[0]` to before `span[1]`, of the next schedules."""
    page, counted = BulkPreview(0, [], 0, after), 0
    total, firsts, lasts = 0, list[int](), list[int]()
    while page.examined < EXAMINE and counted <= MOST_MOVED:
        found = preview(rows, wanted, page.after, 1)
        for past in _pasts(rows, wanted, found.sample, span):
            number = past.number(past.most)
            total += number
            counted += past.looks + (number if past.trigger.looks_at_each else 0)
            firsts += islice(past.instants(), 1)
            lasts += [past.last_ms()] if number else []
        page = _both(page, found)
        if page.after is None:
            break
    return PastPreview(page, total, min(firsts, default=None), max(lasts, default=None))


def _pasts(
    rows: OrderedMap, wanted: Wanted, ids: Sequence[str], span: tuple[int, int]
) -> Iterator[PastRange]:
    for record in rows_of(rows, wanted.tenant, ids):
        if not why_unreadable(record) and not is_one_shot(record):
            row = decode_pending(record)
            yield past_range(trigger_of(row.extra), row.nominal_ms, *span)


def _both(page: BulkPreview, found: BulkPreview) -> BulkPreview:
    """A page joined with the next one."""
    return BulkPreview(
        page.matched + found.matched,
        page.sample + found.sample,
        page.examined + found.examined,
        found.after,
    )
