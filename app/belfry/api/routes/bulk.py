"""Many schedules at once: JSON lines in, a line for each out, in their order.

A line is judged by itself: one that is wrong takes none of the others with it.  At most
`MOST_LINES` are taken; all are written to Kafka before the first verdict is waited for, so a
thousand lines take little longer than one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import orjson
import structlog
from starlette.requests import Request
from starlette.responses import Response

from belfry.api.json import shapes
from belfry.api.json.bodies import ScheduleBody
from belfry.api.json.credentials import warning_of
from belfry.api.json.parsing import read_json
from belfry.api.notes import note
from belfry.api.problems import Problem
from belfry.api.server.incoming import LINES
from belfry.api.workers import writing
from belfry.api.workers.writing import Writes, request_fields

MOST_LINES: Final = 10_000
AT_ONCE: Final = 2_000
MEDIA_TYPE: Final = "application/x-ndjson"

Charge = Callable[[int], None]

log = structlog.get_logger(__name__)


def is_many(request: Request) -> bool:
    """Whether the body is JSON lines."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in LINES


async def create_many(
    request: Request, tenant: str, writes: Writes, charge: Charge, *, wait: bool
) -> Response:
    """Create a schedule for each line of the body; `charge` is told how many there are."""
    lines = [line for line in (await request.body()).split(b"\n") if line.strip()]
    if len(lines) > MOST_LINES:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"{len(lines)} lines are more than one request takes: send at most {MOST_LINES}.",
            "too_many_lines",
        )
    note().many = True
    # The request itself has been counted as one.
    charge(max(0, len(lines) - 1))
    answers: list[bytes] = []
    for start in range(0, len(lines), AT_ONCE):
        some = lines[start : start + AT_ONCE]
        answers += await asyncio.gather(*(_create(line, tenant, writes, wait) for line in some))
    return Response(b"".join(answers), HTTPStatus.OK, media_type=MEDIA_TYPE)


async def _create(line: bytes, tenant: str, writes: Writes, wait: bool) -> bytes:
    schedule_id = None
    try:
        body = read_json(line, ScheduleBody)
        schedule_id = body.schedule_id
        fields = request_fields(tenant, schedule_id, "CREATE", body.fields())
        verdict = writing.created(await writes.carry_out(fields, wait=wait))
    except Problem as problem:
        note().became(schedule_id or "", None, problem.more["code"])
        told: dict[str, Any] = {"schedule_id": schedule_id, "outcome": None, **problem.more}
        return _line(problem.status, {**told, "detail": problem.detail})
    except Exception as error:  # a fault in one line; the others may be written
        log.exception("A line of a request failed.", exc_info=error)
        note().became(schedule_id or "", None, "internal_error")
        told = {"schedule_id": schedule_id, "outcome": None, "code": "internal_error"}
        told["detail"] = "The worker failed to answer; its log holds the reason."
        return _line(HTTPStatus.INTERNAL_SERVER_ERROR, told)
    told = shapes.verdict(verdict)
    warning = warning_of(fields)
    return _line(writing.status_of(verdict), {**told, "warning": warning} if warning else told)


def _line(status: int, told: dict[str, Any]) -> bytes:
    return orjson.dumps({"status": int(status), **told}) + b"\n"
