"""Creating a schedule, with a preview of its next occurrences before it is asked for.

    form ─► *Preview* ─► POST /v1/preview ─► next occurrences and warnings, below the form
         ─► *Create*  ─► POST …/schedules ─► the page of the schedule

The preview is the API's, so it shows the effect of clock changes on the rule: an hour that does not
exist or comes twice is told as a warning, with local times beside those in UTC. It needs only the
rule, and a wrong rule is explained beside the form, where it is mended.

A form holds texts. A field for a number is converted if possible; else it goes as it is, and the
API says what is wrong, in the same words as to any other caller: only its checks count.

Creating is CREATE and not UPSERT: an id that exists is a conflict here, since somebody who fills a
form in means a new schedule. Changing one is in `editing.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.responses import Response

from belfry.console.asking import Api, ApiRefusal, tenant_path
from belfry.console.page import Shown, gone_to
from belfry.console.posted import needed, posted
from belfry.schedules.fields import FIELDS

KINDS: Final = {
    "delay_ms": "After a delay, in milliseconds",
    "at": "At an instant, such as 2040-01-01T09:00:00Z",
    "interval_ms": "At an interval, in milliseconds",
    "cron": "By a cron expression, such as 30 2 * * SUN",
    "rrule": "By an RFC 5545 rule, such as FREQ=MONTHLY;BYDAY=-1FR",
    "after_ack": "After the acknowledgement of the schedule of this id",
    "after_group": "When all of this group are acknowledged",
}
COUNTS: Final = ("max_fires", "max_wait_ms", "ack_delay_ms")
# How it fires, and how often: an edit keeps these as they are.
FIRING_COUNTS: Final = (
    *("jitter_ms", "max_lateness_ms", "throttle_ms", "concurrency", "ack_timeout_ms"),
)
FIRING: Final = ("misfire", "overlap", *FIRING_COUNTS)
NUMBERS: Final = frozenset({"delay_ms", "interval_ms", "priority", *COUNTS, *FIRING_COUNTS})
# Fields of a form for an event, besides its rule and payload.
EVENT: Final = ("event_type", "group", "priority")
TEXTS: Final = (
    *("timezone", "start_at", "end_at", "except_cron", "calendar", "on_holiday", "latest_at"),
)
FIRST: Final = {
    "schedule_id": "first",
    "delay_ms": 5000,
    "payload_text": "hello, belfry",
    "reason": "the button of the empty console",
}
FIRST_TENANT: Final = "demo"


async def view(api: Api, request: Request) -> Shown:
    """The form."""
    tenant = request.query_params.get("tenant", "")
    ways = {name: FIELDS[name].symbols for name in ("misfire", "overlap")}
    return "create.html", {
        "me": await api.get("/v1/me"),
        "tenant": tenant,
        "kinds": KINDS,
        "ways": ways,
    }


async def preview(api: Api, request: Request) -> Shown:
    """The instants of the rule in the form; a wrong rule is explained, not refused."""
    fields = await posted(request)
    # H depends on both names, which may not be there yet.
    names = {"tenant": fields.get("tenant"), "schedule_id": fields.get("id")}
    return await previewed(api, lambda: rule_of(fields) | names)


async def previewed(api: Api, rule: Callable[[], dict[str, Any]]) -> Shown:
    """The preview of a rule, which may be refused while it is made of a form as well."""
    try:
        told = await api.post("/v1/preview", rule())
    except ApiRefusal as refused:
        if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        return "preview.html", {"wrong": str(refused), "preview": None}
    return "preview.html", {"wrong": "", "preview": told}


async def create(api: Api, request: Request) -> Response:
    """Create the schedule, and show it."""
    fields = await posted(request)
    tenant, schedule_id = needed(fields, "tenant"), needed(fields, "id")
    body = rule_of(fields) | {"schedule_id": schedule_id}
    body |= event_of(fields)
    body |= {name: number_of(name, fields[name]) for name in FIRING if name in fields}
    body |= {"reason": fields["reason"]} if "reason" in fields else {}
    if "payload" in fields:
        body |= _payload(fields["payload"], as_json=fields.get("payload_form") == "json")
    return await _made(api, tenant, body)


async def first(api: Api, request: Request) -> Response:
    """Make the first schedule of the empty overview: it fires after five seconds."""
    await posted(request)
    return await _made(api, FIRST_TENANT, dict(FIRST))


async def _made(api: Api, tenant: str, body: dict[str, Any]) -> Response:
    """Create a schedule, and lead to its page."""
    await api.post(f"{tenant_path(tenant)}/schedules", body)
    shown = {"tenant": tenant, "id": body["schedule_id"]}
    return gone_to("/console/schedule?" + urlencode(shown))


def rule_of(fields: dict[str, str]) -> dict[str, Any]:
    """The rule that a form asks for, in the API's names; raises `ApiRefusal`."""
    kind = needed(fields, "kind")
    if kind not in KINDS:
        detail = f"{kind[:50]!r} is no kind of rule; there are {', '.join(KINDS)}."
        raise ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_kind", detail)
    rule: dict[str, Any] = {kind: number_of(kind, needed(fields, "when"))}
    rule |= {name: fields[name] for name in TEXTS if name in fields}
    for name in COUNTS:
        if name in fields:
            rule[name] = number_of(name, fields[name])
    return rule


def event_of(fields: dict[str, str]) -> dict[str, Any]:
    """The event of a form, in the API's names."""
    return {name: number_of(name, fields[name]) for name in EVENT if name in fields}


def number_of(name: str, given: str) -> int | str:
    """The number in a text; other texts stay as they are, for the API to explain."""
    try:
        return int(given) if name in NUMBERS else given
    except ValueError:
        return given


def _payload(given: str, *, as_json: bool) -> dict[str, Any]:
    """The payload in the API's names; raises `ApiRefusal` for wrong JSON."""
    if not as_json:
        return {"payload_text": given}
    try:
        return {"payload_json": orjson.loads(given)}
    except orjson.JSONDecodeError as error:
        detail = f"The payload is no JSON ({error}): mend it, or send it as text."
        raise ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_payload", detail) from None
