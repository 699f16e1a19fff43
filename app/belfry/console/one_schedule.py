"""One schedule: its rule in words, next instants, history, payload, and actions.

It answers why a schedule did or did not do something. Each part of the page is a question to the
API, for the API has no such page:

    its fields, why it waits      GET  …/schedules/{id}, with its last fires
    its rule and next instants    POST /v1/preview, with the rule as it stands
    its history                   GET  …/schedules/{id}/history, the newest first
    its payload                   POST /v1/decode, if the payload begins as Avro does
    which fires lack their end    GET  …/locks, those of this schedule
    at which level fires are told GET  …/statistics

Of a history the newest events are asked for: a schedule that fires each second has a million of
them. Fires are events of a history only where the tenant's level is ALL; elsewhere the schedule
itself tells its last ten.

An action names the shown version (`If-Match`), so it counts only if nobody has changed the schedule
since; it is confirmed in a dialog, and a role without the right sees no button.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from http import HTTPStatus
from operator import itemgetter
from time import time
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from belfry.console import words
from belfry.console.asking import Api, ApiRefusal, schedule_path, tenant_path
from belfry.console.page import Shown, gone_to
from belfry.console.posted import needed, posted

ACTIONS: Final = ("pause", "resume", "trigger", "dry-run", "cancel", "ack")
OF_A_FIRE: Final = frozenset({"FIRED", "MISSED", "DELIVERED", "FAILED"})
# Events that are looked through for the last ten of occurrences.
MOST_EVENTS: Final = 100
LAST: Final = 10
# The lifecycle level at which fires are events.
EVERYTHING: Final = "ALL"
ACTING: Final = frozenset({"schedule", "admin", "operate"})
ACTIVE: Final = ("PENDING", "PAUSED")
RULE: Final = (
    *words.WHEN,
    "timezone",
    "start_at",
    "end_at",
    "except_cron",
    "calendar",
    "on_holiday",
    "max_wait_ms",
    "ack_delay_ms",
    "latest_at",
    "priority",
)


async def view(api: Api, request: Request) -> Shown:
    """One schedule."""
    tenant = request.query_params.get("tenant", "")
    schedule_id = request.query_params.get("id", "")
    me = await api.get("/v1/me")
    answer = await api.ask("GET", schedule_path(tenant, schedule_id), {"last": LAST})
    events = (
        []
        if answer.is_refusal and answer.status != HTTPStatus.NOT_FOUND
        else (await events_of(api, tenant, schedule_id, MOST_EVENTS))
    )
    is_gone = answer.status == HTTPStatus.NOT_FOUND and bool(events)
    found = _ended(schedule_id, events[-1]) if is_gone else answer.json()
    lately = {"from": round(time() * 1000)}
    statistics = await api.get(f"{tenant_path(tenant)}/statistics", **lately)
    return "schedule.html", {
        "me": me,
        "may_act": me["role"] in ACTING,
        "tenant": tenant,
        "schedule": words.filled(found),
        "etag": answer.headers.get("etag", ""),
        "zone": found.get("timezone") or "UTC",
        "preview": await _preview(api, found),
        "occurrences": _occurrences(events, found.get("last_fires", ()), statistics["lifecycle"]),
        "events": events[-LAST:][::-1],
        "lifecycle": statistics["lifecycle"],
        "locks": await _locks(api, tenant, schedule_id),
        "payload": await _payload(api, found),
        "lateness": words.lateness,
        "late_ms": _late_ms(found),
        "here": _address(tenant, schedule_id),
        "copied": request.query_params.get("copied", ""),
    }


def _occurrences(
    events: Sequence[dict[str, Any]], fires: Sequence[dict[str, Any]], level: str
) -> list[dict[str, Any]]:
    """The results of the last occurrences, the newest first.

    Fires are events at one level only; at the others the schedule itself tells its last ones.
    """
    found = [each for each in events if each["outcome"] in OF_A_FIRE]
    if level != EVERYTHING:
        found += [
            {
                "due_at": each["due_at"],
                "at": each["fired_at"],
                "outcome": "FIRED",
                "reason": f"{each['missed']} missed ones too" if each["missed"] else None,
                "attempt": None,
            }
            for each in fires
        ]
    return sorted(found, key=itemgetter("at"))[-LAST:][::-1]


async def act(api: Api, request: Request) -> Shown | Response:
    """Carry an action out, and show the schedule as it is then."""
    fields = await posted(request)
    tenant, schedule_id = needed(fields, "tenant"), needed(fields, "id")
    action = needed(fields, "action")
    if action not in ACTIONS:
        detail = f"There is no action {action[:50]!r}; there are {', '.join(ACTIONS)}."
        raise ApiRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_action", detail)
    path = schedule_path(tenant, schedule_id)
    query = {"reason": fields.get("reason")}
    if action == "ack":
        query["fire_id"] = needed(fields, "fire_id")
    # An acknowledgement is of a fire, and a dry run of what is there, whatever it has become since.
    match = {} if action in ("ack", "dry-run") else {"if-match": needed(fields, "etag")}
    if action == "cancel":
        answer = await api.ask("DELETE", path, query, None, match)
    else:
        answer = await api.ask("POST", f"{path}/{action}", query, None, match)
    told = answer.json()
    if action == "cancel":
        return gone_to("/console/schedules?" + urlencode({"tenant": tenant}))
    if action == "dry-run":
        place = f"{told['topic']}, partition {told['partition']}, offset {told['offset']}"
        return gone_to(_address(tenant, schedule_id, copied=place))
    return gone_to(_address(tenant, schedule_id))


def _address(tenant: str, schedule_id: str, **more: str) -> str:
    """Address of this page."""
    return "/console/schedule?" + urlencode({"tenant": tenant, "id": schedule_id, **more})


def _late_ms(found: dict[str, Any]) -> int:
    """How long it has been due and has not fired; 0 where it is not late by a second."""
    if found["state"] != "PENDING" or found.get("due_at") is None:
        return 0
    late = round(time() * 1000) - words.epoch_ms(found["due_at"])
    return late if late > 1000 else 0


def _ended(schedule_id: str, last: dict[str, Any]) -> dict[str, Any]:
    """The known end of a schedule that is kept no longer: its last event."""
    return {
        "schedule_id": schedule_id,
        "state": "ENDED",
        "version": last["version"],
        "generation": None,
    }


async def _preview(api: Api, found: dict[str, Any]) -> dict[str, Any] | None:
    """The rule in words and its next ten occurrences; None where it has come to its end."""
    if found["state"] not in ACTIVE or "unreadable" in found:
        return None
    if "at" in found or "delay_ms" in found:
        rule = {"at": found["due_at"]}
    else:
        rule = {name: found[name] for name in RULE if found.get(name) is not None}
        rule |= {name: found[name] for name in ("tenant", "schedule_id")}
        if "interval_ms" in rule or str(rule.get("cron")).startswith("@every"):
            # An interval counts from its next instant, not from now.
            rule["start_at"] = found.get("scheduled_at") or found["due_at"]
        if found.get("max_fires"):
            rule["max_fires"] = max(1, found["max_fires"] - found["occurrence"])
    try:
        told: dict[str, Any] = await api.post("/v1/preview", rule)
    except ApiRefusal as refused:
        return {"words": f"No preview: {refused}", "occurrences": [], "warnings": []}
    return told


async def _payload(api: Api, found: dict[str, Any]) -> dict[str, str]:
    """The payload in all its views; Avro by the schema that it names comes first."""
    views, raw = words.payload_views(found), words.payload_of(found)
    if not views and "unreadable" in found:
        return {"Not shown": found["unreadable"]}
    if raw is None or not words.may_be_avro(raw):
        return views
    body = {"value_base64": b64encode(raw).decode()}
    try:
        told = await api.post("/v1/decode", body)
    except ApiRefusal as refused:
        return {**views, "Avro": f"Not decoded: {refused}"}
    return {f"Avro, {told['avro_schema']}": words.as_json(told["value"]), **views}


async def events_of(api: Api, tenant: str, schedule_id: str, most: int) -> list[dict[str, Any]]:
    """So many of the latest lifecycle events at most, oldest first."""
    path = f"{schedule_path(tenant, schedule_id)}/history"
    page = await api.get(path, order="newest", limit=most)
    found: list[dict[str, Any]] = page["events"]
    return found[::-1]


async def _locks(api: Api, tenant: str, schedule_id: str) -> list[dict[str, Any]]:
    """The fires of this schedule that are to be acknowledged."""
    found = (await api.get(f"{tenant_path(tenant)}/locks", limit=1000))["locks"]
    return [each for each in found if each["schedule_id"] == schedule_id]
