"""A tenant's policy: paused, resumed and changed under the ETag that was seen.

    GET  /v1/tenants/shop      the policy and its ETag; 404: the tenant is treated by the defaults
    the form                   some of its fields, in groups; an empty one has its default
    PUT  /v1/tenants/shop      the whole policy, with If-Match: the ETag of the form, and a reason

The form shows the fields that people change. Targets, hosts, secrets and the spread go back as they
were read, or are left out if only the platform sets them, so no credential enters a page. The
button that pauses a tenant is a small form of the same kind: it sets one field and leaves the
others.

The first policy of a tenant has no ETag to name. Should somebody else have made it while the form
was open, saving is refused here, for the API could not know.
"""

from __future__ import annotations

from http import HTTPStatus
from math import isfinite
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from belfry.console.asking import Api, ApiRefusal, tenant_path
from belfry.console.page import Shown, gone_to
from belfry.console.posted import needed, posted
from belfry.tenants.policy_rights import PLATFORMS

SETTING: Final = frozenset({"admin", "operate"})
YES_NO: Final = ("false", "true")
# Fields of the form in its groups: those that choose have their choices, empty is the default.
GROUPS: Final[dict[str, dict[str, tuple[str, tuple[str, ...]]]]] = {
    "Firing": {
        "paused": ("Paused: nothing fires", YES_NO),
        "max_fires_per_second": ("Most fires a second", ()),
        "priority": ("Priority; higher goes first", ()),
        "misfire": ("What was missed", ("", "FIRE_ONCE", "FIRE_ALL", "SKIP")),
        "look_back_ms": ("Look back for what was missed, ms", ()),
        "remember_ms": ("Remember what is over for, ms; at most a day", ()),
    },
    "Requests": {
        "max_pending": ("Most pending schedules", ()),
        "max_requests_per_second": ("Most requests a second", ()),
    },
    "Events": {
        "output": ("Output", ("OWN", "SHARED")),
        "output_topic": ("Topic of the events", ()),
        "delivery": ("Value of an event", ("PAYLOAD", "ENVELOPE")),
        "cloudevents": ("CloudEvents headers", YES_NO),
        "claim_check_over_bytes": ("Store payloads elsewhere of more bytes than", ()),
        "source_header": ("Header that says where the request lies", YES_NO),
        "guarantee": ("Guarantee", ("EXACTLY_ONCE", "AT_LEAST_ONCE")),
    },
    "History": {
        "lifecycle": ("What is kept", ("ALL", "OUTCOMES", "FAILURES")),
        "history_ms": ("For how long, ms", ()),
    },
    "Deliveries by HTTP": {
        "retry_max_attempts": ("Attempts at most", ()),
        "retry_initial_ms": ("First pause between attempts, ms", ()),
        "retry_max_ms": ("Longest pause, ms", ()),
        "retry_max_age_ms": ("Given up after, ms", ()),
    },
}
FIELDS: Final = {name: choices for group in GROUPS.values() for name, (_, choices) in group.items()}
_TEXTS: Final = frozenset({"output_topic"})
_NUMBERED: Final = frozenset({"priority", "look_back_ms", "history_ms", "remember_ms"})
_NEVER_SENT: Final = frozenset({"tenant", "former_spreads"})


async def view(api: Api, request: Request) -> Shown:
    """The form, with the present values of the policy."""
    tenant = request.query_params.get("tenant", "").strip()
    me = await api.get("/v1/me")
    found, etag = await _found(api, tenant)
    return "policy.html", {
        "me": me,
        "may_set": me["role"] in SETTING,
        "fixed": () if is_platform(me) else PLATFORMS,
        "tenant": tenant,
        "etag": etag,
        "is_new": found is None,
        "groups": GROUPS,
        "values": {name: _as_text((found or {}).get(name)) for name in FIELDS},
    }


async def save(api: Api, request: Request) -> Response:
    """Change the policy if it still is the shown one, and show the tenant."""
    fields = await posted(request)
    tenant, etag = needed(fields, "tenant"), fields.get("etag", "")
    found, _ = await _found(api, tenant)
    if found is not None and not etag:
        detail = "Somebody has made the first policy of this tenant meanwhile: look at it."
        raise ApiRefusal(HTTPStatus.PRECONDITION_FAILED, "changed", detail)
    me = await api.get("/v1/me")
    left_out = _NEVER_SENT if is_platform(me) else _NEVER_SENT | set(PLATFORMS)
    body = {**(found or {}), **_given(fields)}
    # If the default is a number, the API fills it in for a missing field.
    emptied = {name for name in _NUMBERED if body.get(name) is None}
    body = {name: value for name, value in body.items() if name not in left_out | emptied}
    match = {"if-match": etag} if etag else {}
    why = {"reason": fields.get("reason")}
    (await api.ask("PUT", tenant_path(tenant), why, body, match)).json()
    return gone_to("/console/tenants?" + urlencode({"tenant": tenant}))


async def _found(api: Api, tenant: str) -> tuple[dict[str, Any] | None, str]:
    """The policy and its ETag; None if there is no policy."""
    answer = await api.ask("GET", tenant_path(tenant), {})
    if answer.status == HTTPStatus.NOT_FOUND:
        return None, ""
    return answer.json(), answer.headers.get("etag", "")


def is_platform(me: dict[str, Any]) -> bool:
    """Whether the caller may set fields that a tenant must not set for itself."""
    return me["role"] == "operate" and "*" in me["tenants"]


def _given(fields: dict[str, str]) -> dict[str, Any]:
    """The fields that the form sets; an empty field of the whole form is back at its default."""
    found: dict[str, Any] = {}
    for name, choices in FIELDS.items():
        if name in fields:
            found[name] = _typed(name, fields[name].strip())
        elif "whole" in fields and (not choices or "" in choices):
            found[name] = None
    return found


def _typed(name: str, given: str) -> Any:
    """A value as the API takes it; a wrong number goes as it is, and the API says so.

    Raises `ApiRefusal` for a number without an end, which cannot be sent.
    """
    if FIELDS[name] == YES_NO:
        return given == "true"
    if FIELDS[name] or name in _TEXTS:
        return given
    try:
        return int(given)
    except ValueError:
        pass
    try:
        number = float(given)
    except ValueError:
        return given
    if not isfinite(number):
        detail = (
            f"{name} is {given}, which JSON cannot hold: give a number such as 100 or 2.5, or leave"
            " it empty for the default."
        )
        raise ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_field", detail)
    return number


def _as_text(value: Any) -> str:
    """A value as a field of the form holds it; empty for the default."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
