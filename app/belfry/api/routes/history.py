"""Histories: verdicts on requests, and fires of occurrences.

A schedule's history lies with one worker; a tenant's is gathered from all, each of which answers
for the partitions that it follows. A history is a second or so behind, and holds the events that
the tenant's lifecycle level lets be written.

A page of a tenant's history is made of those of several workers. With a limit of 3:

    W1 tells    10:00  10:02  10:04        and has more behind 10:04
    W2 tells    10:01  10:07               and has nothing more
    the page    10:00  10:01  10:02        the next page begins behind 10:02
                10:07 is not shown yet: W1 may have events between 10:04 and 10:07

The history of one schedule may be asked for from its newest event on: the last ones are all that
most callers want, and a schedule may have a million.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.document import problems, with_answer
from belfry.api.json.events import HistoryAnswer
from belfry.api.json.shapes import moment
from belfry.api.json.spans import HistorySpan, cursor_to
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import (
    SCHEDULE,
    HistoryQuery,
    ScheduleHistoryQuery,
    ScheduleName,
    TenantName,
)
from belfry.api.workers.holdings import NotHeld
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.api.workers.scatter_gather import Gatherer, opened, sent, store_of
from belfry.history.follower import Follower
from belfry.history.history_store import HistoryPage, of_outcomes, page
from belfry.history.layout import SortKey, after
from belfry.schedules.identity import partition_of
from belfry.schedules.masking import masked_url
from belfry.store.layout.keys import schedule_key
from belfry.wire.lifecycle import LifecycleEvent, decode_lifecycle, record_of


def history_routes(parts: ApiDependencies, reads: Reads, callers: Callers) -> APIRouter:
    """Routes of the history of one schedule, and of a tenant's."""
    routes = APIRouter(prefix="/v1", tags=["history"])
    _of_schedule(routes, parts, reads, callers)
    _of_tenant(routes, Gatherer(parts), callers)
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
        span: ScheduleHistoryQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """The history of one schedule and of the requests on it, oldest or newest first."""
        source = parts.ready.history
        asked = span.asked(tenant, schedule_id)
        start = span.start(asked)
        # The partition of the lifecycle topic, which may be another number than that of requests.
        partition = partition_of(schedule_key(tenant, schedule_id), opened(source).partitions)

        async def look(home: int) -> Response:
            if partition not in source.followed:
                raise NotHeld(home)
            name, store = (tenant.encode(), schedule_id.encode()), store_of(source)
            if span.newest_first:
                walk = store.newest_of_schedule(*name, *_range_back(source, tenant, span, start))
            else:
                walk = store.of_schedule(*name, *_range(source, tenant, span, start))
            found = page(of_outcomes(walk, span.outcome), span.limit)
            events = [shown_event(decode_lifecycle(body), place) for place, body in found.found]
            return sent({"events": events, "cursor": cursor_to(found.rest, asked)})

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
        """The history of a tenant's schedules and requests, oldest first, over all partitions."""
        asked = span.asked(tenant)
        start = span.start(asked)

        async def look(source: Follower, partitions: frozenset[int]) -> dict[str, Any]:
            place, until_ms = _range(source, tenant, span, start)
            walk = store_of(source).of_tenant(tenant.encode(), place, until_ms, partitions)
            return _events(page(walk, span.limit))

        parts = await gatherer.gather(request, caller, look)
        return sent(_merged(parts, span.limit, asked)) if isinstance(parts, list) else parts


def _range(
    source: Follower, tenant: str, span: HistorySpan, start: SortKey | None
) -> tuple[SortKey, int]:
    """Where a page begins, and before which instant it ends."""
    low_ms, until_ms = span.within(source.reach_ms(tenant.encode()))
    low = SortKey(low_ms, 0, 0)
    return low if start is None else max(low, start), until_ms


def _range_back(
    source: Follower, tenant: str, span: HistorySpan, start: SortKey | None
) -> tuple[SortKey, SortKey]:
    """Where a page ends that has the newest events first, and behind which place it begins."""
    low_ms, until_ms = span.within(source.reach_ms(tenant.encode()))
    until = SortKey(until_ms, 0, 0)
    return SortKey(low_ms, 0, 0), until if start is None else min(after(start), until)


def _events(found: HistoryPage) -> dict[str, Any]:
    """Events with their places, and where the rest begins."""
    shown = [
        [list(place), shown_event(decode_lifecycle(body), place)] for place, body in found.found
    ]
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


def shown_event(event: LifecycleEvent, place: SortKey) -> dict[str, Any]:
    """An event as JSON has it, at its place; credentials in a target's address are masked."""
    told: dict[str, Any] = {
        **record_of(event),
        "at": moment(event.at),
        "due_at": moment(event.due_at),
        "told_partition": place.partition,
        "told_offset": place.offset,
    }
    if event.target is not None:
        told["target"] = masked_url(event.target)
    return told
