"""Changing a schedule: its form, a preview of the new rule, and the change under the version seen.

    12:00:00  the form is opened: version 3, ETag 1234567.3, which the form carries along
    12:00:40  somebody else changes the payload: version 4
    12:01:00  *Save* ─► PUT with If-Match 1234567.3 ─► 412: no change, as the page says

The form shows the fields that people change. All other fields of the schedule (key, headers,
targets, misfire rule) are read anew when the form is sent, with the key of the person who sends it,
and go back as they are: targets' credentials never enter a page. `If-Match` holds for both, so a
version that was not shown is never overwritten.

A delay has become an instant by the time it is edited: the form shows that instant, and saving it
fixes it. A payload that is not text, or too long for a form, is not shown and stays. Browsers send
line ends as CR LF, so an untouched payload is compared without them, and stays byte for byte.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.responses import Response

from belfry.console.asking import Api, ApiAnswer, ApiRefusal, schedule_path
from belfry.console.creating import (
    EVENT,
    KINDS,
    TEXTS,
    event_of,
    number_of,
    previewed,
    rule_of,
)
from belfry.console.one_schedule import ACTING, ACTIVE
from belfry.console.page import Shown, gone_to
from belfry.console.posted import needed, posted
from belfry.schedules.fields import FIELDS, WHEN

KEEP: Final = "keep"
MOST_PAYLOAD: Final = 65_536
WHENS: Final = frozenset(field.name for field in WHEN)
# Fields of a definition, which a request about it does not have.
_OF_REQUESTS: Final = frozenset(
    {"tenant", "schedule_id", "action", "kind", "request_id", "expected_version", "reason",
     "fire_id", "throttle_ms", "key", "payload"}
)  # fmt: skip
_BYTES: Final = frozenset({"key_text", "key_base64", "payload_text", "payload_base64"})
DEFINES: Final = (frozenset(FIELDS) - _OF_REQUESTS) | _BYTES
_OF_FORM: Final = (*TEXTS, "max_fires", "ack_delay_ms")
# An edit fixes the instant of a delay, so it slides no more.
_ENDS: Final = frozenset({*WHENS, *_OF_FORM, "max_wait_ms"})


async def view(api: Api, request: Request) -> Shown:
    """The form, with the present fields of the schedule."""
    tenant = request.query_params.get("tenant", "")
    schedule_id = request.query_params.get("id", "")
    me = await api.get("/v1/me")
    answer, found = await _found(api, tenant, schedule_id)
    kind, when = _rule_now(found)
    return "edit.html", {
        "me": me,
        "may_act": me["role"] in ACTING,
        "tenant": tenant,
        "id": schedule_id,
        "etag": answer.headers.get("etag", ""),
        "kinds": {KEEP: "Keep the rule as it is", **KINDS},
        "kind": kind,
        "when": when,
        "values": {name: found.get(name) or "" for name in (*_OF_FORM, *EVENT)},
        "payload": _editable(found),
        "zone": found.get("timezone") or "UTC",
    }


async def preview(api: Api, request: Request) -> Shown:
    """The instants of the rule in the form, also over a change of the clocks."""
    fields = await posted(request)
    tenant, schedule_id = needed(fields, "tenant"), needed(fields, "id")
    _, found = await _found(api, tenant, schedule_id)

    def rule() -> dict[str, Any]:
        body = _rule(fields, found)
        if "delay_ms" not in body and not WHENS & body.keys():
            body["at"] = _nominal(found)
        return body | {"tenant": tenant, "schedule_id": schedule_id}

    return await previewed(api, rule)


async def save(api: Api, request: Request) -> Response:
    """Change the schedule if it still has the shown version, and show it."""
    fields = await posted(request)
    tenant, schedule_id = needed(fields, "tenant"), needed(fields, "id")
    etag = needed(fields, "etag")
    _, found = await _found(api, tenant, schedule_id)
    body = {name: found[name] for name in DEFINES if found.get(name) is not None}
    body = {name: value for name, value in body.items() if name not in _ENDS}
    body |= _rule(fields, found)
    body = {name: value for name, value in body.items() if name not in EVENT} | event_of(fields)
    body |= {"reason": fields["reason"]} if "reason" in fields else {}
    body = _with_payload(body, fields, found)
    match = {"if-match": etag}
    (await api.ask("PUT", schedule_path(tenant, schedule_id), {}, body, match)).json()
    return gone_to("/console/schedule?" + urlencode({"tenant": tenant, "id": schedule_id}))


async def _found(api: Api, tenant: str, schedule_id: str) -> tuple[ApiAnswer, dict[str, Any]]:
    """The schedule as it is; raises `ApiRefusal` if it is over."""
    answer = await api.ask("GET", schedule_path(tenant, schedule_id), {})
    found: dict[str, Any] = answer.json()
    if found["state"] not in ACTIVE or "unreadable" in found:
        detail = f"{schedule_id[:100]!r} is {found['state']}: only what is to fire can be changed."
        raise ApiRefusal(HTTPStatus.CONFLICT, "over", detail)
    return answer, found


def _rule_now(found: dict[str, Any]) -> tuple[str, str]:
    """The kind of rule that the form begins with, and its value."""
    if found.get("at") or found.get("delay_ms"):
        return "at", _nominal(found)
    for kind in KINDS:
        if found.get(kind) is not None:
            return kind, str(found[kind])
    return KEEP, ""


def _nominal(found: dict[str, Any]) -> str:
    """The instant of a one-shot, before its jitter."""
    return str(found.get("scheduled_at") or found.get("at") or found["due_at"])


def _rule(fields: dict[str, str], found: dict[str, Any]) -> dict[str, Any]:
    """The rule that the form asks for."""
    if needed(fields, "kind") != KEEP:
        return rule_of(fields)
    rule = {name: found[name] for name in WHENS if found.get(name) is not None}
    if "delay_ms" in rule:
        rule = {"at": _nominal(found)}
    rule |= {name: fields[name] for name in TEXTS if name in fields}
    for name in ("max_fires", "ack_delay_ms"):
        if name in fields:
            rule[name] = number_of(name, fields[name])
    return rule


def _editable(found: dict[str, Any]) -> str | None:
    """The payload that the form shows; None where it is no text, or too long for a form."""
    if found.get("payload_base64") is not None:
        return None
    text = found.get("payload_text") or ""
    return text if len(text) <= MOST_PAYLOAD else None


def _with_payload(
    body: dict[str, Any], fields: dict[str, str], found: dict[str, Any]
) -> dict[str, Any]:
    """The definition with the payload of the form; one that the form did not show stays."""
    before = _editable(found)
    # A browser sends line ends as CR LF: an untouched payload stays as it was, byte for byte.
    given = fields.get("payload", "").replace("\r\n", "\n")
    if before is None or given == before.replace("\r\n", "\n"):
        return body
    body.pop("payload_text", None)
    if not given:
        return body
    if fields.get("payload_form") == "json":
        _check_json(given)
    return {**body, "payload_text": given}


def _check_json(given: str) -> None:
    """Raise `ApiRefusal` if the text is not JSON."""
    try:
        orjson.loads(given)
    except orjson.JSONDecodeError as error:
        detail = f"The payload is no JSON ({error}): mend it, or send it as text."
        raise ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_payload", detail) from None
