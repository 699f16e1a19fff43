"""One action on all schedules that a filter matches: counted, confirmed, and then a job.

    filters of the schedules' view ─► action ─► count ─► confirm by the number ─► job, and its page

    1  /console/bulk?…filters           the actions, and the tenant's jobs
    2  …&action=PAUSE                   POST …/jobs?dry=true, page by page: 3, and the first ids
    3  the number is typed, *Do it*     POST …/jobs: the job begins
    4  /console/job?tenant=…&job=…      GET …/jobs/{job}, every five seconds, until it has ended

The number is typed, since a button is pressed without reading and a number is not. It is compared
with the count for this very form; the job then takes the schedules that match at its time, for
schedules come and go. A count that would take too long is given up and shown as "or more".

The job is the API's (`docs/bulk.md`): it runs in the workers, so it goes on when the tab is closed.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from belfry.console.asking import Api, ApiRefusal, tenant_path
from belfry.console.one_schedule import ACTING
from belfry.console.page import Shown, gone_to
from belfry.console.posted import needed, posted
from belfry.console.schedules import FILTERS, filters_of, given, query_of
from belfry.schedules.instants import parse_duration

# The states that each action is for, if the filters name none: this one, or both.
STATES: Final = {
    "CANCEL": "",
    "PAUSE": "PENDING",
    "RESUME": "PAUSED",
    "MOVE": "",
    "TRIGGER": "",
    "REKEY": "",
}
COUNT_PAGES: Final = 50


async def view(api: Api, request: Request) -> Shown:
    """The actions on schedules that the filters match, their number, and the tenant's jobs."""
    me = await api.get("/v1/me")
    asked = request.query_params
    tenant, action = asked.get("tenant", "").strip(), asked.get("action", "")
    filters, move = filters_of(asked), asked.get("move", "").strip()
    shown: dict[str, Any] = {
        "me": me,
        "may_act": me["role"] in ACTING,
        "tenant": tenant,
        "filters": given(filters),
        "actions": list(STATES),
        "action": action,
        "move": move,
        "found": None,
        "jobs": [],
        "back": "/console/schedules?" + urlencode(given({"tenant": tenant, **filters})),
    }
    if tenant:
        shown["jobs"] = (await api.get(f"{tenant_path(tenant)}/jobs"))["jobs"]
    if tenant and action:
        shown["found"] = await _count(api, tenant, _body(action, move, filters))
    return "bulk.html", shown


async def begin(api: Api, request: Request) -> Response:
    """Begin the job, if the number that was counted is confirmed."""
    fields = await posted(request)
    tenant, action = needed(fields, "tenant"), needed(fields, "action")
    if needed(fields, "confirmed").strip() != fields.get("found"):
        raise _wrong(
            "not_confirmed",
            f"{fields['confirmed'][:50]!r} is not the number of schedules that were counted:"
            " nothing was done. Type the number that stands beside the action.",
        )
    filters = {name: fields.get(name, "") for name in FILTERS}
    body = _body(action, fields.get("move", ""), filters)
    told = await api.post(f"{tenant_path(tenant)}/jobs", {**body, "reason": fields.get("reason")})
    return gone_to(_address(tenant, told["schedule_id"]))


async def job(api: Api, request: Request) -> Shown:
    """One job, and how far it has come."""
    me = await api.get("/v1/me")
    tenant, name = (request.query_params.get(each, "") for each in ("tenant", "job"))
    found = await api.get(_path(tenant, name))
    return "job.html", {
        "me": me,
        "may_act": me["role"] in ACTING,
        "job": found,
        "again": _address(tenant, name),
    }


async def stop(api: Api, request: Request) -> Response:
    """Stop a job; its changes so far stay."""
    fields = await posted(request)
    tenant, name = needed(fields, "tenant"), needed(fields, "job")
    (await api.ask("DELETE", _path(tenant, name), {"reason": fields.get("reason")})).json()
    return gone_to(_address(tenant, name))


async def _count(api: Api, tenant: str, body: dict[str, Any]) -> dict[str, Any]:
    """How many schedules a job would match, the first of them, and whether all were looked at."""
    number, elsewhere, sample, cursor = 0, 0, list[str](), ""
    for _ in range(COUNT_PAGES):
        query = {"dry": "true", "cursor": cursor}
        page = (await api.ask("POST", f"{tenant_path(tenant)}/jobs", query, body)).json()
        number, cursor = number + page["matched"], page["cursor"]
        elsewhere += page.get("sealed_elsewhere") or 0
        sample = sample or page["sample"]
        if not cursor:
            break
    return {"number": number, "sample": sample, "whole": not cursor, "elsewhere": elsewhere}


def _body(action: str, move: str, filters: dict[str, str]) -> dict[str, Any]:
    """The request for a job; raises `ApiRefusal`."""
    if action not in STATES:
        detail = f"There is no action {action[:50]!r}: choose one of {', '.join(STATES)}."
        raise _wrong("bad_action", detail)
    said = given(query_of(filters))
    if STATES[action]:
        said.setdefault("state", STATES[action])
    return {"action": action, **said, **({"move_ms": _move_ms(move)} if action == "MOVE" else {})}


def _move_ms(text: str) -> int:
    """A duration that may be negative, in milliseconds."""
    try:
        size = parse_duration(text.removeprefix("-"))
    except ValueError as error:
        raise _wrong("bad_move", f"By how much to move: {error}") from None
    return -size if text.startswith("-") else size


def _path(tenant: str, name: str) -> str:
    """Address of a job in the API."""
    return f"{tenant_path(tenant)}/jobs/{quote(name, safe='')}"


def _address(tenant: str, name: str) -> str:
    """Address of a job's page."""
    return "/console/job?" + urlencode({"tenant": tenant, "job": name})


def _wrong(code: str, detail: str) -> ApiRefusal:
    """The refusal of a form that cannot be meant."""
    return ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, code, detail)
