"""`/v1/tenants/{tenant}/jobs`: one action on all schedules that a filter matches.

    POST   …/jobs?dry=true   how many the filter matches, page by page; reads only
    POST   …/jobs            a job begins
    GET    …/jobs            the jobs of a tenant
    GET    …/jobs/{job}      one of them, with its progress
    DELETE …/jobs/{job}      it stops; its changes so far stay

A job goes the way of all requests, through Kafka, so it outlives the worker that took it. Each
partition of the tenant works on its own part, and the parts are put together here:

    12:00:00.00  POST: PAUSE, prefix=order/; the verdict ACCEPTED is 201 with the job's place
    12:00:00.05  partitions 2 and 5 of the tenant begin, `per_second` shared by both
    12:00:03.00  GET: W1 reads part 2 and asks W2 for part 5: 300 matched + 280 matched, RUNNING
    12:00:09.00  partition 5 is through its names: ended_partitions is 1
    12:00:10.00  partition 2 is too: the job is DONE

If the holder of one partition does not answer, the whole look is refused, for a sum without one
part would look complete.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import quote
from uuid import uuid4

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role, check
from belfry.api.json.document import body_of, problems, with_answer
from belfry.api.json.jobs import (
    JobAnswer,
    JobBody,
    JobsAnswer,
    PreviewJobAnswer,
    merged,
    part,
)
from belfry.api.json.queries import ChangeQuery
from belfry.api.json.schedule_answers import VerdictAnswer
from belfry.api.notes import note
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.job_previews import JobPreviews
from belfry.api.routes.parameters import AskingWhyQuery, ScheduleName, TenantName, parsed
from belfry.api.workers import writing
from belfry.api.workers.gathering import Gathering, json_answer
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.api.workers.writing import Writes, request_fields
from belfry.schedules.bulk import BULK, BULK_STOP, REKEY, bulk_problem
from belfry.schedules.fields import EMPTY
from belfry.store import job_lookup
from belfry.store.ordered_map import OrderedMap

JOBS: Final = "/tenants/{tenant}/jobs"
JOB: Final = JOBS + "/{job:path}"


class JobQuery(ChangeQuery):
    """How a job is asked for."""

    dry: bool = Field(False, description="Tell how many schedules match, and change nothing.")
    cursor: str | None = Field(None, max_length=2000, description="Of the page before; with dry.")


JobQueryParameters = Annotated[JobQuery, Query()]


def job_routes(parts: ApiDependencies, reads: Reads, callers: Callers) -> APIRouter:
    """Routes of bulk jobs."""
    routes = APIRouter(prefix="/v1", tags=["jobs"])
    writes = Writes(parts, reads)
    _beginning(routes, writes, JobPreviews(parts, reads), callers)
    _looking(routes, JobParts(parts, reads), callers)
    _stopping(routes, writes, callers)
    return routes


class JobParts:
    """Asks all partitions of a tenant for its jobs; belongs to one event loop."""

    def __init__(self, parts: ApiDependencies, reads: Reads) -> None:
        self._parts = parts
        self._gathering = Gathering(parts, reads, _told)

    async def answer(
        self, request: Request, caller: Principal, tenant: str, job: str | None
    ) -> Response:
        """The jobs of a tenant, or one of them; its parts alone where another worker asks.

        `job` is an id, or None for all jobs. Raises `Problem` (404) for a job that no partition
        knows.
        """
        told = await self._gathering.told(request, caller, tenant)
        if isinstance(told, Response):
            return told
        found: dict[str, list[dict[str, Any]]] = {}
        for each in told:
            found.setdefault(each["job"], []).append(each)
        now_ms = int(self._parts.now_ms())
        if job is None:
            whole = [merged(tenant, each, now_ms) for each in found.values()]
            whole.sort(key=lambda each: (each["begun_at"], each["job"]), reverse=True)
            return json_answer({"jobs": whole})
        if job not in found:
            detail = f"The tenant has no job {job!r}; one that ended is shown for a week."
            raise Problem(HTTPStatus.NOT_FOUND, detail, "not_found")
        return json_answer(merged(tenant, found[job], now_ms))


def _told(rows: OrderedMap, tenant: bytes) -> list[dict[str, Any]]:
    """The parts of one partition; it runs where that partition is held."""
    return [part(job, row) for job, row in job_lookup.jobs(rows, tenant)]


def _beginning(routes: APIRouter, writes: Writes, previews: JobPreviews, callers: Callers) -> None:
    """Add the route that begins a job, or counts the schedules that one would match."""

    @routes.post(
        JOBS,
        status_code=HTTPStatus.CREATED,
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 201, 202),
            **with_answer(PreviewJobAnswer, 200),
            **problems(400, 409, 413, 415, 422, 429, 503),
        },
        openapi_extra=body_of(JobBody),
    )
    async def begin(
        request: Request,
        tenant: TenantName,
        asking: JobQueryParameters,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """Begin a job: one action on all schedules of the tenant that the filter matches.

        With `dry` it tells how many these are, and nothing changes: a page looks at 10 000 rows
        (200 for a BACKFILL, of which it counts the occurrences), and `cursor` goes on.  The count
        is not a promise, for schedules come and go.
        """
        # A count needs no right to change schedules, and leaves no note of a change.
        if asking.dry:
            note().changes_nothing = True
            body = await _read(request)
            return await previews.page(request, caller, tenant, body.spec())
        check(caller, Role.SCHEDULE, tenant)
        body = await _read(request)
        if body.action == REKEY and body.key is None:
            # Workers may know of a new key at different moments: the job says which one it means.
            body.key = previews.newest_key(tenant)
        given = {"bulk": body.spec().text(), "reason": body.reason, "request_id": body.request_id}
        fields = request_fields(tenant, body.job or uuid4().hex, BULK, given)
        verdict = await writes.carry_out(fields, wait=asking.waits)
        answer = writing.answer(verdict, request.url.path)
        if answer.status_code == HTTPStatus.CREATED:
            answer.headers["location"] = _place(tenant, verdict.schedule_id)
        return answer


async def _read(request: Request) -> JobBody:
    """The body of a job; raises `Problem`, also if any worker would refuse it."""
    body = await parsed(request, JobBody)
    asked: Any = {**EMPTY, "action": BULK, "bulk": body.spec().text()}
    found = bulk_problem(asked)
    if found is not None:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, found.reason, found.code)
    return body


def _looking(routes: APIRouter, parts: JobParts, callers: Callers) -> None:
    """Add the routes that show jobs."""

    @routes.get(
        JOBS,
        response_model=None,
        responses={**with_answer(JobsAnswer, 200), **problems(422, 429, 503)},
    )
    async def jobs(
        request: Request, tenant: TenantName, caller: Principal = callers.who(Role.READ)
    ) -> Response:
        """The bulk jobs of a tenant, the newest first; those that ended for a week."""
        return await parts.answer(request, caller, tenant, None)

    @routes.get(
        JOB,
        response_model=None,
        responses={**with_answer(JobAnswer, 200), **problems(404, 422, 429, 503)},
    )
    async def job(
        request: Request,
        tenant: TenantName,
        job: ScheduleName,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """One bulk job, and how far it has come."""
        return await parts.answer(request, caller, tenant, job)


def _stopping(routes: APIRouter, writes: Writes, callers: Callers) -> None:
    """Add the route that stops a job."""

    @routes.delete(
        JOB,
        response_model=None,
        responses={
            **with_answer(VerdictAnswer, 200, 202),
            **problems(404, 409, 422, 429, 503),
        },
    )
    async def stop(
        request: Request,
        tenant: TenantName,
        job: ScheduleName,
        asking: AskingWhyQuery,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> Response:
        """Stop a bulk job; its changes so far stay, and UNCHANGED says that it had ended."""
        given = {"reason": asking.reason, "request_id": asking.request_id}
        verdict = await writes.carry_out(
            request_fields(tenant, job, BULK_STOP, given), wait=asking.waits
        )
        return writing.answer(verdict, request.url.path, creates=False)


def _place(tenant: str, job: str) -> str:
    """The path of a job, for the header `location`."""
    return f"/v1/tenants/{quote(tenant, safe='')}/jobs/{quote(job, safe='')}"
