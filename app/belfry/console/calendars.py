"""Calendars of a tenant: their days off, set and forgotten.

    GET    …/calendars          all of them, and whether schedules still follow a change
    PUT    …/calendars/{name}   *Set*: days and weekend replace the present ones
    DELETE …/calendars/{name}   *Forget*: schedules that heed it keep its days

The form of a calendar begins with its present days, so that a day is added without typing the
others again; its name is fixed there, and *Forget* has to be confirmed. Days are dates, apart by
blanks or line breaks; the API refuses any other text.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from belfry.console.asking import Api, tenant_path
from belfry.console.one_schedule import ACTING
from belfry.console.page import Shown, gone_to
from belfry.console.posted import needed, posted

CALENDARS: Final = "/console/calendars"
WEEKDAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")


async def view(api: Api, request: Request) -> Shown:
    """The calendars of a tenant, and a form for one of them or for a new one."""
    tenant = request.query_params.get("tenant", "")
    chosen = request.query_params.get("calendar", "")
    me = await api.get("/v1/me")
    found = (await api.get(f"{tenant_path(tenant)}/calendars"))["calendars"] if tenant else []
    one: dict[str, Any] = next((each for each in found if each["calendar"] == chosen), {})
    return "calendars.html", {
        "me": me,
        "may_act": me["role"] in ACTING,
        "tenant": tenant,
        "calendars": found,
        "name": chosen,
        "is_there": bool(one),
        "days": "\n".join(one.get("days", ())),
        "weekend": one.get("weekend", ()),
        "source": one.get("source", ""),
        "weekdays": WEEKDAYS,
    }


async def act(api: Api, request: Request) -> Response:
    """Set a calendar, or forget it, and show all of them."""
    fields = await posted(request)
    tenant, name = needed(fields, "tenant"), needed(fields, "calendar").strip()
    path = f"{tenant_path(tenant)}/calendars/{quote(name, safe='')}"
    why = {"reason": fields["reason"]} if "reason" in fields else {}
    if fields.get("action") == "forget":
        (await api.ask("DELETE", path, why)).json()
        return gone_to(f"{CALENDARS}?" + urlencode({"tenant": tenant}))
    body = {
        "days": fields.get("days", "").split(),
        "weekend": [day for day in WEEKDAYS if day in fields],
        "source": fields.get("source", "by hand"),
        **why,
    }
    (await api.ask("PUT", path, {}, body)).json()
    return gone_to(f"{CALENDARS}?" + urlencode({"tenant": tenant, "calendar": name}))
