"""Routes that show schedules: one of them, a tenant's list, its counts and its ack locks.

    GET …/schedules/{id}     one schedule, with its payload            `lookup.py`
    GET …/schedules          pages, by id or by due instant            `lists.py`
    GET …/counts             how many are due in each minute           `lists.py`
    GET …/locks              which fires others wait for               `lists.py`

This module tells FastAPI the questions and the answers; the two modules beside find them. No answer
is stale: the holder of the partition has to prove that nobody had taken it over
(`workers/reading.py`).
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.document import problems, with_answer
from belfry.api.json.schedule_answers import (
    CountsAnswer,
    LocksAnswer,
    PageAnswer,
    ScheduleAnswer,
)
from belfry.api.routes.callers import Callers
from belfry.api.routes.lists import Lists, MostRows
from belfry.api.routes.lookup import ScheduleLookup
from belfry.api.routes.parameters import (
    SCHEDULE,
    SCHEDULES,
    DueRangeQuery,
    FiltersQuery,
    LookQuery,
    PagesQuery,
    ScheduleName,
    TenantName,
)
from belfry.store.lookup import Wanted


def add_lists(routes: APIRouter, lists: Lists, callers: Callers) -> None:
    """Add the routes that answer in pages: schedules, counts, ack locks."""

    @routes.get(
        SCHEDULES,
        response_model=None,
        responses={**with_answer(PageAnswer, 200), **problems(422, 429, 503)},
    )
    async def schedules(
        request: Request,
        tenant: TenantName,
        filters: FiltersQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """Schedules of a tenant, by id, or by due instant where a range is given.

        A page ends when it is full or 10 000 of the tenant's rows have been looked at; then
        `cursor` goes on.  Each 10 000 rows come in due order for themselves.  Pages are not a
        snapshot: a schedule that changes between two of them may be missed or shown twice.
        """
        most = MostRows(filters.limit, filters.cursor)
        return await lists.page(request, caller, filters.wanted(tenant), most)

    @routes.get(
        "/tenants/{tenant}/counts",
        response_model=None,
        responses={**with_answer(CountsAnswer, 200), **problems(422, 429, 503)},
    )
    async def counts(
        request: Request,
        tenant: TenantName,
        range_: DueRangeQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """How many schedules of a tenant are due in each minute.

        The counts are kept with every change, so they cost the same however many wait.  A minute
        counts as a whole, also where the range begins or ends within it.  A page has at most 10 000
        minutes of one partition; add the pages up.  Paused schedules wait for no instant and do not
        count; a schedule with another cause of waiting counts in its due minute.
        """
        wanted = Wanted(
            tenant.encode(), due_from_ms=range_.due_from or 0, due_until_ms=range_.due_until
        )
        return await lists.counts(request, caller, wanted, range_.cursor)

    @routes.get(
        "/tenants/{tenant}/locks",
        response_model=None,
        responses={**with_answer(LocksAnswer, 200), **problems(422, 429, 503)},
    )
    async def locks(
        request: Request,
        tenant: TenantName,
        pages: PagesQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """The ack locks of a tenant: fires that are to be acknowledged before others go on."""
        most = MostRows(pages.limit, pages.cursor)
        return await lists.locks(request, caller, tenant, most)


def add_look(routes: APIRouter, lookup: ScheduleLookup, callers: Callers) -> None:
    """Add the route that shows one schedule; it takes every id, so it comes behind all actions."""

    @routes.get(
        SCHEDULE,
        response_model=None,
        responses={**with_answer(ScheduleAnswer, 200), **problems(404, 422, 429, 503)},
    )
    async def schedule(
        request: Request,
        tenant: TenantName,
        schedule_id: ScheduleName,
        shown: LookQuery,
        caller: Principal = callers.who(Role.READ),
    ) -> Response:
        """One schedule; for a day after its end, how it ended."""
        return await lookup.look_up(request, caller, tenant, schedule_id, shown)
