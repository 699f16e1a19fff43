"""Lists of schedules, minute buckets and ack locks: pages, and the cursors between them.

A page comes from one partition. A tenant that is spread over several is walked one partition after
the other, so a page costs one worker a bounded look, however many schedules there are.

    tenant shop lives in partitions 2 and 5; limit=100
    page 1   GET …/schedules              partition 2, from its first name: 100 found
    page 2   …&cursor=(2, last name)      partition 2: 37 found, and its names end
    page 3   …&cursor=(5, "")             partition 5, from its first name
    …        a page whose `cursor` is null is the last one

A page may be short, or empty, while more lie behind it: it ends after `EXAMINE` rows, too. A caller
goes on until the cursor is null. The look is made in a thread of few, since it may take tens of
milliseconds; the event loop answers others meanwhile. If all threads are busy, the answer is 503.
If the tenant's spread has changed, and the cursor names a partition that is no home any more, the
answer is 422 `bad_cursor`, and the caller begins anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import orjson
from starlette.requests import Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal
from belfry.api.json import shapes
from belfry.api.json.cursors import bad_cursor, question, read_cursor, write_cursor
from belfry.api.server.threads import Threads
from belfry.api.workers import waiting
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Look, Reads, T
from belfry.store import lookup
from belfry.store.buckets import buckets
from belfry.store.due_lookup import due_page
from belfry.store.lock_lookup import locks
from belfry.store.lookup import Wanted

# Rows that one page looks at, at most, and buckets that a page of counts holds.
EXAMINE: Final = 10_000
# Looks at a time, in threads; the next caller is answered 503.
MOST: Final = 8


class MostRows(NamedTuple):
    """How much of a list is asked for, and where it goes on.

    `limit` is the most rows of a page. `cursor` is that of the page before, None for the first
    page.
    """

    limit: int
    cursor: str | None


# The items of a page, and the key behind which the next one begins; None at the partition's end.
# Arguments are the partition and the key of the cursor. It runs in a thread and may raise
# `NotHeld`.
Pages = Callable[[int, bytes | None], tuple[dict[str, Any], bytes | None]]


class Lists:
    """Answers lists; belongs to one event loop."""

    def __init__(self, parts: ApiDependencies, reads: Reads) -> None:
        self._parts = parts
        self._reads = reads
        self._threads = Threads("lists", MOST)

    def read(self, partition: int, look: Look[T]) -> T:
        """The finds of `look` in a partition that is held here; raises `NotHeld`.

        It reads the store as it has been committed, in the thread of its caller.
        """
        return self._reads.read(partition, look)

    async def page(
        self, request: Request, caller: Principal, wanted: Wanted, most: MostRows
    ) -> Response:
        """A page of schedules, by name; in the order of due instants where a due range is given.

        Payloads are left out. Each schedule comes with what it waits for besides its due instant.
        """
        now_ms = int(self._parts.now_ms())
        page = due_page if wanted.by_due else lookup.page

        def pages(partition: int, after: bytes | None) -> tuple[dict[str, Any], bytes | None]:
            found = self._reads.read(
                partition,
                lambda rows: page(rows, wanted, after, now_ms, limit=most.limit, examine=EXAMINE),
            )
            name, holdings = wanted.tenant.decode(), self._parts.ready.holdings
            tenant, waits = holdings.tenant(name), holdings.waits(partition, name)
            shown = [
                shapes.summary(standing) | waiting.waiting(standing, tenant, now_ms, *waits)
                for standing in found.found
            ]
            return {"schedules": shown, "examined": found.examined}, found.after

        return await self.answer(request, caller, wanted, most.cursor, pages)

    async def counts(
        self, request: Request, caller: Principal, wanted: Wanted, cursor: str | None
    ) -> Response:
        """A page of minute buckets: how many schedules are due in each minute.

        `drained` are buckets that became empty of late. They come with the first page of a
        partition.
        """
        from_ms, until_ms = wanted.due_from_ms or 0, wanted.due_until_ms

        def pages(partition: int, after: bytes | None) -> tuple[dict[str, Any], bytes | None]:
            found, last = self._reads.read(
                partition,
                lambda rows: buckets(
                    rows, wanted.tenant, from_ms, until_ms, after=after, limit=EXAMINE
                ),
            )
            ended = self._parts.ready.holdings.drained(partition) if after is None else ()
            return {
                "counts": [shapes.count(each) for each in found],
                "drained": [
                    shapes.drained(each)
                    for each in ended
                    if each.tenant == wanted.tenant and wanted.in_range(each.minute_ms)
                ],
                "examined": len(found),
            }, last

        return await self.answer(request, caller, wanted, cursor, pages)

    async def locks(
        self, request: Request, caller: Principal, tenant: str, most: MostRows
    ) -> Response:
        """A page of the ack locks of a tenant.

        A lock is there while a fire of a schedule, or of a group, is not acknowledged.
        """
        wanted = Wanted(tenant.encode())

        def pages(partition: int, after: bytes | None) -> tuple[dict[str, Any], bytes | None]:
            found, last = self._reads.read(
                partition, lambda rows: locks(rows, wanted.tenant, after, limit=most.limit)
            )
            return {"locks": [shapes.lock(tenant, each) for each in found]}, last

        return await self.answer(request, caller, wanted, most.cursor, pages)

    async def answer(
        self,
        request: Request,
        caller: Principal,
        wanted: Wanted,
        cursor: str | None,
        pages: Pages,
    ) -> Response:
        """A page of the finds of `pages` behind a key of a partition; its holder answers.

        The cursor's digest is that of the path and of `wanted`, so a cursor of another filter is
        refused with a `Problem`. The `limit` may differ from page to page.
        """
        tenant = wanted.tenant.decode()
        homes = self._parts.ready.holdings.homes_of(tenant)
        asked = question(request.url.path, wanted)
        partition, after = read_cursor(cursor, asked) if cursor else (homes[0], b"")
        if partition not in homes:
            raise bad_cursor(cursor or "")

        async def look(lies_at: int) -> Response:
            shown, last = await self._threads.run(partial(pages, lies_at, after or None))
            following = [home for home in homes if home > partition]
            shown["cursor"] = None
            # More lies in this partition; else the tenant's next one follows, if it has one.
            if last is not None:
                shown["cursor"] = write_cursor(asked, partition, last)
            elif following:
                shown["cursor"] = write_cursor(asked, following[0], b"")
            return Response(orjson.dumps(shown), HTTPStatus.OK, None, "application/json")

        return await self._reads.answer(request, caller, partition, look, tenant)
