"""`/v1/tenants/{tenant}/calendars`: days off that schedules of the tenant heed.

    PUT    …/calendars/{name}   its days, which replace the present ones
    GET    …/calendars          the calendars of a tenant
    GET    …/calendars/{name}   one of them
    DELETE …/calendars/{name}   it is forgotten; schedules that have it keep its days

A calendar goes the way of all requests, through Kafka, so it has its place among them.  Each
partition of the tenant keeps it, and tells of its own part.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.calendars import (
    CalendarAnswer,
    CalendarBody,
    CalendarsAnswer,
    calendar_part,
    merged_calendar,
)
from belfry.api.json.document import body_of, problems, with_answer
from belfry.api.json.schedule_answers import VerdictAnswer
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import AskingWhyQuery, ScheduleName, TenantName, parsed
from belfry.api.workers import writing
from belfry.api.workers.gathering import Gathering, json_answer
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.api.workers.writing import Writes, request_fields
from belfry.schedules.calendars import CALENDAR, CALENDAR_REMOVE, days_problem
from belfry.schedules.fields import EMPTY
from belfry.store import calendar_lookup
from belfry.store.ordered_map import OrderedMap

CALENDARS: Final = "/tenants/{tenant}/calendars"
ONE: Final = CALENDARS + "/{calendar}"


def calendar_routes(parts: ApiDependencies, reads: Reads, callers: Callers) -> APIRouter:
    """Routes of calendars.

    A name has the form of a schedule's id, and the home of a calendar's requests follows from it,
    as that of a schedule's requests follows from its id.
    """
    routes = APIRouter(prefix="/v1", tags=["calendars"])
    writes = Writes(parts, reads)
    _setting(routes, writes, callers)
    _looking(routes, Gathering(parts, reads, _told), callers)
    _removing(routes, writes, callers)
    return routes


def _told(rows: OrderedMap, tenant: bytes) -> list[dict[str, Any]]:
    """One partition's facts on all calendars of a tenant."""
    return [calendar_part(name, row) for name, row in calendar_lookup.calendars(rows, tenant)]


def _setting(routes: APIRouter, writes: Writes, callers: Callers) -> None:
    """The route that sets a calendar: a request like any other, judged by its home."""

    @routes.put(
        ONE,
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 200, 201, 202),
            **problems(400, 409, 413, 415, 422, 429, 503),
        },
        openapi_extra=body_of(CalendarBody),
    )
    async def put(
        request: Request,
        tenant: TenantName,
        calendar: ScheduleName,
        asking: AskingWhyQuery,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """Set a calendar; schedules that have it follow within seconds, each told of by an event.

        ACCEPTED says that it is new, UPDATED that its days are others, UNCHANGED that they are not.
        """
        body = await parsed(request, CalendarBody)
        said = body.model_dump_json(include={"days", "weekend", "source"})
        asked: Any = {**EMPTY, "schedule_id": calendar, "action": CALENDAR, "days_off": said}
        # A request that any worker would refuse is refused here, with a status, and is not written.
        found = days_problem(asked)
        if found is not None:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, found.reason, found.code)
        given = {
            "days_off": said,
            "reason": body.reason or asking.reason,
            "request_id": body.request_id or asking.request_id,
        }
        fields = request_fields(tenant, calendar, CALENDAR, given)
        verdict = await writes.carry_out(fields, wait=asking.waits)
        answer = writing.answer(verdict, request.url.path)
        if answer.status_code == HTTPStatus.CREATED:
            answer.headers["location"] = request.url.path
        return answer


def _looking(routes: APIRouter, gathering: Gathering, callers: Callers) -> None:
    """Routes that show calendars, gathered from all partitions of the tenant."""

    @routes.get(
        CALENDARS,
        response_model=None,
        responses={**with_answer(CalendarsAnswer, 200), **problems(422, 429, 503)},
    )
    async def calendars(
        request: Request, tenant: TenantName, caller: Principal = callers.who(Role.READ)
    ) -> Response:
        """The calendars of a tenant, by name."""
        found = await gathering.told(request, caller, tenant)
        if isinstance(found, Response):
            return found
        # Each partition tells of each calendar, so a name comes several times.
        names = sorted({each["calendar"] for each in found})
        return json_answer({"calendars": [_whole(tenant, found, name) for name in names]})

    @routes.get(
        ONE,
        response_model=None,
        responses={**with_answer(CalendarAnswer, 200), **problems(404, 422, 429, 503)},
    )
    async def calendar(
        request: Request,
        tenant: TenantName,
        calendar: ScheduleName,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """One calendar, and whether its schedules have followed the last change."""
        found = await gathering.told(request, caller, tenant)
        if isinstance(found, Response):
            return found
        if not any(each["calendar"] == calendar for each in found):
            names = ", ".join(sorted({each["calendar"] for each in found})) or "none"
            detail = f"The tenant has no calendar {calendar!r}; it has {names}."
            raise Problem(HTTPStatus.NOT_FOUND, detail, "not_found")
        return json_answer(_whole(tenant, found, calendar))


def _whole(tenant: str, found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """One calendar out of the parts of all partitions."""
    return merged_calendar(tenant, [each for each in found if each["calendar"] == name])


def _removing(routes: APIRouter, writes: Writes, callers: Callers) -> None:
    """The route that forgets a calendar."""

    @routes.delete(
        ONE,
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 200, 202),
            **problems(404, 409, 422, 429, 503),
        },
    )
    async def remove(
        request: Request,
        tenant: TenantName,
        calendar: ScheduleName,
        asking: AskingWhyQuery,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """Forget a calendar; schedules that have it keep the days that it had."""
        given = {"reason": asking.reason, "request_id": asking.request_id}
        fields = request_fields(tenant, calendar, CALENDAR_REMOVE, given)
        verdict = await writes.carry_out(fields, wait=asking.waits)
        return writing.answer(verdict, request.url.path, creates=False)
