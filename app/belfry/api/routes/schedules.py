"""`/v1/tenants/{tenant}/schedules`: the routes of schedules in their order, and creating one.

An id may hold slashes, so the address of one schedule takes all that follows. FastAPI goes through
routes in the order in which they were added and takes the first that fits:

    POST …/schedules/order/4711/pause      the action `pause` of order/4711     asked first
    GET  …/schedules/order/4711/pause      405: the name of an action is reserved
    GET  …/schedules/order%2F4711%2Fpause  the schedule order/4711/pause        asked last

So actions come first, then the reserved names, and the address of one schedule comes last. Reads
are in `schedule_reads.py`, changes of one schedule in `schedule_changes.py`. Creating is here: it
is the most frequent call, one by one or many at once, and `express.py` does the same without
FastAPI.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.bodies import ScheduleBody
from belfry.api.json.conditions import expected_version, must_be_new
from belfry.api.json.credentials import warned
from belfry.api.json.document import body_of, bulk_answer, problems, with_answer
from belfry.api.json.schedule_answers import VerdictAnswer
from belfry.api.problems import Problem, with_head
from belfry.api.routes.bulk import Charge, create_many, is_many
from belfry.api.routes.callers import Callers
from belfry.api.routes.dry_runs import DryRuns
from belfry.api.routes.express import Calls
from belfry.api.routes.lists import Lists
from belfry.api.routes.lookup import ScheduleLookup
from belfry.api.routes.parameters import (
    SCHEDULE,
    SCHEDULES,
    AskingQuery,
    ConditionHeaders,
    TenantName,
    parsed,
)
from belfry.api.routes.schedule_changes import ACTIONS, add_actions, add_changes, add_dry_run
from belfry.api.routes.schedule_reads import add_lists, add_look
from belfry.api.workers import writing
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.api.workers.writing import Writes, request_fields

RESERVED: Final = (*ACTIONS, "ack", "dry-run")
# The code of a CREATE whose id another definition has.
EXISTS: Final = "exists"
METHODS: Final = frozenset({"GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"})


def schedule_routes(parts: ApiDependencies, reads: Reads, callers: Callers) -> APIRouter:
    """Routes of single schedules and of lists."""
    routes = APIRouter(prefix="/v1", tags=["schedules"])
    writes = Writes(parts, reads)
    _creating(routes, writes, callers)
    add_lists(routes, Lists(parts, reads), callers)
    add_actions(routes, writes, callers)
    add_dry_run(routes, DryRuns(parts, reads), callers)
    _reserve(routes)
    add_look(routes, ScheduleLookup(parts, reads), callers)
    add_changes(routes, writes, callers)
    return routes


def plain_calls(parts: ApiDependencies, reads: Reads, callers: Callers) -> Calls:
    """The functions of the most frequent routes, for calls that come without parameters."""
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
    """The handler of a reserved address, which takes this method alone."""

    async def refuse(request: Request) -> None:
        told = ", ".join(with_head({method}))
        detail = f"{request.method} is not for {request.url.path}; allowed: {told}."
        status = HTTPStatus.METHOD_NOT_ALLOWED
        raise Problem(status, detail, "method_not_allowed", {"allow": told})

    return refuse


def _creating(routes: APIRouter, writes: Writes, callers: Callers) -> None:
    """Add the route that creates schedules."""

    @routes.post(
        SCHEDULES,
        status_code=HTTPStatus.CREATED,
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 201, 202),
            **bulk_answer(VerdictAnswer),
            **problems(400, 404, 409, 412, 413, 415, 422, 429, 503),
        },
        openapi_extra=body_of(ScheduleBody, bulk=True),
    )
    async def create(
        request: Request,
        tenant: TenantName,
        asking: AskingQuery,
        _conditions: ConditionHeaders,
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
    version = _condition(request)
    if is_many(request):
        return await create_many(request, tenant, writes, charge, wait=wait)
    body = await parsed(request, ScheduleBody)
    given = body.fields()
    if version is not None:
        given["expected_version"] = version
    fields = request_fields(tenant, body.schedule_id, "CREATE", given)
    verdict = await writes.carry_out(fields, wait=wait)
    # A schedule that meets the condition is there all the same: that is 409, as without it.
    conditional = version is not None and verdict.code != EXISTS
    answer = writing.answer(writing.created(verdict), request.url.path, conditional=conditional)
    return warned(answer, fields)


def _condition(request: Request) -> int | None:
    """The version that a POST expects; raises `Problem` for a condition that it cannot have.

    The headers are read here, since a plain call comes past the framework. `If-None-Match: *` says
    what a POST means anyway.
    """
    must_be_new(request.headers.get("if-none-match"))
    version = expected_version(request.headers.get("if-match"))
    if version is not None and is_many(request):
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "If-Match is about one schedule, and JSON lines are about many: leave it out, and give"
            " a line its expected_version.",
            "bad_condition",
        )
    return version
