"""Asks all partitions of a tenant for their parts of something, from each worker that holds some.

A tenant with a spread lives in several partitions, so its jobs, calendars and buckets have a part
in each. Here a worker asks for all parts at once and gives them to the route, which puts them
together:

    GET /v1/tenants/shop/jobs, asked of W1; shop lives in partitions 2 and 5
    W1 holds 2                     reads its part from the store
    W2 holds 5                     is asked the same, with belfry-partition: 5, and answers its part
    route                          merges both parts into one answer

Where one part cannot be had the whole is refused, since an answer without it would look complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.peers import AT, number_told
from belfry.api.workers.reading import Reads
from belfry.store.ordered_map import OrderedMap

# What one partition tells of a tenant, in a form that JSON has.
Telling = Callable[[OrderedMap, bytes], list[dict[str, Any]]]


class Gathering:
    """Asks the holders of a tenant's partitions; belongs to one event loop.

    `telling` makes the parts of one partition from its rows, in a form that JSON has.
    """

    def __init__(self, parts: ApiDependencies, reads: Reads, telling: Telling) -> None:
        self._parts = parts
        self._reads = reads
        self._telling = telling

    async def told(
        self, request: Request, caller: Principal, tenant: str
    ) -> Response | list[dict[str, Any]]:
        """The parts of all partitions; the answer itself where another worker asks, or one fails.

        Another worker asks for the parts of one partition.
        """
        told = number_told(request, AT)
        if told is not None:
            return await self._of(request, caller, tenant, told)
        homes = self._parts.ready.holdings.homes_of(tenant)
        asked = (self._of(request, caller, tenant, home) for home in homes)
        answers = await asyncio.gather(*asked)
        for answer in answers:
            if answer.status_code != HTTPStatus.OK:
                return answer
        return [each for answer in answers for each in orjson.loads(answer.body)]

    async def _of(self, request: Request, caller: Principal, tenant: str, home: int) -> Response:
        """The parts of one partition."""

        async def look(partition: int) -> Response:
            name = tenant.encode()
            rows = self._reads.read(partition, lambda rows: self._telling(rows, name))
            return json_answer(rows)

        return await self._reads.answer(request, caller, home, look, tenant)


def json_answer(told: Any) -> Response:
    """An answer of this JSON."""
    return Response(orjson.dumps(told), HTTPStatus.OK, None, "application/json")
