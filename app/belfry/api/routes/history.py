"""Histories and statistics: what became of requests and occurrences.

A schedule's history lies with one worker; a tenant's is gathered from all, each of which answers
for the partitions that it follows. What is told is a second or so behind what has happened, and
holds what the tenant's lifecycle level lets be written.

A page of a tenant's history is made of those of several workers. With a limit of 3:

    W1 tells    10:00  10:02  10:04        and has more behind 10:04
    W2 tells    10:01  10:07               and has nothing more
    the page    10:00  10:01  10:02        the next page begins behind 10:02
                10:07 is not shown yet: W1 may have events between 10:04 and 10:07
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
from belfry.api.json.events import EventAnswer, HistoryAnswer
from belfry.api.json.shapes import moment
from belfry.api.json.spans import HistorySpan, cursor_to
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import HistoryQuery, ScheduleName, SpanQuery, TenantName
from belfry.api.routes.schedules import SCHEDULE
from belfry.api.workers.holdings import NotHeld
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.api.workers.scatter_gather import Gatherer, opened, sent, store_of
from belfry.history import counters
from belfry.history.follower import Follower
from belfry.history.history_store import HistoryPage, page
from belfry.history.layout import SortKey, after
from belfry.schedules.identity import partition_of
from belfry.schedules.masking import masked_url
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.keys import schedule_key
from belfry.tenants.effective import WRITTEN, Level
from belfry.wire.lifecycle import LifecycleEvent, decode_lifecycle


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


def history_routes(parts: ApiDependencies, reads: Reads, callers: Callers) -> APIRouter:
    """Routes of histories and statistics."""
    routes = APIRouter(prefix="/v1", tags=["history"])
    gatherer = Gatherer(parts)
    _of_schedule(routes, parts, reads, callers)
    _of_tenant(routes, gatherer, callers)
    _statistics(routes, parts, gatherer, callers)
    return routes


def _of_schedule(routes: APIRouter, parts: ApiDependencies, reads: Reads, callers: Callers) -> None:
    """The route of one schedule's history, answered by the worker that follows its partition."""

    @routes.get(
        f"{SCHEDULE}/history",
        response_model=None,
        responses={**with_answer(HistoryAnswer, 200), **problems(422, 429, 503)},
    )
    async def history(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        span: HistoryQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """What became of one schedule and of the requests on it, oldest first."""
        source = parts.ready.history
        asked = span.asked(tenant, schedule_id)
        start = span.start(asked)
        # The partition of the lifecycle topic, which may be another number than that of requests.
        partition = partition_of(schedule_key(tenant, schedule_id), opened(source).partitions)

        async def look(home: int) -> Response:
            if partition not in source.followed:
                raise NotHeld(home)
            place, until_ms = _range(source, tenant, span, start)
            walk = store_of(source).of_schedule(
                tenant.encode(), schedule_id.encode(), place, until_ms
            )
            return sent(_merged([_events(page(walk, span.limit))], span.limit, asked))

        return await reads.answer(request, caller, source.home_of(partition), look)


def _of_tenant(routes: APIRouter, gatherer: Gatherer, callers: Callers) -> None:
    """The route of a tenant's history, gathered from all workers."""

    @routes.get(
        "/tenants/{tenant}/history",
        response_model=None,
        responses={**with_answer(HistoryAnswer, 200), **problems(422, 429, 503)},
    )
    async def tenant_history(
        request: Request,
        tenant: TenantName,
        span: HistoryQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """What became of a tenant's schedules and requests, oldest first, over all partitions."""
        asked = span.asked(tenant)
        start = span.start(asked)

        async def look(source: Follower, partitions: frozenset[int]) -> dict[str, Any]:
            place, until_ms = _range(source, tenant, span, start)
            walk = store_of(source).of_tenant(tenant.encode(), place, until_ms, partitions)
            return _events(page(walk, span.limit))

        parts = await gatherer.gather(request, caller, look)
        return sent(_merged(parts, span.limit, asked)) if isinstance(parts, list) else parts


def _statistics(
    routes: APIRouter, parts: ApiDependencies, gatherer: Gatherer, callers: Callers
) -> None:
    """The route of statistics, summed up from all workers."""

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


def _range(
    source: Follower, tenant: str, span: HistorySpan, start: SortKey | None
) -> tuple[SortKey, int]:
    """Where a page begins, and before which instant it ends."""
    low_ms, until_ms = span.within(source.reach_ms(tenant.encode()))
    low = SortKey(low_ms, 0, 0)
    return low if start is None else max(low, start), until_ms


def _events(found: HistoryPage) -> dict[str, Any]:
    """Events with their places, and where the rest begins."""
    shown = [[list(place), _shown(decode_lifecycle(body))] for place, body in found.found]
    return {"events": shown, "rest": None if found.rest is None else list(found.rest)}


def _merged(answers: list[dict[str, Any]], limit: int, asked: bytes) -> dict[str, Any]:
    """One page out of those of several workers: the oldest `limit` events of all that was asked.

    The page ends where the first of them stopped to look: behind that, others' events may be older.
    """
    rests = [SortKey(*answer["rest"]) for answer in answers if answer["rest"] is not None]
    rest = min(rests, default=None)
    events = [(SortKey(*place), event) for answer in answers for place, event in answer["events"]]
    events = sorted((each for each in events if rest is None or each[0] < rest), key=_by_place)
    if len(events) > limit:
        rest = after(events[limit - 1][0])
    return {"events": [event for _, event in events[:limit]], "cursor": cursor_to(rest, asked)}


def _by_place(event: tuple[SortKey, Any]) -> SortKey:
    """The key of a sort: an event's instant first, then its place in the topic."""
    return event[0]


def _shown(event: LifecycleEvent) -> dict[str, Any]:
    """An event as JSON has it; credentials in a target's address are masked."""
    found = {name: getattr(event, name) for name in EventAnswer.model_fields}
    target = None if event.target is None else masked_url(event.target)
    return {**found, "at": moment(event.at), "due_at": moment(event.due_at), "target": target}
