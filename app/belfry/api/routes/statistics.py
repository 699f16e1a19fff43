"""Statistics: requests, fires and how late they were, by whole hours, over all workers.

    GET /v1/tenants/shop/statistics?from=2026-12-01T09:00:00Z&until=2026-12-01T11:00:00Z
    W1 follows 0, 1    09:00  120 requests, 110 fires       10:00  90 requests, 95 fires
    W2 follows 2, 3    09:00   80 requests,  70 fires
    the answer         09:00  200 requests, 180 fires       10:00  90 requests, 95 fires

Counters lie in the history beside the events, one row for each hour and partition, so a look costs
the same however much happened in an hour. What the tenant's lifecycle level does not let be written
is not counted either. So shares of fires are null unless the level is ALL: a share of what was
counted in part would look true. An hour counts as a whole, also where the range begins within it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.document import problems, with_answer
from belfry.api.json.shapes import moment
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import SpanQuery, TenantName
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.scatter_gather import Gatherer, sent, store_of
from belfry.history import counters
from belfry.history.follower import Follower
from belfry.schedules.outcomes import Outcome
from belfry.tenants.effective import WRITTEN, Level


class CountersAnswer(BaseModel):
    """What was counted; the shares are null where there is nothing to divide by.

    They are null as well where the tenant's level is not ALL: fires are not counted there.
    """

    # All requests that had a verdict, and those that were accepted.
    requests: int
    accepted: int
    fires: int
    # Fires at most a second behind their due instants.
    within_1s: int
    missed: int
    completed: int
    delivered: int
    failed: int
    success_rate: float | None = Field(
        description="Fires among all that came due; null unless the tenant's level is ALL."
    )
    share_within_1s: float | None = Field(
        description="Fires at most a second late; null unless the tenant's level is ALL."
    )


class HourAnswer(CountersAnswer):
    """The same for an hour."""

    # The instant at which the hour begins, in UTC.
    hour: str


class StatisticsAnswer(CountersAnswer):
    """Sums over whole hours, and the hours."""

    lifecycle: str = Field(
        description="The tenant's level now: fires are counted where it is ALL, requests without"
        " an id where it is ALL or OUTCOMES."
    )
    hours: list[HourAnswer]


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
            # A chunk ends where the store has read enough at once; `rest_ms` is where the next one
            # begins.
            rest_ms, until_ms = span.within(source.reach_ms(tenant.encode()))
            while True:
                found = store_of(source).statistics(tenant.encode(), rest_ms, until_ms, partitions)
                hours += found.hours.items()
                if found.rest_ms is None:
                    return {"hours": hours}
                rest_ms = found.rest_ms
                # Others are answered between two chunks, however long the history is.
                await asyncio.sleep(0)

        answers = await gatherer.gather(request, caller, look)
        if not isinstance(answers, list):
            return answers
        return sent(_summed(answers, parts.ready.holdings.level(tenant)))

    return routes


def _summed(answers: Iterable[dict[str, Any]], level: Level) -> dict[str, Any]:
    """Counters of several workers as one answer; fires are shown where the level has them."""
    total = counters.empty()
    hours: dict[int, list[int]] = {}
    shown = partial(counters.shown, fires_told=Outcome.FIRED in WRITTEN[level])
    for answer in answers:
        for hour_ms, counted in answer["hours"]:
            counters.add(hours.setdefault(hour_ms, counters.empty()), counted)
            counters.add(total, counted)
    listed = [
        {"hour": moment(hour_ms), **shown(counted)} for hour_ms, counted in sorted(hours.items())
    ]
    return {**shown(total), "lifecycle": level, "hours": listed}
