"""Parameters of routes: names in the path, query parameters, conditions, and the body.

`json/` says what each of them may hold; this module tells FastAPI where each of them comes from.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final, TypeVar

from fastapi import Header, Path, Query, Request
from pydantic import BaseModel

from belfry.api.json.conditions import Conditions, Match
from belfry.api.json.parsing import read_json
from belfry.api.json.queries import (
    AskingOfFire,
    AskingWhy,
    ChangeQuery,
    DecodedScheduleId,
    DecodedTenant,
    DueRange,
    ListQuery,
    PageQuery,
    Shown,
    Why,
)
from belfry.api.json.spans import HistorySpan, ScheduleHistorySpan, TimeSpan
from belfry.api.problems import Problem

B = TypeVar("B", bound=BaseModel)

# Addresses of one schedule, whose id may hold slashes, and of all of a tenant.
SCHEDULE: Final = "/tenants/{tenant}/schedules/{schedule_id:path}"
SCHEDULES: Final = "/tenants/{tenant}/schedules"

TenantName = Annotated[DecodedTenant, Path(description="Owner of the schedules.")]
ScheduleName = Annotated[
    DecodedScheduleId, Path(description="Name of the schedule; percent-encode its slashes.")
]
DueRangeQuery = Annotated[DueRange, Query()]
PagesQuery = Annotated[PageQuery, Query()]
FiltersQuery = Annotated[ListQuery, Query()]
LookQuery = Annotated[Shown, Query()]
AskingQuery = Annotated[ChangeQuery, Query()]
AskingOfFireQuery = Annotated[AskingOfFire, Query()]
AskingWhyQuery = Annotated[AskingWhy, Query()]
WhyQuery = Annotated[Why, Query()]
MatchHeaders = Annotated[Match, Header()]
ConditionHeaders = Annotated[Conditions, Header()]
SpanQuery = Annotated[TimeSpan, Query()]
HistoryQuery = Annotated[HistorySpan, Query()]
ScheduleHistoryQuery = Annotated[ScheduleHistorySpan, Query()]


async def parsed(request: Request, kind: type[B]) -> B:
    """The body of a request, read as JSON of this kind; raises `Problem`."""
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != "application/json":
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type {given[:100]!r} is not taken here: send application/json.",
            "not_json",
        )
    return read_json(await request.body(), kind)
