"""Lists of schedules: pages, and the cursors between them.

A page comes from one partition.  A tenant that is spread over several is walked one partition after
the other, so a page costs one worker a bounded look, however many schedules there are.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import orjson
from starlette.requests import Request
from starlette.responses import Response

from belfry.api import shapes
from belfry.api.access import Principal
from belfry.api.cursors import bad_cursor, question, read_cursor, write_cursor
from belfry.api.parts import Parts
from belfry.api.reading import Reads
from belfry.store import lookup
from belfry.store.lookup import Wanted

EXAMINE: Final = 10_000


class MostRows(NamedTuple):
    """How much of a list is asked for, and where it goes on."""

    limit: int
    cursor: str | None


Pages = Callable[[int, bytes | None], tuple[dict[str, Any], bytes | None]]


class Lists:
    """Answers lists; belongs to one event loop."""

    def __init__(self, parts: Parts, reads: Reads) -> None:
        self._parts = parts
        self._reads = reads

    async def page(
        self, request: Request, caller: Principal, wanted: Wanted, most: MostRows
    ) -> Response:
        """A page of schedules."""
        now_ms = int(self._parts.now_ms())

        def pages(partition: int, after: bytes | None) -> tuple[dict[str, Any], bytes | None]:
            found = self._reads.read(
                partition,
                lambda rows: lookup.page(
                    rows, wanted, after, now_ms, limit=most.limit, examine=EXAMINE
                ),
            )
            shown = [shapes.summary(standing) for standing in found.found]
            return {"schedules": shown, "examined": found.examined}, found.after

        return await self._answer(request, caller, wanted, most.cursor, pages)

    async def counts(
        self, request: Request, caller: Principal, wanted: Wanted, cursor: str | None
    ) -> Response:
        """A page of counts per minute."""

        def pages(partition: int, after: bytes | None) -> tuple[dict[str, Any], bytes | None]:
            found, examined, last = self._reads.read(
                partition, lambda rows: lookup.counts(rows, wanted, after, examine=EXAMINE)
            )
            shown = [
                {"minute": shapes.moment(minute), "pending": count}
                for minute, count in sorted(found.items())
            ]
            return {"counts": shown, "examined": examined}, last

        return await self._answer(request, caller, wanted, cursor, pages)

    async def _answer(
        self,
        request: Request,
        caller: Principal,
        wanted: Wanted,
        cursor: str | None,
        pages: Pages,
    ) -> Response:
        homes = self._parts.ready.holdings.homes_of(wanted.tenant.decode())
        asked = question(request.url.path, wanted)
        partition, after = read_cursor(cursor, asked) if cursor else (homes[0], b"")
        if partition not in homes:
            raise bad_cursor(cursor or "")

        async def look(partition: int) -> Response:
            shown, last = pages(partition, after or None)
            following = [home for home in homes if home > partition]
            shown["cursor"] = None
            if last is not None:
                shown["cursor"] = write_cursor(asked, partition, last)
            elif following:
                shown["cursor"] = write_cursor(asked, following[0], b"")
            return Response(orjson.dumps(shown), HTTPStatus.OK, None, "application/json")

        return await self._reads.answer(request, caller, partition, look)
