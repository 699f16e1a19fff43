"""What a backfill would fire, for those who only look: a page of schedules, and their past.

It reads what is committed and changes nothing.  A range is counted by days and not by occurrences,
so a page of some hundred schedules takes a bounded time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.schedules.backfill import past_range
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
    page = preview(rows, wanted, after, EXAMINE, sampled=EXAMINE)
    total, firsts, lasts = 0, list[int](), list[int]()
    for record in rows_of(rows, wanted.tenant, page.sample):
        if why_unreadable(record) or is_one_shot(record):
            continue
        row = decode_pending(record)
        past = past_range(trigger_of(row.extra), row.nominal_ms, *span)
        if number := past.number():
            total += number
            firsts.append(next(past.instants()))
            lasts.append(past.last_ms())
    return PastPreview(page, total, min(firsts, default=None), max(lasts, default=None))
