"""The usage of a tenant, hour by hour: the figures of the metering topic, summed.

    GET /v1/tenants/shop/usage?since=2026-03-01T00:00:00Z&until=2026-03-01T02:00:00Z
    period 00:00-01:00   accepted 1 200, fired 1 190, delivered 900, held 3.2 byte-hours
    period 01:00-02:00   used nothing, so it is left out

A look reads the topic from the first hour that is asked for on, records of all tenants, so it is
bounded: where more lies there, the answer is 422 `too_much`, and a later `since` is asked for. The
hour that runs is never shown, since workers tell their figures when it is over. Reads run in
threads (`TopicReads`), with the same 503 where Kafka does not answer.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.document import problems
from belfry.api.json.queries import Known
from belfry.api.json.values import Instant
from belfry.api.json.worker_answers import instant
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.routes.parameters import TenantName
from belfry.api.routes.topic_reads import TopicReads
from belfry.api.workers.kept import MOST_USAGE_RECORDS
from belfry.api.workers.parts import ApiDependencies
from belfry.client.errors import BelfryError, MissingTopic
from belfry.client.usage import TooMuchUsage, UsageSpan
from belfry.wire.metering import Usage

# Milliseconds.
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


class UsagePeriod(BaseModel):
    """The usage of one period."""

    from_: str = Field(alias="from", serialization_alias="from")
    # The period goes from `from` to before this instant.
    until: str
    accepted: int = Field(description="Requests that brought something to keep.")
    # Occurrences that fired, delivered or not.
    fired: int
    delivered: int = Field(description="Deliveries to targets that succeeded.")
    held_byte_ms: int = Field(description="Bytes that waited, times milliseconds.")
    held_byte_hours: float = Field(description="The same in byte-hours.")


class UsageAnswer(BaseModel):
    """The usage of a tenant, the earliest period first; periods without usage are left out."""

    tenant: str
    # The range that was looked at, with what was left out of the question filled in.
    since: str
    until: str
    periods: list[UsagePeriod]


class UsageAsked(Known):
    """Which periods are shown."""

    since: Instant | None = Field(
        None, description="Periods that begin then or later. Left out: a day before `until`."
    )
    until: Instant | None = Field(
        None, description="Periods that end by then. Left out: all that are over."
    )


UsageQuery = Annotated[UsageAsked, Query()]


def usage_routes(parts: ApiDependencies, callers: Callers) -> APIRouter:
    """The route of tenants' usage.

    Workers meter only where `BELFRY_METERING_INTERVAL_MS` is set; else it answers 404
    `not_metered`.
    """
    routes = APIRouter(prefix="/v1", tags=["tenants"])
    reads = TopicReads(parts)

    @routes.get("/tenants/{tenant}/usage", responses=problems(404, 422, 429, 503))
    async def usage(
        tenant: TenantName, query: UsageQuery, _caller: Principal = callers.who(Role.READ)
    ) -> UsageAnswer:
        """The usage of a tenant in each hour that is over, if workers meter it."""
        now_ms = int(parts.now_ms())
        until_ms = min(now_ms, now_ms if query.until is None else query.until)
        since_ms = max(0, until_ms - DAY_MS) if query.since is None else query.since
        span = UsageSpan(tenant, since_ms, until_ms)
        try:
            found = await reads.run(partial(parts.kept.usage, span))
        except (MissingTopic, TooMuchUsage) as error:
            raise _problem(error) from None
        return UsageAnswer(
            tenant=tenant,
            since=instant(since_ms),
            until=instant(until_ms),
            periods=[_shown(each) for each in found],
        )

    return routes


def _problem(error: BelfryError) -> Problem:
    """Why there is no answer, and what to do."""
    if isinstance(error, TooMuchUsage):
        detail = (
            f"{error.records} records of all tenants lie in the time from `since` on, and"
            f" {MOST_USAGE_RECORDS} are looked at: give a later `since`, or read more with"
            " `belfry tenant usage`."
        )
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, "too_much")
    detail = (
        "Nothing is metered: set BELFRY_METERING_INTERVAL_MS=3600000 on all workers, and ask again"
        " when an hour is over."
    )
    return Problem(HTTPStatus.NOT_FOUND, detail, "not_metered")


def _shown(usage: Usage) -> UsagePeriod:
    """A period as it is answered."""
    return UsagePeriod(
        **{"from": instant(usage.from_ms)},
        until=instant(usage.until_ms),
        accepted=usage.accepted,
        fired=usage.fired,
        delivered=usage.delivered,
        held_byte_ms=usage.held_byte_ms,
        held_byte_hours=usage.held_byte_hours,
    )
