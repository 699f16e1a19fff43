"""Many schedules at once: JSON lines in, a line for each out, in their order.

A line is judged by itself: one that is wrong takes none of the others with it. All lines of a
stretch are written to Kafka before the first verdict is waited for, so a thousand lines take little
longer than one.

    > {"schedule_id": "a", "at": "2030-01-01T00:00:00Z"}   < {"status": 201, "outcome": "ACCEPTED"}
    > {"schedule_id": "b"}                                 < {"status": 422, "code": "bad_body"}
    > {"schedule_id": "a", "at": "2030-01-01T00:00:00Z"}   < {"status": 200, "outcome": "UNCHANGED"}

The answer's own status is 200 for all results of lines, so a caller reads each line's. Each line
counts as one request against the caller's rate. A caller whose connection breaks does not know what
was written. It sends the same lines again, and gets UNCHANGED for the written ones.
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

# Lines of one request; more are answered 413, and none of them is written.
MOST_LINES: Final = 10_000
# Lines whose verdicts are waited for together: a bound on what waits in memory and in the producer.
AT_ONCE: Final = 2_000
# The type of the answer; `LINES` holds those that a body may have.
MEDIA_TYPE: Final = "application/x-ndjson"

# Takes so many further requests from the caller's rate; raises `Problem` (429) if it has too few.
Charge = Callable[[int], None]

log = structlog.get_logger(__name__)


def is_many(request: Request) -> bool:
    """Whether the body is JSON lines."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in LINES


async def create_many(
    request: Request, tenant: str, writes: Writes, charge: Charge, *, wait: bool
) -> Response:
    """Create a schedule for each line of the body; `charge` is told how many there are.

    With `wait` each line tells its verdict, else only where its request lies in Kafka. Raises
    `Problem` for more than `MOST_LINES` lines, and the errors of `charge`; then no line has been
    written. Empty lines are skipped.
    """
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
    """The answer to one line, also for an error; raises only a cancellation."""
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
    """A line of the answer: the status that this line would have had alone, and its body."""
    return orjson.dumps({"status": int(status), **told}) + b"\n"
