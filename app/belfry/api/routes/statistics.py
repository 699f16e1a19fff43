"""Statistics: requests, fires and how late they were, by whole hours, over all workers.

    GET /v1/tenants/shop/statistics?from=2026-12-01T09:00:00Z&until=2026-12-01T11:00:00Z
    W1 follows 0, 1    09:00  120 requests, 110 fires       10:00  90 requests, 95 fires
    W2 follows 2, 3    09:00   80 requests,  70 fires
    the answer         09:00  200 requests, 180 fires       10:00  90 requests, 95 fires

Counters lie in the history beside the events, one row for each hour and partition, so a look costs
the same however much happened in an hour. Events below the tenant's lifecycle level are not counted
there; so fires are counted a second time, by the worker that commits them
(`history/fire_hours.py`). An hour counts as a whole, also where the range begins within it.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.document import problems, with_answer
from belfry.api.json.statistics_answers import StatisticsAnswer, summed
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import SpanQuery, TenantName
from belfry.api.workers.parts import RETRY_SOON, ApiDependencies
from belfry.api.workers.scatter_gather import Gatherer, sent, store_of
from belfry.history.fire_hours import Hours
from belfry.history.follower import Follower
from belfry.history.layout import HOUR_MS

# Looks at fires while some go from memory to the store, and seconds between two of them.
LOOKS: Final = 100
PAUSE_S: Final = 0.02


def statistics_routes(parts: ApiDependencies, callers: Callers) -> APIRouter:
    """The route of statistics, summed up from all workers."""
    routes = APIRouter(prefix="/v1", tags=["history"])
    gatherer = Gatherer(parts)

    @routes.get(
        "/tenants/{tenant}/statistics",
        response_model=None,
        responses={**with_answer(StatisticsAnswer, 200), **problems(422, 429, 503)},
    )
    async def statistics(
        request: Request,
        tenant: TenantName,
        span: SpanQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """Requests, fires and how late they were, by whole hours."""

        async def look(source: Follower, partitions: frozenset[int]) -> dict[str, Any]:
            hours: list[tuple[int, list[int]]] = []
            retries: list[tuple[int, int]] = []
            # A chunk ends where the store has read enough at once; `rest_ms` is where the next one
            # begins.
            from_ms, until_ms = span.within(source.reach_ms(tenant.encode()))
            rest_ms = from_ms
            while True:
                found = store_of(source).statistics(tenant.encode(), rest_ms, until_ms, partitions)
                hours += found.hours.items()
                retries += found.retries.items()
                if found.rest_ms is None:
                    break
                rest_ms = found.rest_ms
                # Others are answered between two chunks, however long the history is.
                await asyncio.sleep(0)
            fires = await _fires(source, tenant, from_ms // HOUR_MS, (until_ms - 1) // HOUR_MS)
            return {
                "hours": hours,
                "retries": retries,
                "fires": [(hour, *counted) for hour, counted in fires.items()],
                "fires_since": store_of(source).fires.first_hour(),
                "worker": parts.ready.directory.mine,
            }

        answers = await gatherer.gather(request, caller, look)
        if not isinstance(answers, list):
            return answers
        return sent(summed(answers, parts.ready.holdings.level(tenant)))

    return routes


async def _fires(source: Follower, tenant: str, first: int, last: int) -> Hours:
    """The fires of this worker in these hours, from its store and from memory.

    Where fires go from here to there meanwhile, it is looked at again.
    """
    for _ in range(LOOKS):
        turn = source.fire_hours.turn
        found: Hours = {}
        rest: int | None = first
        while rest is not None:
            page = store_of(source).fires.of_tenant(tenant.encode(), rest, last)
            found |= page.hours
            rest = page.rest
            await asyncio.sleep(0)
        waiting, now = source.fire_hours.of_tenant(tenant)
        if turn == now and not turn % 2:
            for hour, (fires, in_time) in waiting.items():
                if first <= hour <= last:
                    before = found.get(hour, (0, 0))
                    found[hour] = before[0] + fires, before[1] + in_time
            return found
        await asyncio.sleep(PAUSE_S)
    detail = "The history is being written. Try again."
    raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "moving", RETRY_SOON)
