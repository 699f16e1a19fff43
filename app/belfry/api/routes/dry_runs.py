"""Dry runs: a marked copy of the event that a schedule would fire; the schedule does not change.

The copy is made by the holder of the partition, from the row that would fire, by the same code that
fires it. It is written by an ordinary producer: no transaction, no marker, no occurrence.

    POST …/schedules/order-7/dry-run at W1
    its home, held by W2     W2 reads the row, makes the record, writes it with belfry-dry-run: true
    answer, through W1       topic, partition and offset of the copy, and its fire id
    the schedule             as before: it fires at its due instant, under an id of its own

A consumer of the output topic sees the copy, so it has to look at the header. Writing may wait for
a topic without a leader, so it runs in a thread of few, behind which the event loop goes on.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal
from belfry.api.problem_answers import problem_response
from belfry.api.problems import Problem
from belfry.api.server.threads import Threads
from belfry.api.workers.acknowledgements import NotWritten
from belfry.api.workers.holdings import NotHeld
from belfry.api.workers.parts import RETRY_SOON, ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.engine.effects import Effects, Fired
from belfry.engine.emit import fire_extra
from belfry.engine.step import Step
from belfry.store.layout.keys import schedule_key
from belfry.store.lookup import ScheduleStatus, standing_of

# The header that tells a copy from an event.
MARK: Final = ("belfry-dry-run", b"true")
# A copy for a topic that has no leader waits for many seconds: in a thread of few.
MOST: Final = 8


class Copied(Response):
    """The event that this worker would fire, still to be written.

    It passes as a response through `Reads.answer`, so that the holder is found as for any read, and
    the lease has been proved before anything is written.
    """

    def __init__(self, copy: Fired) -> None:
        super().__init__()
        self.copy = copy


class DryRuns:
    """Fires copies; belongs to one event loop."""

    def __init__(self, parts: ApiDependencies, reads: Reads) -> None:
        self._parts = parts
        self._reads = reads
        self._threads = Threads("dry runs", MOST)

    async def fire(
        self, request: Request, caller: Principal, tenant: str, schedule_id: str
    ) -> Response:
        """Write a copy of the event that a schedule would fire now.

        The answer tells where the copy lies. It is 404 for no such schedule; raises `Problem`: 409
        for one that is over, 503 where Kafka does not confirm the copy or all threads are busy.
        """
        name = schedule_key(tenant, schedule_id)
        now_ms = int(self._parts.now_ms())

        async def look(partition: int) -> Response:
            """The copy of a schedule's event in a partition that is held here, or the problem."""
            found = self._reads.read(partition, lambda rows: standing_of(rows, name, now_ms))
            if found is None:
                detail = f"Tenant {tenant} has no such schedule."
                problem = Problem(HTTPStatus.NOT_FOUND, detail, "not_found")
                return problem_response(problem, request.url.path)
            return Copied(self._copy(found, tenant, partition, now_ms))

        for home in self._reads.homes(request, tenant, schedule_id):
            answer = await self._reads.answer(request, caller, home, look, tenant)
            if answer.status_code != HTTPStatus.NOT_FOUND:
                break
        return await self._written(answer.copy) if isinstance(answer, Copied) else answer

    def _copy(self, found: ScheduleStatus, tenant: str, partition: int, now_ms: int) -> Fired:
        """The record that this schedule would fire; raises `Problem` for one that is over.

        It is made by the code that fires on request (`fire_extra`), in a step of its own that is
        thrown away.
        """
        if found.pending is None:
            detail = f"The schedule is over ({found.state}): there is nothing to fire."
            raise Problem(HTTPStatus.CONFLICT, detail, "over")
        known = self._parts.ready.holdings.tenant(tenant)
        if known is None:
            raise NotHeld(partition)
        effects = Effects()
        fire_extra(found.pending, known, now_ms, Step.alone(now_ms, effects))
        return effects.fired[0]

    async def _written(self, copy: Fired) -> Response:
        """Write the copy, and say where it lies."""
        try:
            message = await self._threads.run(
                partial(self._parts.ready.request_client.copy, copy, MARK)
            )
        except NotWritten as error:
            detail = f"The copy was not written: {error}. Try again."
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE, detail, "not_written", RETRY_SOON
            ) from None
        headers = dict(copy[4])
        told = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "fire_id": (headers.get("belfry-fire-id") or b"").decode(),
        }
        return Response(orjson.dumps(told), HTTPStatus.OK, None, "application/json")
