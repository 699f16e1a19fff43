"""Routes that change one schedule: replace, cancel, pause, resume, trigger, acknowledge, try.

Each of them but the dry run is a request in Kafka and its verdict (`workers/writing.py`), and may
say which version it is about:

    PUT    …/schedules/order-7   If-Match: "3"           3 is the latest: 200 UPDATED, version 4
    DELETE …/schedules/order-7   If-Match: "3"           4 is the latest: 412, nothing is changed
    POST   …/schedules/order-7/pause                     no condition: 200 PAUSED
    POST   …/schedules/order-7/dry-run                   fires a marked copy, changes nothing

A condition goes along in the request and is judged where the schedule lives, in the transaction
that changes it. So no other change comes between the look and the change, from any caller.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.bodies import ReplacementBody
from belfry.api.json.conditions import Match, expected_version, must_be_new
from belfry.api.json.credentials import warned
from belfry.api.json.document import body_of, problems, with_answer
from belfry.api.json.queries import AskingOfFire, AskingWhy
from belfry.api.json.schedule_answers import DryRunAnswer, VerdictAnswer
from belfry.api.notes import note
from belfry.api.routes.callers import Callers
from belfry.api.routes.dry_runs import DryRuns
from belfry.api.routes.parameters import (
    SCHEDULE,
    AskingOfFireQuery,
    AskingQuery,
    AskingWhyQuery,
    ConditionHeaders,
    MatchHeaders,
    ScheduleName,
    TenantName,
    WhyQuery,
    parsed,
)
from belfry.api.workers import writing
from belfry.api.workers.writing import Writes, request_fields

# Actions on a schedule that need only its name, with their texts for OpenAPI.
ACTIONS: Final = {
    "pause": "Hold a schedule until it is resumed.",
    "resume": "End a pause.",
    "trigger": "Fire once now, besides the schedule's own instants.",
}
# Responses to a change of an existing schedule.
VERDICTS: Final[dict[int | str, Any]] = {
    **with_answer(VerdictAnswer, 200, 202),
    **problems(404, 409, 412, 422, 429, 503),
}


def add_changes(routes: APIRouter, writes: Writes, callers: Callers) -> None:
    """Add the routes that replace a schedule and that end it."""

    @routes.put(
        SCHEDULE,
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 200, 201, 202),
            **problems(400, 404, 409, 412, 413, 415, 422, 429, 503),
        },
        openapi_extra=body_of(ReplacementBody),
    )
    async def put(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        asking: AskingQuery,
        conditions: ConditionHeaders,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """Create a schedule, or replace the content of an existing one."""
        version, new = expected_version(conditions.if_match), must_be_new(conditions.if_none_match)
        body = await parsed(request, ReplacementBody)
        body.must_be(tenant, schedule_id)
        fields = body.fields()
        if version is not None:
            fields["expected_version"] = version
        asked = request_fields(tenant, schedule_id, "CREATE" if new else "UPSERT", fields)
        verdict = await writes.carry_out(asked, wait=asking.waits)
        conditional = new or version is not None
        return warned(writing.answer(verdict, request.url.path, conditional=conditional), asked)

    @routes.delete(
        SCHEDULE,
        response_model=None,
        responses=VERDICTS,
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


def add_actions(routes: APIRouter, writes: Writes, callers: Callers) -> None:
    """Add the routes of all actions that a request to Kafka carries out."""
    for action in ACTIONS:
        _acting(routes, writes, callers, action)
    _acknowledging(routes, writes, callers)


def _acting(routes: APIRouter, writes: Writes, callers: Callers, action: str) -> None:
    """Add the route of one action of `ACTIONS`."""

    async def act(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        asking: AskingWhyQuery,
        match: MatchHeaders,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        return await _change(request, writes, (tenant, schedule_id, action.upper()), asking, match)

    act.__doc__ = ACTIONS[action]
    routes.add_api_route(
        f"{SCHEDULE}/{action}",
        act,
        methods=["POST"],
        name=action,
        response_model=None,
        responses=VERDICTS,
    )


def _acknowledging(routes: APIRouter, writes: Writes, callers: Callers) -> None:
    """Add the route that acknowledges a fire."""

    @routes.post(
        f"{SCHEDULE}/ack",
        response_model=None,
        responses=VERDICTS,
    )
    async def ack(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        asking: AskingOfFireQuery,
        match: MatchHeaders,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """Acknowledge a fire, so that the next event behind it goes on; UNCHANGED if none waits."""
        return await _change(request, writes, (tenant, schedule_id, "ACK"), asking, match)


def add_dry_run(routes: APIRouter, dry_runs: DryRuns, callers: Callers) -> None:
    """Add the route that fires a copy."""

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
        query: WhyQuery,
        caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """Fire a copy now, marked by the header `belfry-dry-run`; the schedule does not change.

        The copy is written outside of the transactions of real fires.
        """
        note().because(query.reason)
        return await dry_runs.fire(request, caller, tenant, schedule_id)
