"""`/v1/tenants/{tenant}/schedules`: create, look at, change and end schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.bodies import DefinitionBody, ScheduleBody
from belfry.api.json.credentials import warned
from belfry.api.json.document import body_of, bulk_answer, problems, with_answer
from belfry.api.json.queries import AskingOfFire, AskingWhy, Match, expected_version, must_be_new
from belfry.api.json.schedule_answers import (
    CountsAnswer,
    DryRunAnswer,
    LocksAnswer,
    PageAnswer,
    ScheduleAnswer,
    VerdictAnswer,
)
from belfry.api.problems import Problem
from belfry.api.routes.bulk import Charge, create_many, is_many
from belfry.api.routes.callers import Callers
from belfry.api.routes.dry_runs import DryRuns
from belfry.api.routes.express import Calls
from belfry.api.routes.lists import Lists, MostRows
from belfry.api.routes.lookup import ScheduleLookup
from belfry.api.routes.parameters import (
    AskingOfFireQuery,
    AskingQuery,
    AskingWhyQuery,
    ConditionHeaders,
    DueRangeQuery,
    FiltersQuery,
    LookQuery,
    MatchHeaders,
    PagesQuery,
    ScheduleName,
    TenantName,
    parsed,
)
from belfry.api.workers import writing
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.api.workers.writing import Writes, request_fields
from belfry.store.lookup import Wanted

SCHEDULE: Final = "/tenants/{tenant}/schedules/{schedule_id:path}"
SCHEDULES: Final = "/tenants/{tenant}/schedules"

ACTIONS: Final = ("pause", "resume", "trigger")
RESERVED: Final = (*ACTIONS, "ack", "dry-run")
METHODS: Final = frozenset({"GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"})


def schedule_routes(parts: ApiDependencies, reads: Reads, callers: Callers) -> APIRouter:
    """Routes of single schedules and of lists."""
    routes = APIRouter(prefix="/v1", tags=["schedules"])
    writes = Writes(parts, reads)
    _creating(routes, writes, callers)
    _listing(routes, Lists(parts, reads), callers)
    for action in ACTIONS:
        _acting(routes, writes, callers, action)
    _acknowledging(routes, writes, callers)
    _trying(routes, DryRuns(parts, reads), callers)
    _reserve(routes)
    _one(routes, ScheduleLookup(parts, reads), callers)
    _changing(routes, writes, callers)
    return routes


def plain_calls(parts: ApiDependencies, reads: Reads, callers: Callers) -> Calls:
    """What the routes of the most frequent calls do, for those that come without parameters."""
    writes = Writes(parts, reads)

    async def create(request: Request, caller: Principal, tenant: str) -> Response:
        charge = partial(callers.charge, request, caller)
        return await _created(request, tenant, writes, charge, wait=True)

    return Calls(ScheduleLookup(parts, reads).look_up, create)


def _reserve(routes: APIRouter) -> None:
    """An id that ends as an action does is percent-encoded, so other methods have no business."""
    for action, method in (*((name, "POST") for name in RESERVED), ("history", "GET")):
        routes.add_api_route(
            f"{SCHEDULE}/{action}",
            _only(method),
            methods=sorted(METHODS - {method}),
            name=f"no-{action}",
            include_in_schema=False,
        )


def _only(method: str) -> Callable[[Request], Awaitable[None]]:
    async def refuse(request: Request) -> None:
        detail = f"{request.method} is not for {request.url.path}; allowed: {method}."
        status = HTTPStatus.METHOD_NOT_ALLOWED
        raise Problem(status, detail, "method_not_allowed", {"allow": method})

    return refuse


def _creating(routes: APIRouter, writes: Writes, callers: Callers) -> None:
    @routes.post(
        SCHEDULES,
        status_code=HTTPStatus.CREATED,
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 201, 202),
            **bulk_answer(VerdictAnswer),
            **problems(400, 404, 409, 413, 415, 422, 429, 503),
        },
        openapi_extra=body_of(ScheduleBody, bulk=True),
    )
    async def create(
        request: Request,
        tenant: TenantName,
        asking: AskingQuery,
        caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """Create a schedule; the same once more is UNCHANGED, another of the same id a conflict.

        As JSON lines (`application/x-ndjson`) many at once: the answer has a line for each, in
        their order, with the status that it would have had alone.
        """
        charge = partial(callers.charge, request, caller)
        return await _created(request, tenant, writes, charge, wait=asking.waits)


async def _created(
    request: Request, tenant: str, writes: Writes, charge: Charge, *, wait: bool
) -> Response:
    """The answer to a POST of one schedule or of many."""
    if is_many(request):
        return await create_many(request, tenant, writes, charge, wait=wait)
    body = await parsed(request, ScheduleBody)
    fields = request_fields(tenant, body.schedule_id, "CREATE", body.fields())
    verdict = await writes.carry_out(fields, wait=wait)
    return warned(writing.answer(writing.created(verdict), request.url.path), fields)


def _listing(routes: APIRouter, lists: Lists, callers: Callers) -> None:
    @routes.get(
        SCHEDULES,
        response_model=None,
        responses={**with_answer(PageAnswer, 200), **problems(422, 429, 503)},
    )
    async def schedules(
        request: Request,
        tenant: TenantName,
        filters: FiltersQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """Schedules of a tenant, by id, or by due instant where a range is given.

        A page ends when it is full or 10 000 of the tenant's rows have been looked at; then
        `cursor` goes on.  Each 10 000 rows come in due order for themselves.  Pages are no
        snapshot: what changes between two of them may be missed or shown twice.
        """
        most = MostRows(filters.limit, filters.cursor)
        return await lists.page(request, caller, filters.wanted(tenant), most)

    @routes.get(
        "/tenants/{tenant}/counts",
        response_model=None,
        responses={**with_answer(CountsAnswer, 200), **problems(422, 429, 503)},
    )
    async def counts(
        request: Request,
        tenant: TenantName,
        range_: DueRangeQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """How many schedules of a tenant are due in each minute.

        The counts are kept with every change, so they cost the same however many wait.  A minute
        counts as a whole, also where the range begins or ends within it.  A page has at most 10 000
        minutes of one partition; add the pages up.  Paused schedules wait for no instant and do not
        count; what waits for something else is counted where it is due.
        """
        wanted = Wanted(
            tenant.encode(), due_from_ms=range_.due_from or 0, due_until_ms=range_.due_until
        )
        return await lists.counts(request, caller, wanted, range_.cursor)

    @routes.get(
        "/tenants/{tenant}/locks",
        response_model=None,
        responses={**with_answer(LocksAnswer, 200), **problems(422, 429, 503)},
    )
    async def locks(
        request: Request,
        tenant: TenantName,
        pages: PagesQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """The ack locks of a tenant: fires that are to be acknowledged before others go on."""
        most = MostRows(pages.limit, pages.cursor)
        return await lists.locks(request, caller, tenant, most)


def _one(routes: APIRouter, lookup: ScheduleLookup, callers: Callers) -> None:
    @routes.get(
        SCHEDULE,
        response_model=None,
        responses={**with_answer(ScheduleAnswer, 200), **problems(404, 422, 429, 503)},
    )
    async def schedule(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        shown: LookQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """One schedule; for a day after its end, how it ended."""
        return await lookup.look_up(request, caller, tenant, schedule_id, shown)


def _changing(routes: APIRouter, writes: Writes, callers: Callers) -> None:
    @routes.put(
        SCHEDULE,
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 200, 201, 202),
            **problems(400, 404, 409, 412, 413, 415, 422, 429, 503),
        },
        openapi_extra=body_of(DefinitionBody),
    )
    async def put(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        asking: AskingQuery,
        conditions: ConditionHeaders,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """Create a schedule, or replace what it says."""
        version, new = expected_version(conditions.if_match), must_be_new(conditions.if_none_match)
        fields = (await parsed(request, DefinitionBody)).fields()
        if version is not None:
            fields["expected_version"] = version
        asked = request_fields(tenant, schedule_id, "CREATE" if new else "UPSERT", fields)
        verdict = await writes.carry_out(asked, wait=asking.waits)
        conditional = new or version is not None
        return warned(writing.answer(verdict, request.url.path, conditional=conditional), asked)

    @routes.delete(
        SCHEDULE,
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 200, 202),
            **problems(404, 409, 412, 422, 429, 503),
        },
    )
    async def cancel(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        asking: AskingWhyQuery,
        match: MatchHeaders,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """End a schedule before it fires; 409 TOO_LATE where it has."""
        return await _change(request, writes, (tenant, schedule_id, "CANCEL"), asking, match)


async def _change(
    request: Request,
    writes: Writes,
    what: tuple[str, str, str],
    asking: AskingWhy,
    match: Match,
) -> Response:
    """Ask for something that needs no body: tenant, schedule and action."""
    version = expected_version(match.if_match)
    given = {
        "expected_version": version,
        "reason": asking.reason,
        "request_id": asking.request_id,
        "fire_id": asking.fire_id if isinstance(asking, AskingOfFire) else None,
    }
    verdict = await writes.carry_out(request_fields(*what, given), wait=asking.waits)
    conditional = version is not None
    return writing.answer(verdict, request.url.path, conditional=conditional, creates=False)


_MEANINGS: Final = {
    "pause": "Hold a schedule until it is resumed.",
    "resume": "End a pause.",
    "trigger": "Fire once now, besides the schedule's own instants.",
}


def _acting(routes: APIRouter, writes: Writes, callers: Callers, action: str) -> None:
    async def act(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        asking: AskingWhyQuery,
        match: MatchHeaders,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        return await _change(request, writes, (tenant, schedule_id, action.upper()), asking, match)

    act.__doc__ = _MEANINGS[action]
    routes.add_api_route(
        f"{SCHEDULE}/{action}",
        act,
        methods=["POST"],
        name=action,
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 200, 202),
            **problems(404, 409, 412, 422, 429, 503),
        },
    )


def _acknowledging(routes: APIRouter, writes: Writes, callers: Callers) -> None:
    @routes.post(
        f"{SCHEDULE}/ack",
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 200, 202),
            **problems(404, 409, 412, 422, 429, 503),
        },
    )
    async def ack(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        asking: AskingOfFireQuery,
        match: MatchHeaders,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """Acknowledge a fire, so that what waits for it goes on; UNCHANGED where nothing does."""
        return await _change(request, writes, (tenant, schedule_id, "ACK"), asking, match)


def _trying(routes: APIRouter, dry_runs: DryRuns, callers: Callers) -> None:
    @routes.post(
        f"{SCHEDULE}/dry-run",
        response_model=None,
        responses={
            **with_answer(DryRunAnswer, 200),
            **problems(404, 409, 422, 429, 503),
        },
    )
    async def dry_run(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """Fire a copy now, marked by the header `belfry-dry-run`; nothing changes.

        The copy is written outside of the transactions of real fires.
        """
        return await dry_runs.fire(request, caller, tenant, schedule_id)
