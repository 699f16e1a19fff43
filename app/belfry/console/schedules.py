"""Schedules of a tenant: searched, filtered, paged; the filters stand in the address.

A search is a link, so it can be kept, sent to somebody else and opened again, and the page's own
refresh asks for the same. One page is one page of `GET /v1/tenants/{tenant}/schedules`, with its
cursor in the link to the next one; a page may be short while more follow.

    /console/schedules?tenant=shop&prefix=order/&state=PAUSED
      ─► GET /v1/tenants/shop/schedules?prefix=order/&state=PAUSED&limit=50
      ─► *Next page*: the same address with a cursor
      ─► *Cancel, pause, …*: /console/bulk with the same filters (`bulk.py`)

There is no list over all tenants: a schedule belongs to one, and so does the right to see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request

from belfry.console.asking import Api, tenant_path
from belfry.console.one_schedule import ACTING
from belfry.console.page import Shown
from belfry.console.words import filled

FILTERS: Final = ("prefix", "state", "event_type", "group", "due_from", "due_until")
STATES: Final = ("PENDING", "PAUSED", "FIRED", "CANCELLED", "COMPLETED", "MISSED")
PAGE: Final = 50


async def view(api: Api, request: Request) -> Shown:
    """A page of a tenant's schedules."""
    asked = request.query_params
    tenant = asked.get("tenant", "").strip()
    filters = filters_of(asked)
    me = await api.get("/v1/me")
    shown: dict[str, Any] = {
        "me": me,
        "tenant": tenant,
        "filters": filters,
        "states": STATES,
        "schedules": [],
        "following": None,
        "bulk": "/console/bulk?" + urlencode(given({"tenant": tenant, **filters})),
        "may_act": me["role"] in ACTING,
        "examined": 0,
        "here": f"/console/schedules?{request.url.query}",
        "filtered": any(filters.values()),
    }
    if tenant:
        query = query_of(filters)
        cursor = asked.get("cursor", "")
        path = f"{tenant_path(tenant)}/schedules"
        found = await api.get(path, **query, limit=PAGE, cursor=cursor)
        listed = [filled(each) for each in found["schedules"]]
        shown |= {"schedules": listed, "examined": found["examined"]}
        if found["cursor"]:
            kept = {"tenant": tenant, **filters, "cursor": found["cursor"]}
            shown["following"] = "/console/schedules?" + urlencode(given(kept))
    return "schedules.html", shown


def filters_of(asked: Mapping[str, str]) -> dict[str, str]:
    """The filters in an address; missing ones are empty."""
    return {name: asked.get(name, "").strip() for name in FILTERS}


def query_of(filters: Mapping[str, str]) -> dict[str, str]:
    """The same as the API takes them."""
    return {name: _instant(name, value) for name, value in filters.items()}


def _instant(name: str, value: str) -> str:
    """The value of a browser's field for an instant; it has no zone, and the label says UTC."""
    if name.startswith("due_") and value and "T" in value and value[-1] != "Z":
        seconds = value if value.count(":") > 1 else f"{value}:00"
        return seconds if "+" in value else f"{seconds}Z"
    return value


def given(fields: Mapping[str, str]) -> dict[str, str]:
    """Fields that say something."""
    return {name: value for name, value in fields.items() if value}
