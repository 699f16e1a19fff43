"""One action on all schedules that a filter finds: counted, confirmed, and then a page at a time.

Nothing here is new to the API: each schedule gets the request that its own page would send, under
the version that the list showed, and so has an outcome of its own.

    the filters of the schedules' view ─► count ─► confirm by the number ─► a page ─► a page ─► …

The browser asks for each page when it has the outcomes of the one before, so closing the tab stops
it.  No more schedules are acted on than were confirmed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from starlette.requests import Request

from belfry.console.asking import Api, ApiRefusal, schedule_path, tenant_path
from belfry.console.one_schedule import ACTING
from belfry.console.page import Shown
from belfry.console.posted import needed, posted
from belfry.console.schedules import FILTERS, filters_of, given, query_of

# What each action is for: schedules in these states.
STATES: Final = {
    "pause": ("PENDING",),
    "resume": ("PAUSED",),
    "cancel": ("PENDING", "PAUSED"),
}
COUNT_LIMIT: Final = 1_000
COUNT_PAGES: Final = 20
PAGE: Final = 100
AT_ONCE: Final = 10
TRIES: Final = 5
_AGAIN: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


async def view(api: Api, request: Request) -> Shown:
    """How many schedules the filters find, and the form that acts on them."""
    me = await api.get("/v1/me")
    tenant = request.query_params.get("tenant", "").strip()
    filters = filters_of(request.query_params)
    found, whole = await _count(api, tenant, filters) if tenant else (Counter[str](), True)
    address = urlencode(given({"tenant": tenant, **filters}))
    return "bulk.html", {
        "me": me,
        "may_act": me["role"] in ACTING,
        "tenant": tenant,
        "filters": given(filters),
        "found": {action: sum(found[state] for state in STATES[action]) for action in STATES},
        "whole": whole,
        "back": f"/console/schedules?{address}",
    }


async def step(api: Api, request: Request) -> Shown:
    """Act on the next page, and tell the outcome of each of its schedules."""
    fields = await posted(request)
    tenant, action = needed(fields, "tenant"), needed(fields, "action")
    if action not in STATES:
        raise _wrong("bad_action", f"There is no action {action[:50]!r} on many schedules.")
    confirmed = _number(needed(fields, "confirmed"))
    if confirmed != _number(fields.get(f"found_{action}", "0")):
        raise _wrong(
            "not_confirmed",
            f"{confirmed} is not the number of schedules that were counted for this action:"
            " nothing was done. Type the number that stands beside the action.",
        )
    done = _tally(fields.get("done", "{}"))
    room = confirmed - sum(done.values())
    query = query_of({name: fields.get(name, "") for name in FILTERS})
    page = await api.get(
        f"{tenant_path(tenant)}/schedules",
        **query,
        limit=max(1, min(PAGE, room)),
        cursor=fields.get("cursor"),
    )
    chosen = [each for each in page["schedules"] if each["state"] in STATES[action]][:room]
    told = await _act_on(api, (tenant, action, fields.get("reason")), chosen)
    done.update(outcome for _, outcome, _ in told)
    left = page["cursor"] if sum(done.values()) < confirmed else None
    carried = {name: fields[name] for name in fields if name not in ("cursor", "done")}
    return "bulk_step.html", {
        "tenant": tenant,
        "told": told,
        "done": dict(done),
        "number": sum(done.values()),
        "confirmed": confirmed,
        "carried": carried | {"cursor": left or "", "done": orjson.dumps(dict(done)).decode()},
        "goes_on": left is not None,
    }


async def _count(api: Api, tenant: str, filters: dict[str, str]) -> tuple[Counter[str], bool]:
    """Schedules by state, and whether all of them could be counted."""
    found, cursor = Counter[str](), ""
    for _ in range(COUNT_PAGES):
        path = f"{tenant_path(tenant)}/schedules"
        page = await api.get(path, **query_of(filters), limit=COUNT_LIMIT, cursor=cursor)
        found.update(each["state"] for each in page["schedules"])
        cursor = page["cursor"]
        if not cursor:
            return found, True
    return found, False


async def _act_on(
    api: Api, what: tuple[str, str, str | None], chosen: list[dict[str, Any]]
) -> list[tuple[str, str, str]]:
    """Id, outcome and its reason for each of these, in their order."""
    few = asyncio.Semaphore(AT_ONCE)

    async def one(each: dict[str, Any]) -> tuple[str, str, str]:
        async with few:
            return each["schedule_id"], *(await _outcome(api, what, each))

    return list(await asyncio.gather(*map(one, chosen)))


async def _outcome(
    api: Api, what: tuple[str, str, str | None], each: dict[str, Any]
) -> tuple[str, str]:
    tenant, action, reason = what
    path = schedule_path(tenant, each["schedule_id"])
    match = {"if-match": f'"{each["generation"]}.{each["version"]}"'}
    method, ending = ("DELETE", "") if action == "cancel" else ("POST", f"/{action}")
    for _ in range(TRIES):
        answer = await api.ask(method, f"{path}{ending}", {"reason": reason}, None, match)
        if answer.status not in _AGAIN:
            break
        # The key asks more often than it may, or a partition is on its way to another worker.
        await asyncio.sleep(1)
    try:
        return str(answer.json()["outcome"]), ""
    except ApiRefusal as refused:
        return refused.code, str(refused)


def _tally(told: str) -> Counter[str]:
    """Outcomes so far, as the page before carried them."""
    try:
        return Counter({str(name): int(number) for name, number in orjson.loads(told).items()})
    except (ValueError, AttributeError, TypeError):
        raise _wrong("bad_form", "The outcomes so far cannot be read: count anew.") from None


def _number(given_text: str) -> int:
    try:
        return max(0, int(given_text))
    except ValueError:
        raise _wrong("bad_number", f"{given_text[:50]!r} is no number of schedules.") from None


def _wrong(code: str, detail: str) -> ApiRefusal:
    return ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, code, detail)
