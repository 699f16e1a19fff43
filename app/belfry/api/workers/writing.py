"""Writes: a request through Kafka, its verdict, and the HTTP status of the verdict.

| verdict | status |
|---|---|
| ACCEPTED | 201 |
| UPDATED, UNCHANGED, PAUSED, RESUMED, TRIGGERED, CANCELLED | 200 |
| none was waited for | 202 |
| NOT_FOUND | 404 |
| CONFLICT, TOO_LATE | 409; 412 where `If-Match` or `If-None-Match` said what to expect |
| CONFLICT with code `request_id_reused` | 409 |
| REJECTED | 422; 413 for what is too large, 429 for quotas, 503 where the tenant is held |
| DUPLICATE | that of the first outcome; 200 for 201 where the request itself creates nothing |
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import orjson
from starlette.responses import Response

from belfry.api.json import shapes
from belfry.api.notes import note
from belfry.api.problem_answers import problem_response
from belfry.api.problems import Problem
from belfry.api.workers.acknowledgements import NotWritten, TooLarge, VerdictTimeout
from belfry.api.workers.parts import RETRY_SOON, ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.client.verdict import Verdict
from belfry.schedules.fields import EMPTY
from belfry.schedules.outcomes import ID_REUSED, Outcome, first_code

# Seconds that a caller waits for a verdict, or for Kafka to have the request.
VERDICT_S: Final = 10.0
# The same definition once more: what POST answers as UNCHANGED is a CONFLICT of CREATE.
SAME: Final = "same_definition"

_STATUS: Final[Mapping[Outcome, HTTPStatus]] = {
    Outcome.ACCEPTED: HTTPStatus.CREATED,
    Outcome.UPDATED: HTTPStatus.OK,
    Outcome.UNCHANGED: HTTPStatus.OK,
    Outcome.PAUSED: HTTPStatus.OK,
    Outcome.RESUMED: HTTPStatus.OK,
    Outcome.TRIGGERED: HTTPStatus.OK,
    Outcome.CANCELLED: HTTPStatus.OK,
    Outcome.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Outcome.CONFLICT: HTTPStatus.CONFLICT,
    Outcome.TOO_LATE: HTTPStatus.CONFLICT,
    Outcome.REJECTED: HTTPStatus.UNPROCESSABLE_ENTITY,
}
_REJECTED: Final[Mapping[str, HTTPStatus]] = {
    "check_failed": HTTPStatus.INTERNAL_SERVER_ERROR,
    "payload_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "request_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "payload_away": HTTPStatus.SERVICE_UNAVAILABLE,
    "payload_key_missing": HTTPStatus.SERVICE_UNAVAILABLE,
    "payload_not_stored": HTTPStatus.SERVICE_UNAVAILABLE,
    "tenant_held": HTTPStatus.SERVICE_UNAVAILABLE,
    "too_many_calendars": HTTPStatus.TOO_MANY_REQUESTS,
    "too_many_jobs": HTTPStatus.TOO_MANY_REQUESTS,
    "too_many_pending": HTTPStatus.TOO_MANY_REQUESTS,
    "too_many_requests": HTTPStatus.TOO_MANY_REQUESTS,
    "unreadable_schedule": HTTPStatus.SERVICE_UNAVAILABLE,
}


class Writes:
    """Carries requests out; belongs to one event loop.

    Later reads through this worker show its writes: it tells `reads` the offset.
    """

    def __init__(self, parts: ApiDependencies, reads: Reads) -> None:
        self._parts = parts
        self._reads = reads

    async def carry_out(self, fields: dict[str, Any], *, wait: bool) -> Verdict:
        """The verdict on a request (`request_id` is set); raises `Problem` if there is none.

        A request that a worker is sure to refuse is written as well: so a request with an id always
        has one record.
        """
        noted = note()
        noted.asked(fields["schedule_id"], fields["request_id"])
        noted.because(fields["reason"])
        verdict = await self._carried_out(fields, wait=wait)
        noted.became(verdict.schedule_id, verdict.outcome, verdict.code)
        return verdict

    async def _carried_out(self, fields: dict[str, Any], *, wait: bool) -> Verdict:
        parts = self._parts.ready
        home = parts.holdings.home_of(fields["tenant"], fields["schedule_id"])
        try:
            if not wait:
                return await parts.request_client.tell(fields, home, VERDICT_S)
            verdict = await parts.request_client.ask(fields, home, VERDICT_S)
        except TooLarge as error:
            return _refused(fields, "request_too_large", f"Kafka does not take it: {error}.")
        except (ValueError, OverflowError) as error:
            return _refused(fields, "bad_fields", f"A field cannot be written as Avro: {error}.")
        except (NotWritten, VerdictTimeout, asyncio.CancelledError) as error:
            raise _unsettled(fields, error) from None
        self._reads.wrote(verdict.source_partition, verdict.source_offset)
        return verdict


def request_fields(
    tenant: str, schedule_id: str, action: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """A whole `ScheduleRequest` that has an id.

    `given` are some of its fields; the others are empty. A request without `request_id` gets a
    random one, so that a repeat by this worker or by Kafka's client is recognised.
    """
    fields = {**EMPTY, **given, "tenant": tenant, "schedule_id": schedule_id, "action": action}
    fields["request_id"] = fields["request_id"] or uuid4().hex
    return fields


def created(verdict: Verdict) -> Verdict:
    """The verdict on a CREATE as POST means it: the same definition again is no conflict."""
    if verdict.outcome is Outcome.CONFLICT and verdict.code == SAME:
        return replace(verdict, outcome=Outcome.UNCHANGED, code=None, reason=None)
    if verdict.outcome is Outcome.DUPLICATE and first_code(verdict.reason) == SAME:
        return replace(verdict, code=str(Outcome.UNCHANGED), reason=None)
    return verdict


def status_of(verdict: Verdict, *, conditional: bool = False) -> HTTPStatus:
    """The HTTP status of a verdict; `conditional` if a header had a condition."""
    outcome, code = verdict.outcome, verdict.code
    if outcome is None:
        return HTTPStatus.ACCEPTED
    if outcome is Outcome.DUPLICATE:
        outcome, code = Outcome(code or ""), first_code(verdict.reason)
    if outcome is Outcome.CONFLICT and conditional and code != ID_REUSED:
        return HTTPStatus.PRECONDITION_FAILED
    if outcome is Outcome.REJECTED:
        return _REJECTED.get(code or "", _STATUS[outcome])
    return _STATUS.get(outcome, HTTPStatus.OK)


def answer(
    verdict: Verdict, path: str, *, conditional: bool = False, creates: bool = True
) -> Response:
    """A verdict as a response: itself, or a problem that holds it.

    A request that `creates` nothing may still repeat the request id of one that did.
    """
    status = status_of(verdict, conditional=conditional)
    if status == HTTPStatus.CREATED and not creates:
        status = HTTPStatus.OK
    told = shapes.verdict(verdict)
    if status >= HTTPStatus.BAD_REQUEST:
        return _no(status, verdict, told, path)
    headers = {}
    if verdict.etag is not None:
        headers["etag"] = f'"{verdict.etag}"'
    if status == HTTPStatus.CREATED:
        headers["location"] = place(verdict.tenant, verdict.schedule_id)
    return Response(orjson.dumps(told), status, headers, "application/json")


def _no(status: HTTPStatus, verdict: Verdict, told: dict[str, Any], path: str) -> Response:
    """A verdict that is no success, as a problem: its outcome and ids stand beside `code`."""
    outcome = str(verdict.outcome)
    detail = verdict.reason or f"The outcome is {outcome}."
    code = verdict.code or outcome.lower()
    headers = RETRY_SOON if status in _AGAIN else None
    told = {name: value for name, value in told.items() if name not in ("code", "reason")}
    return problem_response(Problem(status, detail, code, headers, **told), path)


_AGAIN: Final = frozenset({HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS})


def place(tenant: str, schedule_id: str) -> str:
    """The path of a schedule."""
    return f"/v1/tenants/{quote(tenant, safe='')}/schedules/{quote(schedule_id, safe='')}"


def _refused(fields: Mapping[str, Any], code: str, reason: str) -> Verdict:
    """A verdict on what could not be written at all; it has no place in Kafka."""
    return Verdict(
        fields["tenant"],
        fields["schedule_id"],
        Outcome.REJECTED,
        fields["request_id"],
        code=code,
        reason=reason,
    )


def _unsettled(fields: Mapping[str, Any], error: BaseException) -> Problem:
    """The problem (503) for a request of which the outcome is not known; asking again is safe."""
    request_id = fields["request_id"]
    if isinstance(error, VerdictTimeout):
        detail = (
            f"No verdict within {VERDICT_S:g} s. The request lies in Kafka and is carried out as"
            f" soon as a worker takes it in; asking again with request_id {request_id!r} is safe."
        )
        code = "no_verdict"
    elif isinstance(error, asyncio.CancelledError):
        detail = (
            "This worker stops before it has heard of a verdict. The request may lie in Kafka or"
            f" not; asking again with request_id {request_id!r} is safe."
        )
        code = "no_verdict"
    else:
        detail = (
            f"Kafka has not confirmed the request ({error}). It may have been written or not; ask"
            f" again with request_id {request_id!r}, which is carried out once at most."
        )
        code = "not_written"
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, code, RETRY_SOON, request_id=request_id)
