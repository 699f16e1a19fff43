"""Refused requests or fired events, sent again by a worker, a slice for each call.

    POST /v1/tenants/shop/redrives?dry=true   how many there are; reads only
    POST /v1/tenants/shop/redrives            some of them are sent, each once
    POST /v1/redrives                         refusals of all tenants, and those without one

Each slice is marked in its own transaction, so the same call goes on where the last one ended, at
this worker or another one, until `left` is 0.  What it promises is docs/redrive.md's; the command
line has the same functions (`client/redrive.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role, check, forbidden
from belfry.api.json.document import body_of, problems, with_answer
from belfry.api.json.queries import Known
from belfry.api.json.redrives import RedriveAnswer, RedriveBody, redrive_json
from belfry.api.notes import note
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import TenantName, parsed
from belfry.api.routes.redrive_turns import RedriveTurns
from belfry.api.server.threads import Threads
from belfry.api.workers.gathering import json_answer
from belfry.api.workers.kept import RedriveWork
from belfry.api.workers.parts import RETRY_SOON, ApiDependencies
from belfry.client.errors import BelfryError
from belfry.client.redrive_source import AnotherRedrive, TooMuchToRedrive
from belfry.client.refired import SharedTopic
from belfry.client.refusals import EVERYBODY
from belfry.tenants.policy import TenantPolicy

# Both read a topic to its end, so there is one of each at a time.
MOST_COUNTS: Final = 1
MOST_REDRIVES: Final = 1


class RedriveQuery(Known):
    """How a redrive is asked for."""

    dry: bool = Field(False, description="Tell how many there are, and change nothing.")


DryQuery = Annotated[RedriveQuery, Query()]


def redrive_routes(parts: ApiDependencies, callers: Callers) -> APIRouter:
    """Routes of redrives: of one tenant, and of the refusals of all."""
    routes = APIRouter(prefix="/v1", tags=["kept"])
    redrives = Redrives(parts)
    documented: dict[str, Any] = {
        "response_model": None,
        "responses": {
            **with_answer(RedriveAnswer, 200),
            **problems(400, 409, 413, 415, 422, 429, 503),
        },
        "openapi_extra": body_of(RedriveBody),
    }

    @routes.post("/tenants/{tenant}/redrives", **documented)
    async def of_tenant(
        request: Request,
        tenant: TenantName,
        asking: DryQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """Send requests again that were refused in a range, or events that have fired, each once.

        A call sends for ten seconds at most and tells how many are `left`: ask the same
        again, with its `range_until`, until that is 0.  With `dry` it counts, and nothing changes.
        """
        if not asking.dry:
            check(caller, Role.SCHEDULE, tenant)
        return await redrives.answer(request, tenant, dry=asking.dry)

    @routes.post("/redrives", **documented)
    async def of_all(
        request: Request, asking: DryQuery, caller: Principal = callers.who(Role.READ)
    ) -> Response:
        """The same for all refusals, also those without a tenant; for callers of all (`*`)."""
        if not caller.reaches_all:
            raise forbidden(
                f"{caller.name} is bound to some tenants: redrive those of one of them."
            )
        if not asking.dry:
            check(caller, Role.SCHEDULE, None)
        return await redrives.answer(request, EVERYBODY, dry=asking.dry)

    return routes


class Redrives:
    """Carries redrives out in threads of few; belongs to one event loop."""

    def __init__(self, parts: ApiDependencies) -> None:
        self._parts = parts
        self._counts = Threads("counts of a redrive", MOST_COUNTS)
        self._sends = Threads("redrives", MOST_REDRIVES)
        self._turns = RedriveTurns()

    async def answer(self, request: Request, tenant: str, *, dry: bool) -> Response:
        """The result of a call; raises `Problem`."""
        note().changes_nothing = dry
        body = await parsed(request, RedriveBody)
        note().because(body.reason)
        if tenant == EVERYBODY and body.what != "rejected":
            detail = "Events are sent again for one tenant: POST …/tenants/{tenant}/redrives."
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, "bad_redrive")
        work = body.work(tenant, int(self._parts.now_ms()), dry=dry)
        if dry:
            found, sent = await self._counts.run(self._carried_out(work))
        else:
            found, sent = await self._sent(tenant, work)
        return json_answer(redrive_json(work, found, sent))

    async def _sent(self, tenant: str, work: RedriveWork) -> tuple[Any, int]:
        """Send a slice when it is the tenant's turn; raises `Problem`."""
        now_ms = int(self._parts.now_ms())
        self._turns.see(tenant, now_ms)
        try:
            found, sent = await self._sends.run(self._carried_out(work))
        except Problem as problem:
            if problem.more["code"] == "busy":
                self._turns.refused(tenant, now_ms)
            raise
        self._turns.had(tenant)
        return found, sent

    def _carried_out(self, work: RedriveWork) -> Callable[[], Any]:
        """The call that blocks, with its errors as problems."""
        kept, policies = self._parts.kept, self._parts.ready.policies

        def carry_out() -> Any:
            known: dict[str, TenantPolicy] = {}
            if work.tenant != EVERYBODY:
                found = ((name, policies.policy(name)) for name in policies.names())
                known = {name: each for name, each in found if each is not None}
            try:
                return kept.redrive(work, known)
            except BelfryError as error:
                raise _problem(error) from None

        return carry_out


def _problem(error: BelfryError) -> Problem:
    """Why no record, or not each, was sent, and what to do."""
    if isinstance(error, SharedTopic):
        detail = (
            f"{error}, and an old event does not say whose it is: `belfry redrive fires` with"
            " --topic sends again what fits of all of them."
        )
        return Problem(HTTPStatus.CONFLICT, detail, "shared_topic")
    if isinstance(error, TooMuchToRedrive):
        detail = f"{error} Give a later range_from, or use `belfry redrive`, which reads all."
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, "too_much")
    if isinstance(error, AnotherRedrive):
        return Problem(HTTPStatus.CONFLICT, str(error), "another_redrive")
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error), "unavailable", RETRY_SOON)
