"""A made-up belfry at a fixed instant: the API's answers behind the pictures of docs/console.md.

Everything is the same at each run, so a picture changes only where the console does.
"""

from __future__ import annotations

import math
from typing import Any, Final

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from belfry.api.json.shapes import moment

# Tuesday, 2026-10-20 09:41:20 UTC: five days before clocks change in Europe.
NOW_MS: Final = 1_792_489_280_000
MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DUE_MS: Final = NOW_MS - 11 * MINUTE - 20_000  # 09:30
GENERATION: Final = 1_790_000_000_000
WAIT: Final = {
    "tenant": "billing",
    "waiting_for": "tenant_blocked",
    "cause": "paused",
    "reason": "its policy pauses it",
    "since": moment(DUE_MS - 26_000),
    "waiting": 38,
    "oldest_due_at": moment(DUE_MS),
}
TENANTS: Final = {
    "billing": (13_109, 96_112, 3, 2_310.0, WAIT),
    "reminders": (412_000, 1_204_733, 0, 9_621.0, None),
    "exports": (1_204, 20_416, 17, 122.5, None),
    "trials": (7_315, 3_922, 0, 16.2, None),
}
POLICY: Final[dict[str, Any]] = {
    "tenant": "billing", "output_topic": None, "delivery": "PAYLOAD", "cloudevents": False,
    "guarantee": "EXACTLY_ONCE", "spread": 1, "lifecycle": "ALL", "misfire": None,
    "look_back_ms": 86_400_000, "max_pending": 25_000, "max_requests_per_second": 200.0,
    "max_fires_per_second": 50.0, "priority": 0, "history_ms": 604_800_000, "paused": True,
    "http_targets": [], "retry_max_attempts": 5, "retry_initial_ms": None, "retry_max_ms": None,
    "retry_max_age_ms": None, "allowed_hosts": ["hooks.example.com"], "former_spreads": [],
    "removed": False, "signing_secret_ref": None, "secret_refs": [],
}  # fmt: skip


def _partition(number: int, **more: Any) -> dict[str, Any]:
    return {
        "partition": number, "state": "firing", "missing": None, "pending": 50_784 + 977 * number,
        "position": 331_207 + 11 * number, "ingest_lag_records": 0,
        "oldest_due_at": moment(NOW_MS + 2_000), "waiting_for": None, **more,
    }  # fmt: skip


LATENESS: Final = {
    "seconds": 60.0, "bounds_seconds": [0.002, 0.005, 0.01], "counts": [400, 940, 992, 1000],
}  # fmt: skip


def _worker(name: str, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "worker_id": name, "version": "1.0.0", "started_at": moment(NOW_MS - 31 * HOUR),
        "live": True, "ready": True, "problems": [], "firing_paused": False,
        "pending": sum(each["pending"] for each in partitions), "fired": 662_591,
        "clock_skew_seconds": 0.002, "partitions": partitions, "lateness": LATENESS,
    }  # fmt: skip


LATE: Final = moment(DUE_MS)
WORKERS: Final = [
    _worker("worker-a", [_partition(0), _partition(1), _partition(2), _partition(3)]),
    _worker(
        "worker-b",
        [
            _partition(4), _partition(5), _partition(7),
            _partition(6, oldest_due_at=LATE, waiting_for="tenant_blocked"),
        ],
    ),
]  # fmt: skip
MEMBERS: Final = [
    {"worker_id": "worker-a", "owns": [0, 1, 2, 3], "stands_by": [4, 5, 6, 7]},
    {"worker_id": "worker-b", "owns": [4, 5, 6, 7], "stands_by": [0, 1, 2, 3]},
]
INVOICES: Final = '{"run": "monthly", "currency": "EUR", "dunning": true}'


def _schedule(schedule_id: str, due_ms: int, **more: Any) -> dict[str, Any]:
    return {
        "tenant": "billing", "schedule_id": schedule_id, "state": "PENDING", "version": 1,
        "generation": GENERATION, "occurrence": 0, "due_at": moment(due_ms), "kind": "CRON",
        "event_type": None, "group": None, **more,
    }  # fmt: skip


PAUSED: Final = {"waiting_for": "tenant_blocked", "waiting_reason": "its policy pauses it"}
SCHEDULES: Final = [
    _schedule("dunning/daily", DUE_MS, event_type="dunning.run", **PAUSED),
    _schedule("invoices/monthly", DUE_MS + 291 * HOUR, event_type="invoices.run", group="invoices"),
    _schedule("invoices/retry-4711", NOW_MS - 4 * MINUTE, kind="AT", group="invoices", **PAUSED),
    _schedule("ledger/close", DUE_MS + 14 * HOUR, event_type="ledger.close"),
    _schedule("ledger/reopen", DUE_MS + 20 * HOUR, state="PAUSED"),
    _schedule("rates/refresh", DUE_MS + 30 * MINUTE, kind="EVERY", event_type="rates.refresh"),
    _schedule("statements/weekly", DUE_MS + 118 * HOUR, kind="RRULE", event_type="statements"),
]
ONE: Final = {
    **SCHEDULES[0], "cron": "30 9 * * *", "timezone": "UTC", "version": 3, "occurrence": 211,
    "payload_text": INVOICES, "payload_json": orjson.loads(INVOICES), "headers": [],
}  # fmt: skip


def _event(outcome: str, at_ms: int, due_ms: int | None, **more: Any) -> dict[str, Any]:
    return {
        "tenant": "billing", "schedule_id": "dunning/daily", "outcome": outcome, "version": 3,
        "at": moment(at_ms), "due_at": moment(due_ms), "reason": None, "code": None,
        "target": None, "attempt": None, "request_id": None, "fire_id": None,
        "source_topic": "belfry.schedules", "source_partition": 6, "source_offset": 90, **more,
    }  # fmt: skip


def _events() -> list[dict[str, Any]]:
    day, nine = 24 * HOUR, DUE_MS
    lates = (3, 4, 3, 5, 2, 3, 64_000, 4, 3)
    fires = [
        _event("FIRED", nine - back * day + late, nine - back * day,
               reason="its policy allows so many fires a second" if late > 1000 else None)
        for back, late in zip(range(9, 0, -1), lates, strict=True)
    ]  # fmt: skip
    changed = _event("UPDATED", nine - 5 * day + HOUR, None, reason="dunning goes to the new team")
    return sorted([*fires, changed], key=lambda each: str(each["at"]))


def _counts(start: int, until: int) -> dict[str, Any]:
    """A load with a peak at each full hour and a wave over the day."""
    counts, drained = [], []
    for minute in range(start // MINUTE * MINUTE, until, MINUTE):
        of_hour = minute // MINUTE % 60
        wave = 1 + math.sin(minute / HOUR / 24 * 2 * math.pi)
        pending = round(20 * wave + (160 if of_hour == 0 else 45 if of_hour % 15 == 0 else 4))
        shown = {"minute": moment(minute)}
        if minute > NOW_MS - MINUTE:
            counts.append({**shown, "pending": pending})
        elif NOW_MS - 2 * HOUR < minute < DUE_MS:
            # The tenant is paused from then on.
            late = 2 + minute // MINUTE * 7 % 5 + (240 if of_hour == 30 else 0)
            drained.append({**shown, "late_ms": late, "drained_at": moment(minute + MINUTE)})
    return {"counts": counts, "drained": drained, "examined": len(counts), "cursor": None}


def _hours(start: int, until: int) -> dict[str, Any]:
    found = [
        {"hour": moment(hour), "fires": 900 + hour // HOUR * 37 % 400, "within_1s": 899}
        for hour in range(start // HOUR * HOUR, min(until, NOW_MS), HOUR)
    ]
    return {"lifecycle": "ALL", "hours": found}


REJECTED: Final = {
    "at": moment(NOW_MS - 52_000), "tenant": "exports", "code": "bad_cron",
    "reason": "cron '0 25 * * *': hour 25 is not between 0 and 23.", "topic": "belfry.schedules",
    "partition": 2, "offset": 331_402, "size_bytes": 214, "key_text": "exports",
    "headers": [{"name": "traceparent", "value_text": "00-4bf92f3577b34da6a3ce929d0e0e4736-01"}],
    "request": {"tenant": "exports", "schedule_id": "nightly", "kind": "CRON",
                "cron": "0 25 * * *"},
}  # fmt: skip
LETTER: Final = {
    "id": "3-118", "tenant": "billing", "schedule_id": "invoices/retry-4702", "state": "given_up",
    "fire_id": "b7d2f04c9a1e4c55", "at": moment(NOW_MS - 40 * MINUTE), "code": "http_status",
    "fired_at": moment(NOW_MS - 55 * MINUTE), "attempt": 5, "attempts": 5,
    "reason": "The target answered 503 Service Unavailable.",
    "targets": ["https://hooks.example.com/billing"],
}  # fmt: skip
OPEN: Final = {
    **LETTER, "id": None, "schedule_id": "invoices/retry-4709", "state": "retrying", "attempt": 2,
    "code": "timeout", "reason": "The target did not answer within 10 s.",
}  # fmt: skip
SILENT_HOST: Final = {
    "host": "hooks.example.net:8443", "worker_id": "worker-a", "state": "silent", "by": None,
    "since": moment(NOW_MS - 9 * MINUTE), "tried_at": moment(NOW_MS - 20_000),
    "next_try_at": moment(NOW_MS + 40_000), "reason": "The target did not answer within 10 s.",
}  # fmt: skip


def _preview() -> dict[str, Any]:
    days = [DUE_MS + 24 * HOUR * n for n in range(1, 11)]
    shown = [
        {"occurrence": n, "scheduled_at": moment(at), "local": f"{(moment(at) or '')[:16]}"}
        for n, at in enumerate(days)
    ]
    return {"words": "Every day at 09:30.", "timezone": "UTC", "occurrences": shown, "warnings": []}


def _tenants(asked: dict[str, str]) -> dict[str, Any]:
    figures = [
        {"tenant": name, "has_policy": name != "trials", "pending": pending, "fired": fired,
         "rejected": rejected, "late_seconds": late, "wait": wait}
        for name, (pending, fired, rejected, late, wait) in TENANTS.items()
        if wait or "waiting" not in asked
    ]  # fmt: skip
    return {"tenants": list(TENANTS), "figures": figures, "cursor": None, "silent": [],
            "remembered": []}  # fmt: skip


def _answers(path: str, asked: dict[str, str]) -> Any:
    tenant = "/v1/tenants/billing"
    span = [int(asked.get(name, NOW_MS)) for name in ("due_from", "due_until")]
    hours = [int(asked.get(name, NOW_MS)) for name in ("from", "until")]
    found: dict[str, Any] = {
        "/v1/me": {"name": "you", "role": "operate", "tenants": ["*"]},
        "/v1/cluster": {"app_id": "belfry", "kafka_cluster_id": "x", "members": MEMBERS,
                        "standbys": [{"partition": n, "warm": True, "lag_records": 0,
                                      "problem": None} for n in range(4, 8)],
                        "workers": WORKERS, "silent": [], "remembered": []},
        "/v1/tenants": _tenants(asked),
        tenant: POLICY,
        f"{tenant}/schedules": {"schedules": SCHEDULES, "examined": 7, "cursor": None},
        f"{tenant}/schedules/dunning/daily": ONE,
        f"{tenant}/schedules/dunning/daily/history": {"events": _events(), "cursor": None},
        f"{tenant}/locks": {"locks": []},
        f"{tenant}/jobs": {"jobs": []},
        f"{tenant}/dead-letters": {"deliveries": [LETTER], "examined": 61, "cursor": None},
        f"{tenant}/deliveries": {"deliveries": [OPEN], "examined": 61},
        "/v1/delivery-hosts": {"hosts": [SILENT_HOST], "workers": ["worker-a"], "silent": [],
                               "remembered": []},
        "/v1/rejections": {"rejections": [REJECTED], "examined": 25, "cursor": None},
        "/v1/preview": _preview(),
    }  # fmt: skip
    if path.endswith("/counts"):
        return _counts(*span) if "due_from" in asked else _counts(NOW_MS, NOW_MS + 12 * HOUR)
    if path.endswith("/statistics"):
        return _hours(*hours)
    return found[path]


async def _answer(request: Request) -> Response:
    path = request.url.path
    told = _answers(path, dict(request.query_params))
    return Response(orjson.dumps(told), 200, {"etag": '"1.3"'})


def pictured_api() -> Starlette:
    """An application that answers what the console asks."""
    return Starlette(routes=[Route("/{path:path}", _answer, methods=["GET", "POST"])])
