"""Lists of schedules: pages, and the cursors between them.

A page comes from one partition.  A tenant that is spread over several is walked one partition after
the other, so a page costs one worker a bounded look, however many schedules there are.  The look is
made in a thread of few: it may take tens of milliseconds, and the event loop answers meanwhile.
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

EXAMINE: Final = 10_000
MOST: Final = 8


class MostRows(NamedTuple):
    """How much of a list is asked for, and where it goes on."""

    limit: int
    cursor: str | None


Pages = Callable[[int, bytes | None], tuple[dict[str, Any], bytes | None]]


class Lists:
    """Answers lists; belongs to one event loop."""

    def __init__(self, parts: ApiDependencies, reads: Reads) -> None:
        self._parts = parts
        self._reads = reads
        self._threads = Threads("lists", MOST)

    def read(self, partition: int, look: Look[T]) -> T:
        """What `look` finds in a partition that is held here; raises `NotHeld`."""
        return self._reads.read(partition, look)

    async def page(
        self, request: Request, caller: Principal, wanted: Wanted, most: MostRows
    ) -> Response:
        """A page of schedules."""
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
        """A page of minute buckets."""
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
        """A page of the ack locks of a tenant."""
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
        """A page of whatever `pages` finds in a partition, behind a key of its own."""
        homes = self._parts.ready.holdings.homes_of(wanted.tenant.decode())
        asked = question(request.url.path, wanted)
        partition, after = read_cursor(cursor, asked) if cursor else (homes[0], b"")
        if partition not in homes:
            raise bad_cursor(cursor or "")

        async def look(partition: int) -> Response:
            shown, last = await self._threads.run(partial(pages, partition, after or None))
            following = [home for home in homes if home > partition]
            shown["cursor"] = None
            if last is not None:
                shown["cursor"] = write_cursor(asked, partition, last)
            elif following:
                shown["cursor"] = write_cursor(asked, following[0], b"")
            return Response(orjson.dumps(shown), HTTPStatus.OK, None, "application/json")

        return await self._reads.answer(request, caller, partition, look)
