"""Histories and statistics: what became of requests and occurrences.

A schedule's history lies with one worker; a tenant's is gathered from all, each of which answers
for the partitions that it follows.  What is told is a second or so behind what has happened, and
holds what the tenant's lifecycle level lets be written.
"""

from __future__ import annotations

import asyncio
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from itertools import islice
from time import monotonic
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from belfry.api.access import Principal, Role
from belfry.api.bodies import Instant
from belfry.api.callers import Callers
from belfry.api.document import problems, with_answer
from belfry.api.holdings import NotHeld
from belfry.api.names import ScheduleName, TenantName
from belfry.api.parts import RETRY_SOON, Parts
from belfry.api.peers import FORWARDED, NOT_HELD, Target, Unreachable
from belfry.api.problems import Problem
from belfry.api.queries import Known
from belfry.api.reading import Reads
from belfry.api.schedules import SCHEDULE
from belfry.api.shapes import moment
from belfry.history import counters
from belfry.history.book import Book
from belfry.history.layout import Place, after
from belfry.history.source import History
from belfry.schedules.identity import partition_of
from belfry.store.keys import schedule_key
from belfry.wire.lifecycle import LifecycleEvent, decode_lifecycle

FOLLOWED: Final = "belfry-followed"
PATIENCE_S: Final = 2.0
PAUSE_S: Final = 0.05
FOREVER_MS: Final = 253_402_300_799_999
_CURSOR: Final = struct.Struct(">qHQ")


class Span(Known):
    """A range of instants."""

    from_: Instant | None = Field(None, alias="from", description="First instant.")
    until: Instant | None = Field(None, description="Before this instant.")

    def low_ms(self) -> int:
        """First instant, epoch ms."""
        return self.from_ or 0

    def high_ms(self) -> int:
        """The instant that ends it, epoch ms."""
        return FOREVER_MS if self.until is None else min(self.until, FOREVER_MS)


class HistorySpan(Span):
    """The same, in pages."""

    limit: int = Field(100, ge=1, le=1000)
    cursor: str | None = Field(None, max_length=100, description="Of the page before.")

    def start(self) -> Place:
        """Where the page begins; raises `Problem` for what is no cursor."""
        if self.cursor is None:
            return Place(self.low_ms(), 0, 0)
        try:
            raw = urlsafe_b64decode(self.cursor + "=" * (-len(self.cursor) % 4))
            return after(Place(*_CURSOR.unpack(raw)))
        except (ValueError, struct.error):
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"Cursor {self.cursor!r} is none: give back that of a page, or leave it out.",
                "bad_cursor",
            ) from None


class EventAnswer(BaseModel):
    """One lifecycle event, in the names of its schema."""

    tenant: str
    schedule_id: str
    outcome: str
    request_id: str | None
    fire_id: str | None
    version: int | None
    at: str
    due_at: str | None
    code: str | None
    reason: str | None
    target: str | None
    attempt: int | None
    source_topic: str | None
    source_partition: int | None
    source_offset: int | None


class HistoryAnswer(BaseModel):
    """Some events, oldest first."""

    events: list[EventAnswer]
    cursor: str | None = Field(description="Give it back for the next page; null at the end.")


class CountersAnswer(BaseModel):
    """What was counted; the shares are null where there is nothing to divide by."""

    requests: int
    accepted: int
    fires: int
    within_1s: int
    missed: int
    completed: int
    delivered: int
    failed: int
    success_rate: float | None = Field(description="Fires among all that came due.")
    share_within_1s: float | None = Field(description="Fires at most a second late.")


class HourAnswer(CountersAnswer):
    """The same for an hour."""

    hour: str


class StatisticsAnswer(CountersAnswer):
    """Sums over whole hours, and the hours."""

    lifecycle: str | None = Field(
        description="The tenant's level now: fires are counted where it is ALL, requests without"
        " an id where it is ALL or OUTCOMES."
    )
    hours: list[HourAnswer]


SpanQuery = Annotated[Span, Query()]
HistoryQuery = Annotated[HistorySpan, Query()]
Found = tuple[Place, bytes]


def history_routes(parts: Parts, reads: Reads, callers: Callers) -> APIRouter:
    """Routes of histories and statistics."""
    routes = APIRouter(prefix="/v1", tags=["history"])
    gatherer = Gatherer(parts)
    _of_schedule(routes, parts, reads, callers)
    _of_tenant(routes, gatherer, callers)
    _statistics(routes, parts, gatherer, callers)
    return routes


def _of_schedule(routes: APIRouter, parts: Parts, reads: Reads, callers: Callers) -> None:
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
        start = span.start()
        partition = partition_of(schedule_key(tenant, schedule_id), _opened(source).partitions)

        async def look(home: int) -> Response:
            if partition not in source.followed:
                raise NotHeld(home)
            found = _book(source).of_schedule(
                tenant.encode(), schedule_id.encode(), start, span.high_ms()
            )
            return _page(found, span.limit)

        return await reads.answer(request, caller, source.home_of(partition), look)


def _of_tenant(routes: APIRouter, gatherer: Gatherer, callers: Callers) -> None:
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
        start = span.start()

        def look(book: Book, partitions: frozenset[int]) -> dict[str, Any]:
            found = book.of_tenant(tenant.encode(), start, span.high_ms(), partitions)
            return _events(found, span.limit)

        parts = await gatherer.gather(request, caller, look)
        return _sent(_merged(parts, span.limit)) if isinstance(parts, list) else parts


def _statistics(routes: APIRouter, parts: Parts, gatherer: Gatherer, callers: Callers) -> None:
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

        def look(book: Book, partitions: frozenset[int]) -> dict[str, Any]:
            found = book.statistics(tenant.encode(), span.low_ms(), span.high_ms(), partitions)
            return {"hours": [[hour_ms, counted] for hour_ms, counted in found.items()]}

        answers = await gatherer.gather(request, caller, look)
        if not isinstance(answers, list):
            return answers
        return _sent(_summed(answers, _level(parts, tenant)))


def _level(parts: Parts, tenant: str) -> str | None:
    """The tenant's lifecycle level, null where this worker has not met it."""
    known = parts.ready.holdings.tenant(tenant)
    return None if known is None else str(known.level)


def _summed(answers: Iterable[dict[str, Any]], level: str | None) -> dict[str, Any]:
    total = counters.empty()
    hours: dict[int, list[int]] = {}
    for answer in answers:
        for hour_ms, counted in answer["hours"]:
            counters.add(hours.setdefault(hour_ms, counters.empty()), counted)
            counters.add(total, counted)
    listed = [
        {"hour": moment(hour_ms), **counters.shown(counted)}
        for hour_ms, counted in sorted(hours.items())
    ]
    return {**counters.shown(total), "lifecycle": level, "hours": listed}


class Gatherer:
    """Asks each worker for the partitions that it follows; belongs to one event loop."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def gather(
        self, request: Request, caller: Principal, look: Any
    ) -> list[dict[str, Any]] | Response:
        """What `look` finds here and what the others find; a response for a worker that asks."""
        source = _opened(self._parts.ready.history)
        if FORWARDED in request.headers:
            return self._for_worker(request, source, look)
        deadline = monotonic() + PATIENCE_S
        missing = frozenset(range(source.partitions))
        found: list[dict[str, Any]] = []
        while True:
            here = missing & source.followed
            if here:
                found.append(look(_book(source), here))
                missing -= here
            told, why = await self._elsewhere(request, caller, source, missing)
            for partitions, answer in told:
                found.append(answer)
                missing -= partitions
            if not missing:
                return found
            if monotonic() > deadline:
                detail = f"Partitions {sorted(missing)} are on their way ({why}). Try again."
                raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "moving", RETRY_SOON)
            await asyncio.sleep(PAUSE_S)

    def _for_worker(self, request: Request, source: History, look: Any) -> Response:
        """Answer for the partitions that another worker asks for, if all of them are here."""
        asked = request.headers.get(FOLLOWED, "")
        wanted = frozenset(int(each) for each in asked.split(",") if each.isdecimal())
        if not wanted or not wanted <= source.followed:
            detail = f"Partitions {sorted(wanted - source.followed)} are not followed here."
            refusal = Problem(HTTPStatus.MISDIRECTED_REQUEST, detail, "not_held", {NOT_HELD: "1"})
            return refusal.response(request.url.path)
        return _sent(look(_book(source), wanted))

    async def _elsewhere(
        self, request: Request, caller: Principal, source: History, missing: frozenset[int]
    ) -> tuple[list[tuple[frozenset[int], dict[str, Any]]], str]:
        """Answers of the other workers with what each answers for, and why some are missing."""
        directory = self._parts.ready.directory
        by_url: dict[str, set[int]] = {}
        for partition in missing:
            url = directory.holder(source.home_of(partition))
            if url is not None and url != directory.mine:
                by_url.setdefault(url, set()).add(partition)
        if not by_url:
            return [], "the group has not said who holds them"
        target = await Target.of(request)
        asked = [self._ask(url, target, caller, frozenset(some)) for url, some in by_url.items()]
        answers = await asyncio.gather(*asked)
        why = "; ".join(answer for _, answer in answers if isinstance(answer, str))
        return [(some, told) for some, told in answers if not isinstance(told, str)], why

    async def _ask(
        self, url: str, target: Target, caller: Principal, partitions: frozenset[int]
    ) -> tuple[frozenset[int], dict[str, Any] | str]:
        headers = {FOLLOWED: ",".join(map(str, sorted(partitions)))}
        try:
            answer = await self._parts.peers.ask(url, target, caller, headers)
        except Unreachable as error:
            return partitions, str(error)
        if answer.status_code != HTTPStatus.OK:
            return partitions, f"{url} answers {answer.status_code}"
        return partitions, orjson.loads(answer.body)


def _opened(source: History) -> History:
    if source.book is None or not source.partitions:
        detail = "The history is not open yet. Try again."
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "starting", RETRY_SOON)
    return source


def _book(source: History) -> Book:
    book = _opened(source).book
    assert book is not None
    return book


def _page(found: Iterator[Found], limit: int) -> Response:
    return _sent(_merged([_events(found, limit)], limit))


def _events(found: Iterator[Found], limit: int) -> dict[str, Any]:
    """At most `limit` events with their places, and whether there are more."""
    some = list(islice(found, limit + 1))
    shown = [[list(place), _shown(decode_lifecycle(body))] for place, body in some[:limit]]
    return {"events": shown, "more": len(some) > limit}


def _merged(answers: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """One page out of those of several workers: the oldest `limit` events of all."""
    events = sorted((event for answer in answers for event in answer["events"]), key=_by_place)
    more = len(events) > limit or any(answer["more"] for answer in answers)
    events = events[:limit]
    cursor = None
    if more and events:
        cursor = urlsafe_b64encode(_CURSOR.pack(*events[-1][0])).decode().rstrip("=")
    return {"events": [event for _, event in events], "cursor": cursor}


def _by_place(event: list[Any]) -> list[int]:
    place: list[int] = event[0]
    return place


def _shown(event: LifecycleEvent) -> dict[str, Any]:
    found = {name: getattr(event, name) for name in EventAnswer.model_fields}
    return {**found, "at": moment(event.at), "due_at": moment(event.due_at)}


def _sent(told: dict[str, Any]) -> Response:
    return Response(orjson.dumps(told), HTTPStatus.OK, None, "application/json")
