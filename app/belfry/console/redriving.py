"""Refused requests or fired events, sent again: a count, and then slice after slice.

    range, code or ids ─► GET /console/redrive ─► POST …/redrives?dry=true: 2 300, by code
    *Send again*       ─► POST /console/redrive ─► POST …/redrives: 1 000 were sent, 1 300 are left
                                                   *Send again* goes on where that ended

One call of the API sends for some ten seconds, so a page waits no longer than that. The end of the
range is fixed by the first count, and goes along in the address: later refusals do not come into
it. A user who closes the tab loses nothing, since sent records are marked (docs/redrive.md). A key
of the role `read` may count, but not send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from belfry.console.asking import Api, tenant_path
from belfry.console.one_schedule import ACTING
from belfry.console.page import Shown, gone_to
from belfry.console.posted import needed, posted

# Fields of the form by the kind of record to send again, in the names of the API.
RANGE: Final = ("range_from", "range_until")
FIELDS: Final = {"rejected": (*RANGE, "code"), "fires": (*RANGE, "schedule_id", "prefix", "name")}


async def view(api: Api, request: Request) -> Shown:
    """The records that could be sent again, and their number."""
    me = await api.get("/v1/me")
    asked = request.query_params
    tenant, what = asked.get("tenant", "").strip(), asked.get("what", "rejected")
    found = None
    if tenant and asked.get("range_from", "").strip():
        path = f"{tenant_path(tenant)}/redrives"
        found = (await api.ask("POST", path, {"dry": "true"}, _body(asked))).json()
    return "redrive.html", {
        "me": me,
        "may_act": me["role"] in ACTING,
        "tenant": tenant,
        "what": what if what in FIELDS else "rejected",
        "given": {name: asked.get(name, "") for name in {*FIELDS["rejected"], *FIELDS["fires"]}},
        "found": found,
        "sent": asked.get("sent", ""),
    }


async def send(api: Api, request: Request) -> Response:
    """Send a slice, and show how many are left."""
    fields = await posted(request)
    tenant = needed(fields, "tenant")
    body = _body(fields) | {"reason": fields.get("reason")}
    told = await api.post(f"{tenant_path(tenant)}/redrives", body)
    asked = {**_body(fields), "range_until": told["range_until"]}
    again = {"tenant": tenant, **asked, "sent": told["sent"]}
    return gone_to("/console/redrive?" + urlencode(again))


def _body(given: Mapping[str, str]) -> dict[str, Any]:
    """The body for the API: the fields of the kind to send again, if they are filled in."""
    what = given.get("what", "rejected")
    names = FIELDS.get(what, ())
    said = {name: given[name].strip() for name in names if given.get(name, "").strip()}
    return {"what": what, **said}
