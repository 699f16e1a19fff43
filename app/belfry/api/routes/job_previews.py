"""Counts of the schedules that a bulk job would match, before it begins; no schedule changes.

    POST /v1/tenants/shop/jobs?dry=true   {"action": "PAUSE", "prefix": "order/"}
    page 1    partition 2, 10 000 rows    matched 310, sample order/1, order/2, …; a cursor
    page 2    partition 2, the rest       matched  40; a cursor to partition 5
    page 3    partition 5, all of it      matched 280; no cursor: 630 in all

A page is one of a list (`lists.py`): the holder of one partition reads so many rows, and the caller
adds pages up. A look may so be given up half-way, and costs a worker the same however many
schedules there are.

A job that encrypts payloads anew matches schedules that are not under one key, so its pages name
that key, and read each record. They also count schedules that no job reaches: their encrypted
payloads lie elsewhere.

A backfill fires occurrences that are past, so its pages count these as well, with the first and the
last of them. To find the occurrences of one schedule takes longer than to read its row, so such a
page looks at 200 rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal
from belfry.api.json.shapes import moment
from belfry.api.routes.lists import EXAMINE, Lists, Pages
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.engine.rekeying import is_sealed_elsewhere, is_under_another
from belfry.schedules.bulk import BACKFILL, REKEY, BulkSpec
from belfry.store import job_lookup
from belfry.store.job_lookup import MOST_SHOWN, past_preview, wanted_by
from belfry.store.layout.pending import Pending
from belfry.store.lookup import Wanted
from belfry.store.ordered_map import OrderedMap


class JobPreviews:
    """Counts the schedules that jobs would match; belongs to one event loop."""

    def __init__(self, parts: ApiDependencies, reads: Reads) -> None:
        self._parts = parts
        self._lists = Lists(parts, reads)

    async def page(
        self, request: Request, caller: Principal, tenant: str, spec: BulkSpec
    ) -> Response:
        """A page of the schedules that a job would match now, from the holder of one partition.

        Where it goes on, the parameter `cursor` of the request says.
        """
        wanted = wanted_by(tenant.encode(), spec)
        if spec.action == BACKFILL:
            pages = _past_pages(self._lists, wanted, spec, int(self._parts.now_ms()))
        elif spec.action == REKEY:
            pages = _rekeyed_pages(self._lists, wanted, spec.key or self.newest_key(tenant))
        else:
            pages = _pages(self._lists, wanted)
        cursor = request.query_params.get("cursor")
        return await self._lists.answer(request, caller, wanted, cursor, pages)

    def newest_key(self, tenant: str) -> str | None:
        """The id of a tenant's newest key for payloads, by this worker; None for none."""
        keys = self._parts.ready.holdings.payload_keys(tenant)
        return None if keys is None else keys.newest


def _rekeyed_pages(lists: Lists, wanted: Wanted, key: str | None) -> Pages:
    """Pages of the schedules not under a key, which a job that encrypts anew would change."""

    def look(rows: OrderedMap, after: bytes | None) -> tuple[job_lookup.BulkPreview, int]:
        elsewhere = 0

        def also(row: Pending) -> bool:
            nonlocal elsewhere
            elsewhere += is_sealed_elsewhere(row)
            return is_under_another(row, key)

        return job_lookup.preview(rows, wanted, after, EXAMINE, also=also), elsewhere

    def pages(partition: int, after: bytes | None) -> tuple[dict[str, Any], bytes | None]:
        found, elsewhere = lists.read(partition, partial(look, after=after))
        shown = {"matched": found.matched, "sample": found.sample, "examined": found.examined}
        return {**shown, "key": key, "sealed_elsewhere": elsewhere}, found.after

    return pages


def _past_pages(lists: Lists, wanted: Wanted, spec: BulkSpec, now_ms: int) -> Pages:
    """Pages of the occurrences that a backfill would fire if it began now.

    A range that reaches into the future is cut at `now_ms`, since only past occurrences are
    backfilled.
    """
    assert spec.range_from is not None
    assert spec.range_until is not None
    span = spec.range_from, min(spec.range_until, now_ms)

    def pages(partition: int, after: bytes | None) -> tuple[dict[str, Any], bytes | None]:
        found = lists.read(partition, partial(past_preview, wanted=wanted, span=span, after=after))
        matched, sample, examined, last = found.page
        shown = {"matched": matched, "sample": sample[:MOST_SHOWN], "examined": examined}
        shown["occurrences"] = found.occurrences
        for name, ms in (("first", found.first_ms), ("last", found.last_ms)):
            shown[name] = None if ms is None else moment(ms)
        return shown, last

    return pages


def _pages(lists: Lists, wanted: Wanted) -> Pages:
    """Pages of the schedules that any other job would match now."""

    def pages(partition: int, after: bytes | None) -> tuple[dict[str, Any], bytes | None]:
        found = lists.read(
            partition, partial(job_lookup.preview, wanted=wanted, after=after, examine=EXAMINE)
        )
        shown = {"matched": found.matched, "sample": found.sample, "examined": found.examined}
        return shown, found.after

    return pages
