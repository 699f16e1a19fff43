"""The API as the console's tests have it: it answers with hostile values."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import orjson
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from belfry.console import ASSETS
from belfry.console.routes import console_routes

BASE: Final = "http://127.0.0.1:8700"
FORM: Final = {"origin": BASE, "hx-request": "true"}
SHOWN: Final = "/console/schedule?tenant=t&id=a%2Fb"
HOSTILE: Final = "<img src=x onerror=alert(1)>\"'{{7*7}}</pre><script>alert(2)</script>"
VENDOR: Final = ASSETS / "vendor"
VIEWS: Final = (
    "/", "/console/schedules?tenant=t", "/console/schedule?tenant=t&id=a",
    "/console/timeline?tenant=t", "/console/create", "/console/tenants?tenant=t",
    "/console/policy?tenant=t", "/console/versions?tenant=t&id=a", "/console/timeline?by=day",
    "/console/calendars?tenant=t&calendar=de",
    "/console/cluster", "/console/rejections", "/console/rejections?tenant=t",
    "/console/deliveries?tenant=t", "/console/edit?tenant=t&id=a",
    f"/console/bulk?tenant=t&group={quote(HOSTILE)}", "/console/job?tenant=t&job=j",
    f"/console/bulk?tenant=t&action=CANCEL&group={quote(HOSTILE)}",
    f"/console/redrive?tenant=t&what=fires&range_from=1&prefix={quote(HOSTILE)}",
)  # fmt: skip
SCHEDULE: Final[dict[str, Any]] = {
    "tenant": "t", "schedule_id": HOSTILE, "state": "PENDING", "version": 3, "generation": 7,
    "occurrence": 0, "due_at": "2040-01-01T09:00:00.000Z", "kind": "CRON", "cron": "0 9 * * *",
    "timezone": "Europe/Paris", "event_type": HOSTILE, "group": HOSTILE,
    "payload_text": HOSTILE, "waiting_reason": HOSTILE,
    "http_targets": [{"url": "https://a.example/x?token=hunter2", "headers": []}],
}  # fmt: skip
CALENDARS: Final = [
    {"tenant": "t", "calendar": "de", "days": ["2040-12-24", "2040-12-25"],
     "weekend": ["SAT", "SUN"], "source": HOSTILE, "following": True, "moved": 3,
     "changed_at": "2030-01-01T09:00:00.000Z"},
    {"tenant": "t", "calendar": HOSTILE, "days": [], "weekend": [], "source": "",
     "following": False, "moved": 0, "changed_at": "2030-01-01T09:00:00.000Z"},
]  # fmt: skip
FIRED: Final = {
    "outcome": "FIRED", "due_at": "2030-01-01T09:00:00.000Z", "at": "2030-01-01T09:00:01.500Z",
    "reason": HOSTILE, "code": None, "target": HOSTILE, "attempt": 2,
}  # fmt: skip
UPDATED: Final = {
    **FIRED, "outcome": "UPDATED", "version": 4, "source_topic": "s", "source_partition": 1,
    "source_offset": 8,
}  # fmt: skip
ACCEPTED: Final = {**UPDATED, "outcome": "ACCEPTED", "version": 3, "source_offset": 7}
WORKER: Final[dict[str, Any]] = {
    "worker_id": HOSTILE, "version": "1", "started_at": "2030-01-01T09:00:00.000Z", "live": True,
    "ready": False, "problems": [HOSTILE], "pending": 5, "fired": 9, "firing_paused": False,
    "lateness": {"seconds": 61.5, "bounds_seconds": [0.001, 0.01], "counts": [50, 99, 100]},
    "clock_skew_seconds": 0.0, "partitions": [{
        "partition": 0, "state": "firing", "missing": HOSTILE, "pending": 5, "position": 1,
        "ingest_lag_records": 0, "oldest_due_at": "2020-01-01T09:00:00.000Z",
        "waiting_for": "tenant_blocked"}],
    "take_overs": [
        {"partition": 3, "at": "2030-01-01T09:00:00.000Z", "took_seconds": 0.25, "former": HOSTILE,
         "cause": "owner_silent", "warm": True, "records": 12},
        {"partition": 4, "at": "2030-01-01T09:00:01.000Z", "took_seconds": 2.0, "former": None,
         "cause": HOSTILE, "warm": False, "records": None}],
}  # fmt: skip


WAIT = {
    "tenant": HOSTILE, "waiting_for": "tenant_blocked", "cause": HOSTILE, "reason": HOSTILE,
    "since": "2030-01-01T09:00:00.000Z", "waiting": 3, "oldest_due_at": "2030-01-01T09:00:00.000Z",
}  # fmt: skip
TENANT = {
    "tenant": HOSTILE, "has_policy": True, "pending": 7, "fired": 5,
    "rejected": 1, "late_seconds": 0.5, "wait": WAIT,
}  # fmt: skip


REJECTED = {
    "at": FIRED["at"], "tenant": HOSTILE, "code": "bad_cron", "reason": HOSTILE, "topic": HOSTILE,
    "partition": 1, "offset": 7, "size_bytes": 5, "key_text": HOSTILE, "sample_text": HOSTILE,
    "headers": [{"name": HOSTILE, "value_text": HOSTILE}], "request": None,
}  # fmt: skip
LATE = [{"worker_id": "late", "at": FIRED["at"]}]
LETTER = {
    "id": "0-7", "tenant": "t", "schedule_id": HOSTILE, "fire_id": "f" * 32, "at": FIRED["at"],
    "fired_at": FIRED["at"], "state": "given_up", "code": "http_status", "reason": HOSTILE,
    "attempt": 3, "attempts": 3, "targets": [HOSTILE],
}  # fmt: skip
JOB = {
    "tenant": "t", "job": "j", "state": "RUNNING", "action": "MOVE", "filter": {"group": HOSTILE},
    "move_ms": -5_000, "per_second": 500, "reason": HOSTILE, "begun_at": FIRED["at"],
    "ended_at": None, "partitions": 4, "ended_partitions": 1, "examined": 9, "matched": 6,
    "done": 3, "unchanged": 2, "refused": 1, "fired": 0, "refusals": {HOSTILE: 1},
    "range_from": None, "range_until": None,
}  # fmt: skip


REDRIVEN: Final[dict[str, Any]] = {
    "what": "rejected", "range_from": FIRED["at"], "range_until": FIRED["at"], "found": 3,
    "by": {HOSTILE: 3}, "kinds": 1, "sent": 2, "left": 1, "redriven": 4, "stuck": {"cut": 5},
}  # fmt: skip


class FakeApi:
    """Answers the API's routes with hostile values, and keeps what it is asked."""

    def __init__(self) -> None:
        self.role = "operate"
        self.tenants = ["*"]
        self.verdict = 200
        self.refused = ""
        self.schedule: dict[str, Any] = SCHEDULE
        self.job: dict[str, Any] = JOB
        self.redriven: dict[str, Any] = REDRIVEN
        self.listed: list[dict[str, Any]] = [SCHEDULE]
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.queries: list[dict[str, str]] = []
        self.app = Starlette(
            routes=[Route("/{path:path}", self.answer, methods=["GET", "POST", "PUT", "DELETE"])]
        )

    async def answer(self, request: Request) -> Response:
        body = await request.body()
        told = orjson.loads(body) if body else dict(request.query_params)
        path = request.url.path
        self.asked.append((request.method, path, dict(request.headers), told))
        self.queries.append(dict(request.query_params))
        if request.method == self.refused:
            return Response(orjson.dumps({"outcome": "CONFLICT"}), 412)
        if request.method == "POST" and path.endswith("/jobs"):
            return Response(orjson.dumps(self.job_answer(request)), 201)
        if path.endswith("/redrives"):
            return Response(orjson.dumps(self.redriven), self.verdict)
        if path.endswith(("/break", "/close")):
            return Response(orjson.dumps({"hosts": [], "workers": ["w"], "silent": []}))
        if path.endswith("/pause"):
            return Response(orjson.dumps({"outcome": "PAUSED"}), self.verdict)
        status = self.verdict if request.method != "GET" and path != "/v1/preview" else 200
        return Response(orjson.dumps(self.found(path)), status, {"etag": '"7.3"'})

    def job_answer(self, request: Request) -> Any:
        """What a count tells on each of two pages, or the verdict on a job."""
        if "dry" not in request.query_params:
            return {"outcome": "ACCEPTED", "schedule_id": "j"}
        more = None if "cursor" in request.query_params else "more"
        return {"matched": 2, "sample": [HOSTILE], "examined": 9, "cursor": more}

    def found(self, path: str) -> Any:
        if path.endswith(("/counts", "/statistics")):
            path = f"/v1/tenants/t/{path.rpartition('/')[2]}"
        ends: dict[str, Any] = {
            "/v1/me": {"name": "n", "role": self.role, "tenants": self.tenants},
            "/v1/cluster": {
                "app_id": HOSTILE, "members": [
                    {"worker_id": HOSTILE, "owns": [0], "stands_by": [1]}], "standbys": [],
                "workers": [WORKER], "silent": [HOSTILE, "late"], "remembered": LATE},
            "/v1/tenants": {"tenants": [HOSTILE], "figures": [TENANT], "cursor": None,
                            "silent": [HOSTILE, "late"], "remembered": LATE},
            "/v1/tenants/t": {"tenant": "t", "paused": True, "output_topic": HOSTILE,
                              "max_pending": 10, "max_fires_per_second": 2.5,
                              "max_requests_per_second": None,
                              "http_targets": [{"url": "https://hunter2.example"}]},
            "/v1/tenants/t/schedules": {"schedules": self.listed, "examined": 1, "cursor": "more"},
            "/v1/tenants/t/counts": {
                "counts": [{"minute": "2030-01-01T09:00:00.000Z", "pending": 4}],
                "drained": [{"minute": "2030-01-01T08:59:00.000Z", "late_ms": 7,
                             "drained_at": "2030-01-01T08:59:59.007Z"}],
                "examined": 1, "cursor": None},
            "/v1/tenants/t/jobs": {"jobs": [JOB]},
            "/v1/tenants/t/jobs/j": self.job,
            "/v1/tenants/t/statistics": {"lifecycle": "ALL", "hours": [
                {"hour": "2030-01-01T08:00:00.000Z", "fires": 9, "within_1s": 8}]},
            "/v1/tenants/t/calendars": {"calendars": CALENDARS},
            "/v1/tenants/t/requests/1-7": {"schedule_id": "a", "request": {
                "cron": "0 9 * * *", "payload_text": "before"}},
            "/v1/tenants/t/requests/1-8": {"schedule_id": "a", "request": {
                "cron": "0 9 * * *", "payload_text": HOSTILE}},
            "/v1/decode": {"avro_schema": HOSTILE, "value": {"a": HOSTILE}},
            "/v1/rejections": {"rejections": [REJECTED, {**REJECTED, "request": {"a": HOSTILE}}],
                               "examined": 9, "cursor": "more"},
            "/v1/tenants/t/rejections": {"rejections": [REJECTED], "examined": 9, "cursor": None},
            "/v1/tenants/t/dead-letters": {
                "deliveries": [LETTER], "examined": 9, "cursor": "more"},
            "/v1/tenants/t/deliveries": {
                "deliveries": [{**LETTER, "id": None, "state": "retrying"}], "examined": 9},
            "/v1/delivery-hosts": {
                "hosts": [
                    {"host": HOSTILE, "worker_id": HOSTILE, "state": "silent", "by": None,
                     "since": FIRED["at"], "tried_at": FIRED["at"], "next_try_at": None,
                     "reason": HOSTILE},
                    {"host": "h:1", "worker_id": "w", "state": "broken", "by": HOSTILE,
                     "since": FIRED["at"], "tried_at": None, "next_try_at": FIRED["at"],
                     "reason": None}],
                "workers": ["w"], "silent": [HOSTILE, "late"], "remembered": LATE},
            "/v1/tenants/t/locks": {"locks": [
                {"schedule_id": "a", "fire_id": "f" * 32, "expires_at": FIRED["at"]}]},
            "/v1/preview": {"words": HOSTILE, "timezone": "UTC", "occurrences": [
                {"occurrence": 0, "scheduled_at": FIRED["at"], "local": HOSTILE}],
                "warnings": [{"code": "c", "text": HOSTILE}]},
        }  # fmt: skip
        if path.endswith("/history"):
            return {"events": [FIRED, UPDATED, ACCEPTED], "cursor": None}
        return ends.get(path, self.schedule if self.verdict == 200 else {"outcome": "CONFLICT"})


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def client(api: FakeApi) -> TestClient:
    pages = FastAPI()
    pages.include_router(console_routes(api.app, is_open=True))
    return TestClient(pages, BASE, raise_server_exceptions=False)
