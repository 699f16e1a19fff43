"""What a backfill would fire, for those who only look: a page of schedules, and their past.

It reads what is committed and changes nothing.  A range is counted by days and not by occurrences,
so a page of some hundred schedules takes a bounded time.  Of what a calendar moves, instants are
counted one by one: of a schedule no more than a job may fire, and a page ends behind so many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from belfry.schedules.backfill import MOST_MOVED, PastRange, past_range
from belfry.schedules.triggers import trigger_of
from belfry.store.job_lookup import BulkPreview, preview, rows_of
from belfry.store.layout.pending import decode_pending, is_one_shot
from belfry.store.lookup import Wanted
from belfry.store.ordered_map import OrderedMap
from belfry.store.readable import why_unreadable

# Rows that a page looks at.
EXAMINE: Final = 200


class PastPreview(NamedTuple):
    """A page of what a job matches, and the occurrences that it would fire (epoch milliseconds)."""

    page: BulkPreview
    occurrences: int
    first_ms: int | None
    last_ms: int | None


def past_preview(
    rows: OrderedMap, wanted: Wanted, span: tuple[int, int], after: bytes | None
) -> PastPreview:
    """What is over of the range from `span[0]` to before `span[1]`, of the next schedules."""
    page, counted = BulkPreview(0, [], 0, after), 0
    total, firsts, lasts = 0, list[int](), list[int]()
    while page.examined < EXAMINE and counted <= MOST_MOVED:
        found = preview(rows, wanted, page.after, 1)
        for past in _pasts(rows, wanted, found.sample, span):
            number = past.number(past.most)
            total += number
            counted += number if past.trigger.looks_at_each else 0
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
    """A page with what follows it."""
    return BulkPreview(
        page.matched + found.matched,
        page.sample + found.sample,
        page.examined + found.examined,
        found.after,
    )
