"""The two calls that come most, past the framework: look at a schedule, and create one.

FastAPI takes longer to find a route and to fill in its parameters than a read takes altogether, and
the engine's threads wait for all of that time. A call that is plain, with an address without query
and percent-encoding, is known by its path alone: it meets the same caller's checks and the same
function as the route, which stays what the document describes. Every other call, and every name
that is refused, goes on to the framework.

    GET  /v1/tenants/shop/schedules/order-7          here
    POST /v1/tenants/shop/schedules                  here
    GET  /v1/tenants/shop/schedules/order%2F7        the framework: percent-encoding
    GET  /v1/tenants/shop/schedules/order-7?next=3   the framework: a query
    PUT  /v1/tenants/shop/schedules/order-7          the framework: another method

Both ways answer alike. A test asks both and compares, so a check that is added to a route has to be
added here as well.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from belfry.api.auth.principal import Principal, Role
from belfry.api.problem_answers import problem_response
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.server.measured import ROUTE
from belfry.schedules.request import schedule_id_problem, tenant_problem

_PLAIN: Final = re.compile(
    r"/v1/tenants/([A-Za-z0-9_.-]+)/schedules(?:/([A-Za-z0-9._~!$&'()*+,;=:@-]+))?"
)

_CREATE: Final = "/v1/tenants/{tenant}/schedules"
_LOOK: Final = "/v1/tenants/{tenant}/schedules/{schedule_id}"

# Arguments: request, caller, tenant, schedule id.
Look = Callable[[Request, Principal, str, str], Awaitable[Response]]
# Arguments: request, caller, tenant. The body is still to be read.
Create = Callable[[Request, Principal, str], Awaitable[Response]]


class Calls(NamedTuple):
    """The functions for plain calls: `look` at a tenant's schedule, `create` one in a tenant."""

    look: Look
    create: Create


class Express:
    """ASGI middleware: carries plain calls out and hands the others on."""

    def __init__(self, app: ASGIApp, callers: Callers, calls: Calls) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._callers = callers
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        names = _names(scope)
        if names is None:
            await self._app(scope, receive, send)
            return
        scope["path_params"] = {"tenant": names[0]}
        scope[ROUTE] = _CREATE if names[1] is None else _LOOK
        request = Request(scope, receive, send)
        try:
            response = await self._answer(request, *names)
        except Problem as problem:
            response = problem_response(problem, scope["path"])
        await response(scope, receive, send)

    async def _answer(self, request: Request, tenant: str, schedule_id: str | None) -> Response:
        """Admit the caller and carry the call out; raises `Problem`."""
        if schedule_id is None:
            caller = await self._callers.admit(request, Role.SCHEDULE)
            return await self._calls.create(request, caller, tenant)
        caller = await self._callers.admit(request, Role.READ)
        return await self._calls.look(request, caller, tenant, schedule_id)


def _names(scope: Scope) -> tuple[str, str | None] | None:
    """Tenant and schedule of a plain call, the latter None for one to be created."""
    if scope["type"] != "http" or scope["query_string"] or scope["method"] not in _METHODS:
        return None
    found = _PLAIN.fullmatch(scope["path"])
    if found is None:
        return None
    tenant, schedule_id = found.groups()
    if (schedule_id is None) != (scope["method"] == "POST") or tenant_problem(tenant):
        return None
    if schedule_id is not None and schedule_id_problem(schedule_id):
        return None
    return tenant, schedule_id


_METHODS: Final = frozenset({"GET", "POST"})
