"""Hosts of webhooks that are not posted to, as a part of the deliveries; one is broken and closed.

    GET  /v1/delivery-hosts               circuit breakers that are open, by worker
    POST /v1/delivery-hosts/{host}/break  *Break*: it gets no posts for a while
    POST /v1/delivery-hosts/{host}/close  *Close*: the next delivery is tried at once

Hosts are shared by all tenants, so only a key that is bound to all of them is shown any, and only
one of the role `operate` may act.
"""

from __future__ import annotations

from time import time
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from belfry.console.asking import Api
from belfry.console.page import gone_to
from belfry.console.places import late_workers
from belfry.console.policies import is_platform
from belfry.console.posted import needed, posted

HOSTS = "/v1/delivery-hosts"
DELIVERIES = "/console/deliveries"


async def shown_hosts(api: Api, me: dict[str, Any]) -> dict[str, Any]:
    """The hosts on the page of deliveries; empty for a key that is bound to some tenants."""
    if "*" not in me["tenants"]:
        return {"hosts": None, "may_break": False, "late_workers": []}
    told = await api.get(HOSTS, at_once="true")
    late = late_workers(told, round(time() * 1000))
    return {"hosts": told, "may_break": is_platform(me), "late_workers": late}


async def act(api: Api, request: Request) -> Response:
    """Break or close a host, and show the deliveries again."""
    fields = await posted(request)
    host, action = needed(fields, "host").strip(), needed(fields, "action")
    minutes = fields.get("minutes") if action == "break" else None
    asked = {"minutes": minutes, "reason": fields.get("reason")}
    path = f"{HOSTS}/{quote(host, safe='')}/{quote(action, safe='')}"
    (await api.ask("POST", path, asked)).json()
    back = {"tenant": fields.get("tenant", ""), "host": host, "acted": action}
    return gone_to(
        f"{DELIVERIES}?" + urlencode({name: each for name, each in back.items() if each})
    )
