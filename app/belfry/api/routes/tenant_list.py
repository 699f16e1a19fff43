"""`GET /v1/tenants`: every tenant that has anything, with its figures, from all workers.

Each worker tells of its own partitions. The one that is asked adds these up, and adds tenants that
have only a policy. A tenant whose partitions lie on two workers is one tenant of the answer.

    GET /v1/tenants?limit=2 at W1
    W1 owns something of    a 10, c 5
    W2 answers (alone)      a 3, b 1, and has more: its page ends at b
    policies                a, d
    together, by name       a 13, b 1 │ c 5, d 0      the page; its cursor is "b"

Each answers with the first page of its own behind the cursor, so the first page of all is complete:
whatever a worker left out lies behind `limit` names already. An order other than by name has no
pages, since figures change from look to look. A worker that does not answer in time is named in
`silent`, and its tenants are missing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from belfry.api.auth.principal import Principal, Role
from belfry.api.json.document import problems
from belfry.api.json.queries import OfAllAsked
from belfry.api.json.tenant_answers import TenantAnswer, urgency
from belfry.api.json.worker_answers import RememberedAnswer
from belfry.api.problems import Problem
from belfry.api.routes.callers import Callers
from belfry.api.workers.everyone import Others, ask_others, no_others
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.view import WorkerView
from belfry.engine.tenant_figures import TenantFigures

# Tenants that have been found, by name.
Found = dict[str, TenantAnswer]
# The figures of a tenant that has a policy, without any other fact known here.
_NOTHING: Final = TenantFigures()


class TenantsAnswer(BaseModel):
    """Some tenants, by name unless they were asked for in another order."""

    tenants: list[str]
    figures: list[TenantAnswer] = Field(
        default_factory=list, description="The same tenants in the same order, with their figures."
    )
    cursor: str | None = Field(description="Give it back for the next page; null at the end.")
    silent: list[str] = Field(
        default_factory=list,
        description="Workers that did not answer in time: their tenants are missing, unless the"
        " worker is among `remembered`.",
    )
    remembered: list[RememberedAnswer] = Field(
        default_factory=list,
        description="Those of them that are shown as they answered before, where `at_once` asks"
        " for it.",
    )


class TenantsAsked(OfAllAsked):
    """Which tenants are listed, and in which order."""

    limit: int = Field(100, ge=1, le=1000)
    cursor: str | None = Field(None, max_length=100, description="Of the page before.")
    policy: bool = Field(False, description="Only tenants that have a policy.")
    waiting: bool = Field(False, description="Only tenants whose events wait.")
    sort: Literal["name", "waiting", "pending", "fired", "rejected", "lateness"] = Field(
        "name", description="All but `name` show the first `limit` alone, without a cursor."
    )


TenantsQuery = Annotated[TenantsAsked, Query()]
# Keys of a sort; equals go by name, so that an answer has one order.
_ORDERS: Final[dict[str, Callable[[TenantAnswer], Any]]] = {
    "name": lambda each: each.tenant,
    "waiting": lambda each: (each.wait is None, each.wait and urgency(each.wait), each.tenant),
    "pending": lambda each: (-each.pending, each.tenant),
    "fired": lambda each: (-each.fired, each.tenant),
    "rejected": lambda each: (-each.rejected, each.tenant),
    "lateness": lambda each: (-each.late_seconds, each.tenant),
}


def tenant_list_routes(view: WorkerView, parts: ApiDependencies, callers: Callers) -> APIRouter:
    """The route that lists tenants."""
    routes = APIRouter(prefix="/v1", tags=["tenants"])

    @routes.get("/tenants", responses=problems(422, 429, 503))
    async def tenants(
        query: TenantsQuery, caller: Principal = callers.who(Role.READ)
    ) -> TenantsAnswer:
        """Tenants that have a policy, schedules, or were counted, and that the caller is bound to.

        Counts are since the owners of their partitions began, and a second old.
        """
        if query.cursor is not None and query.sort != "name":
            detail = f"A list by {query.sort} has no pages: leave the cursor out, or sort by name."
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, "bad_cursor")
        names = parts.ready.policies.names()
        found = _own(view, caller, names)
        # Another worker asks. It follows the policies itself, as each worker does.
        if query.alone:
            return _page(_wanted(found.values(), query), query, no_others())
        _add(found, _policies(names, query, caller))
        asked = caller, _target(query), TenantsAnswer
        others = await ask_others(view, parts, *asked, at_once=query.at_once)
        for other in others.told.values():
            _add(found, other.figures)
        return _page(_wanted(found.values(), query), query, others)

    return routes


def _own(view: WorkerView, caller: Principal, policies: Sequence[str]) -> Found:
    """Tenants of which this worker owns something, as far as the caller is bound to them."""
    return {
        name: TenantAnswer.of(name, each, has_policy=_is_among(policies, name))
        for name, each in view.tenants().items()
        if name and caller.reaches(name)
    }


def _is_among(names: Sequence[str], name: str) -> bool:
    """Whether a name is one of these, which are in order."""
    place = bisect_left(names, name)
    return place < len(names) and names[place] == name


def _policies(
    names: Sequence[str], query: TenantsAsked, caller: Principal
) -> Iterator[TenantAnswer]:
    """Tenants that have a policy: those of a page, or all where figures say which come first."""
    start = 0 if query.cursor is None else bisect_right(names, query.cursor)
    reached = (name for name in names[start:] if caller.reaches(name))
    for name in islice(reached, query.limit + 1 if query.sort == "name" else None):
        yield TenantAnswer.of(name, _NOTHING, has_policy=True)


def _add(found: Found, more: Iterable[TenantAnswer]) -> None:
    """Add figures of other workers to those found here."""
    for each in more:
        known = found.get(each.tenant)
        found[each.tenant] = each if known is None else known.with_those_of(each)


def _target(query: TenantsAsked) -> Target:
    """The same question, about the asked worker's own partitions."""
    given = {"limit": query.limit, "sort": query.sort, "cursor": query.cursor, "alone": "true"}
    given["waiting"] = "true" if query.waiting else None
    given["policy"] = "true" if query.policy else None
    asked = {name: value for name, value in given.items() if value is not None}
    return Target("GET", "/v1/tenants", urlencode(asked))


def _wanted(found: Iterable[TenantAnswer], query: TenantsAsked) -> list[TenantAnswer]:
    """Tenants that the question is about, in its order."""
    some = [
        each
        for each in found
        if (each.has_policy or not query.policy)
        and (each.wait is not None or not query.waiting)
        and (query.cursor is None or each.tenant > query.cursor)
    ]
    return sorted(some, key=_ORDERS[query.sort])


def _page(
    found: list[TenantAnswer], query: TenantsAsked, others: Others[TenantsAnswer]
) -> TenantsAnswer:
    """One page, with a cursor where more follow and the order has pages."""
    shown = list(islice(found, query.limit))
    more = len(found) > query.limit or any(each.cursor for each in others.told.values())
    return TenantsAnswer(
        tenants=[each.tenant for each in shown],
        figures=shown,
        cursor=shown[-1].tenant if more and shown and query.sort == "name" else None,
        silent=others.silent,
        remembered=others.remembered,
    )
