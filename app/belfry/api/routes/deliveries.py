"""Deliveries to targets: those without an end, those that were given up, and one of them once more.

    GET  /v1/tenants/shop/deliveries                  open: asked for, and no end is seen
    GET  /v1/tenants/shop/dead-letters                given up, the latest first
    POST /v1/tenants/shop/dead-letters/0-9120/replay  the letter at partition 0, offset 9120, again

An open delivery has no end among the records that are looked at, so one that is shown as
`attempted` may have ended long ago. A dead letter is named by its place in its topic, so a replay
delivers exactly the shown event. It begins with the first attempt and keeps the fire id, by which
the target knows an event that it has had before.

A tenant sees its own deliveries alone.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.cursors import question
from belfry.api.json.document import problems
from belfry.api.json.worker_answers import instant
from belfry.api.notes import note
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import TenantName, WhyQuery
from belfry.api.routes.topic_reads import (
    CURSOR_DOC,
    EXAMINED_DOC,
    PLACE,
    KeptQuery,
    TopicReads,
    older,
)
from belfry.api.workers.kept import KeptDelivery


class DeliveryAnswer(BaseModel):
    """A delivery that was given up, or has no end."""

    id: str | None = Field(description="Its place, to replay it; null where it was not given up.")
    tenant: str
    schedule_id: str
    fire_id: str
    at: str = Field(description="When it was given up, or when its latest attempt was asked for.")
    fired_at: str
    state: str = Field(
        description="`given_up`; `waiting` for a dispatcher; `retrying`; `attempted` where its end"
        " may lie too far back to be seen."
    )
    code: str
    reason: str
    attempt: int
    attempts: int = Field(description="How many there are at most.")
    targets: list[str] = Field(description="Addresses, without their queries.")


class DeadLettersAnswer(BaseModel):
    """Deliveries that were given up, the latest first."""

    deliveries: list[DeliveryAnswer]
    examined: int = Field(description=EXAMINED_DOC)
    cursor: str | None = Field(description=CURSOR_DOC)


class OpenDeliveriesAnswer(BaseModel):
    """Deliveries without an end, at most 200.

    They are among the latest 2 000 records of each partition, and 16 000 of all.
    """

    deliveries: list[DeliveryAnswer]
    examined: int = Field(description=EXAMINED_DOC)


class ReplayAnswer(BaseModel):
    """A delivery is on its way again."""

    # Always 1: without a dead letter the answer is 404.
    replayed: int


LetterId = Annotated[str, Path(pattern=PLACE, description="`id` of a delivery.")]


def delivery_routes(reads: TopicReads, callers: Callers) -> APIRouter:
    """Routes of deliveries, and the one that replays a delivery."""
    routes = APIRouter(prefix="/v1", tags=["kept"])

    @routes.get("/tenants/{tenant}/deliveries", responses=problems(422, 429, 503))
    async def deliveries(
        tenant: TenantName, _caller: Principal = callers.who(Role.READ)
    ) -> OpenDeliveriesAnswer:
        """Deliveries of one tenant that have no end, the latest first."""
        page = await reads.run(partial(reads.parts.kept.open_deliveries, tenant))
        found = [_shown_delivery(each) for each in page.found]
        return OpenDeliveriesAnswer(deliveries=found, examined=page.examined)

    @routes.get("/tenants/{tenant}/dead-letters", responses=problems(422, 429, 503))
    async def dead_letters(
        tenant: TenantName, query: KeptQuery, _caller: Principal = callers.who(Role.READ)
    ) -> DeadLettersAnswer:
        """Deliveries of one tenant that were given up, the latest first."""
        asked = question("dead-letters", tenant)
        before = query.before(asked)
        page = await reads.run(partial(reads.parts.kept.dead_letters, tenant, before))
        return DeadLettersAnswer(
            deliveries=[_shown_delivery(each) for each in page.found],
            examined=page.examined,
            cursor=older(page.rest, asked),
        )

    @routes.post(
        "/tenants/{tenant}/dead-letters/{letter}/replay", responses=problems(404, 422, 429, 503)
    )
    async def replay(
        tenant: TenantName,
        letter: LetterId,
        query: WhyQuery,
        _caller: Principal = callers.who(Role.SCHEDULE),
    ) -> ReplayAnswer:
        """Deliver a given-up event again, from the first attempt on and under the same fire id."""
        note().because(query.reason)
        # The pattern of the path has seen to it that both are numbers.
        partition, _, offset = letter.partition("-")
        place = int(partition), int(offset)
        if not await reads.run(partial(reads.parts.kept.replay, tenant, place)):
            detail = f"Tenant {tenant} has no delivery {letter} that was given up: list them anew."
            raise Problem(HTTPStatus.NOT_FOUND, detail, "not_found")
        return ReplayAnswer(replayed=1)

    return routes


def _shown_delivery(each: KeptDelivery) -> DeliveryAnswer:
    """A delivery as it is answered; its `id` is its place, which a replay names."""
    told = asdict(each)
    at_ms, fired_ms, place = told.pop("at_ms"), told.pop("fired_ms"), told.pop("place")
    shown = None if place is None else f"{place[0]}-{place[1]}"
    return DeliveryAnswer(id=shown, at=instant(at_ms), fired_at=instant(fired_ms), **told)
