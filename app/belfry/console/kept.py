"""Rejected requests, and deliveries: without an end, given up, and delivered again.

Both lie in topics that all tenants share, and are found there by looking back from the end. The API
looks for a bounded time, so a page may be empty while older ones hold more; *Look further back*
goes on where it ended, with the cursor in its address.

    GET  /v1/rejections, …/rejections   refused requests, why, and where they were received
    GET  …/deliveries                   deliveries that a target has not confirmed yet
    GET  …/dead-letters                 deliveries that were given up
    POST …/dead-letters/{id}/replay     *Deliver again*: the same event under the same fire id
    GET  /v1/delivery-hosts             hosts that are not posted to (`hosts.py`)

A request that was refused may be anything: the page shows its fields if it can be read, else its
text, else hex. It enters the page as text, as all values do. Neither view refreshes itself: a look
at a topic is dear, and what somebody reads should not move.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from belfry.console.asking import Api, tenant_path
from belfry.console.hosts import DELIVERIES, shown_hosts
from belfry.console.one_schedule import ACTING
from belfry.console.page import Shown, gone_to
from belfry.console.posted import needed, posted
from belfry.console.words import hex_dump_of

REJECTIONS: Final = "/console/rejections"
OPTIONAL: Final = ("key_text", "key_base64", "request", "sample_text", "sample_base64")


async def rejections(api: Api, request: Request) -> Shown:
    """Refused requests of a tenant, or of all where the key sees all."""
    me = await api.get("/v1/me")
    tenant, cursor = _asked(request)
    full = "*" in me["tenants"]
    page: dict[str, Any] = {"rejections": [], "examined": 0, "cursor": None}
    if tenant or full:
        path = f"{tenant_path(tenant)}/rejections" if tenant else "/v1/rejections"
        page = await api.get(path, cursor=cursor)
    return "rejections.html", {
        "me": me,
        "full": full,
        "may_act": me["role"] in ACTING,
        "tenant": tenant,
        "rejections": [_request(each) for each in page["rejections"]],
        "examined": page["examined"],
        "older": _older(REJECTIONS, tenant, page["cursor"]),
    }


async def deliveries(api: Api, request: Request) -> Shown:
    """A tenant's deliveries without an end, and its dead letters."""
    me = await api.get("/v1/me")
    tenant, cursor = _asked(request)
    asked = request.query_params
    shown: dict[str, Any] = {
        "acted": {name: asked.get(name, "") for name in ("host", "acted")},
        "me": me,
        "may_act": me["role"] in ACTING,
        "tenant": tenant,
        "replayed": asked.get("replayed", ""),
        "open": [],
        "letters": [],
        "examined": 0,
        "older": "",
        "is_first": not cursor,
    }
    if not tenant:
        shown |= await shown_hosts(api, me)
    else:
        # Both read topics, so they do at the same time.
        letters, latest, hosts = await asyncio.gather(
            api.get(f"{tenant_path(tenant)}/dead-letters", cursor=cursor),
            _nothing() if cursor else api.get(f"{tenant_path(tenant)}/deliveries"),
            shown_hosts(api, me),
        )
        older = _older(DELIVERIES, tenant, letters["cursor"])
        shown |= {"letters": letters["deliveries"], "examined": letters["examined"], "older": older}
        shown |= hosts
        shown["open"] = latest["deliveries"]
    return "deliveries.html", shown


async def replay(api: Api, request: Request) -> Response:
    """Have one dead letter delivered again."""
    fields = await posted(request)
    tenant, letter = needed(fields, "tenant"), needed(fields, "id")
    path = f"{tenant_path(tenant)}/dead-letters/{quote(letter, safe='')}/replay"
    (await api.ask("POST", path, {"reason": fields.get("reason")})).json()
    return gone_to(f"{DELIVERIES}?" + urlencode({"tenant": tenant, "replayed": letter}))


async def _nothing() -> dict[str, Any]:
    """No deliveries: those without an end are shown on the first page alone."""
    return {"deliveries": []}


def _asked(request: Request) -> tuple[str, str]:
    """The tenant and the cursor that are asked for, either may be empty."""
    asked = request.query_params
    return asked.get("tenant", "").strip(), asked.get("cursor", "")


def _older(path: str, tenant: str, cursor: str | None) -> str:
    """The address of older ones; empty if there are none."""
    if cursor is None:
        return ""
    given = {"tenant": tenant, "cursor": cursor} if tenant else {"cursor": cursor}
    return f"{path}?{urlencode(given)}"


def _request(told: dict[str, Any]) -> dict[str, Any]:
    """A refused request with the text of its sample: fields as JSON, else text, else hex."""
    found: dict[str, Any] = dict.fromkeys(OPTIONAL) | told
    if found["request"] is not None:
        sample = json.dumps(found["request"], indent=2, ensure_ascii=False)
    elif found["sample_base64"] is not None:
        sample = hex_dump_of(found["sample_base64"])
    else:
        sample = found["sample_text"] or ""
    headers = [f"{each['name']}: {_value(each)}" for each in found["headers"]]
    return {**found, "sample": sample, "shown_headers": "\n".join(headers)}


def _value(header: dict[str, Any]) -> str:
    """A header's value as text; base64 if it is not text."""
    text = header.get("value_text")
    coded = header.get("value_base64")
    return str(text if text is not None else coded if coded is not None else "(null)")
