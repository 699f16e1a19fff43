"""`/v1/preview`: the instants of a rule, before a schedule is made.

A preview computes and reads at most a calendar's days. But a rule of RFC 5545 may take long to find
its next instants, and anybody may send one. So previews have few threads of their own, each has
little time, and one whose caller has gone ends early:

    12:00:00.0  POST /v1/preview: a thread computes          the port's loop looks each 100 ms
    12:00:00.3  the caller hangs up                          seen at the next look: the thread ends
    12:00:02.0  otherwise after two seconds                  the instants found by then are answered

A preview writes nothing and looks at no schedule. So it is the same at every worker, unless it
heeds a calendar: only a holder of one of the tenant's partitions has the days, and if none can be
reached the answer is 503, as for any read. While all threads are busy, it is 503 `busy`.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from threading import Event
from time import monotonic
from typing import Any, Final, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role, check
from belfry.api.json.document import body_of, problems, with_answer
from belfry.api.json.previews import PreviewAnswer, PreviewBody, shown
from belfry.api.json.triggers import TRIGGER_FIELDS
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import parsed
from belfry.api.server.threads import Threads
from belfry.api.workers.gathering import json_answer
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.schedules.fields import EMPTY
from belfry.schedules.preview import Preview, preview
from belfry.schedules.rejections import Rejection
from belfry.store.calendar_lookup import days_in

# Threads, seconds of one preview, and how often is looked whether its caller still waits.
MOST: Final = 2
LONGEST_S: Final = 2.0
LOOK_S: Final = 0.1


def preview_routes(parts: ApiDependencies, reads: Reads, callers: Callers) -> APIRouter:
    """The route of previews; it needs no broker, but for a calendar.

    With a calendar the question goes to a worker that holds a partition of the tenant, as reads do.
    """
    routes = APIRouter(prefix="/v1", tags=["preview"])
    threads = Threads("previews", MOST)

    @routes.post(
        "/preview",
        response_model=None,
        responses={
            **with_answer(PreviewAnswer, 200),
            **problems(400, 413, 415, 422, 429, 503),
        },
        openapi_extra=body_of(PreviewBody),
    )
    async def show(request: Request, caller: Principal = callers.who(Role.READ)) -> Response:
        """The next instants of a rule as if it were accepted now, in words, with warnings."""
        body = await parsed(request, PreviewBody)
        fields: Any = {
            **EMPTY,
            **{name: getattr(body, name) for name in TRIGGER_FIELDS},
            "tenant": body.tenant or "",
            "schedule_id": body.schedule_id or "",
            "kind": body.kind_given(),
        }

        async def told(days: bytes | None) -> Response:
            """The answer, once the days off are known; None for a rule without a calendar."""
            asked = AskedPreview(fields, int(parts.now_ms()), body, days)
            found = await _found(request, threads, asked)
            if isinstance(found, Rejection):
                raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, found.reason, found.code)
            return json_answer(shown(found))

        async def look(partition: int) -> Response:
            """The answer of the worker that holds the tenant's calendar."""
            name = (body.tenant or "").encode()
            return await told(
                reads.read(partition, lambda rows: days_in(rows, name, body.calendar or ""))
            )

        if body.calendar is None or body.tenant is None:
            return await told(None)
        check(caller, Role.READ, body.tenant)
        home, *_ = parts.ready.holdings.homes_of(body.tenant)
        return await reads.answer(request, caller, home, look, body.tenant)

    return routes


class AskedPreview(NamedTuple):
    """A preview that is asked for: of which request, from when on, by which days off.

    `fields` are those of a request, `now_ms` is epoch ms, `days` are those of the calendar as its
    row has them; None for a rule without a calendar, or for one that the partition does not know.
    """

    fields: Any
    now_ms: int
    body: PreviewBody
    days: bytes | None


async def _found(request: Request, threads: Threads, asked: AskedPreview) -> Preview | Rejection:
    """A preview of a rule at an instant; it ends early after its time, or if its caller leaves."""
    fields, now_ms, body, days = asked
    gone, deadline_s = Event(), monotonic() + LONGEST_S

    def goes_on() -> bool:
        return not gone.is_set() and monotonic() < deadline_s

    def work() -> Preview | Rejection:
        return preview(fields, now_ms, body.count, body.shown_in, days, goes_on=goes_on)

    working = asyncio.ensure_future(threads.run(work))
    try:
        while not (await asyncio.wait({working}, timeout=LOOK_S))[0]:
            if await request.is_disconnected():
                gone.set()
        return working.result()
    finally:
        # The caller may have been told meanwhile that there is no answer in time.
        gone.set()
