"""The console: what is text stays text, who may do what, where forms come from, what it weighs."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate, Role
from belfry.api.auth.keys import ApiKeys, digest, new_key
from belfry.api.routes.app import create_app
from belfry.api.workers.parts import ApiDependencies
from belfry.console import ASSETS, TEMPLATES
from belfry.console.routes import console_routes
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker

BASE: Final = "http://127.0.0.1:8700"
FORM: Final = {"origin": BASE, "hx-request": "true"}
SHOWN: Final = "/console/schedule?tenant=t&id=a%2Fb"
HOSTILE: Final = "<img src=x onerror=alert(1)>\"'{{7*7}}</pre><script>alert(2)</script>"
VENDOR: Final = ASSETS / "vendor"
VIEWS: Final = (
    "/", "/console/schedules?tenant=t", "/console/schedule?tenant=t&id=a",
    "/console/timeline?tenant=t", "/console/create", "/console/tenants?tenant=t",
    "/console/cluster", "/console/rejections", "/console/rejections?tenant=t",
    "/console/deliveries?tenant=t", "/console/edit?tenant=t&id=a",
    f"/console/bulk?tenant=t&group={quote(HOSTILE)}",
)  # fmt: skip
SCHEDULE: Final[dict[str, Any]] = {
    "tenant": "t", "schedule_id": HOSTILE, "state": "PENDING", "version": 3, "generation": 7,
    "occurrence": 0, "due_at": "2040-01-01T09:00:00.000Z", "kind": "CRON", "cron": "0 9 * * *",
    "timezone": "Europe/Paris", "event_type": HOSTILE, "group": HOSTILE,
    "payload_text": HOSTILE, "waiting_reason": HOSTILE,
    "http_targets": [{"url": "https://a.example/x?token=hunter2", "headers": []}],
}  # fmt: skip
FIRED: Final = {
    "outcome": "FIRED", "due_at": "2030-01-01T09:00:00.000Z", "at": "2030-01-01T09:00:01.500Z",
    "reason": HOSTILE, "code": None, "target": HOSTILE, "attempt": 2,
}  # fmt: skip
WORKER: Final[dict[str, Any]] = {
    "worker_id": HOSTILE, "version": "1", "started_at": "2030-01-01T09:00:00.000Z", "live": True,
    "ready": False, "problems": [HOSTILE], "pending": 5, "fired": 9, "firing_paused": False,
    "clock_skew_seconds": 0.0, "partitions": [{
        "partition": 0, "state": "firing", "missing": HOSTILE, "pending": 5, "position": 1,
        "ingest_lag_records": 0, "oldest_due_at": "2020-01-01T09:00:00.000Z",
        "waiting_for": "tenant_blocked"}],
}  # fmt: skip


WAIT = {
    "tenant": HOSTILE, "cause": HOSTILE, "reason": HOSTILE, "since": "2030-01-01T09:00:00.000Z",
    "waiting": 3, "oldest_due_at": "2030-01-01T09:00:00.000Z",
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
LETTER = {
    "id": "0-7", "tenant": "t", "schedule_id": HOSTILE, "fire_id": "f" * 32, "at": FIRED["at"],
    "fired_at": FIRED["at"], "state": "given_up", "code": "http_status", "reason": HOSTILE,
    "attempt": 3, "attempts": 3, "targets": [HOSTILE],
}  # fmt: skip


class FakeApi:
    """Answers the API's routes with hostile values, and keeps what it is asked."""

    def __init__(self) -> None:
        self.role = "operate"
        self.verdict = 200
        self.refused = ""
        self.schedule: dict[str, Any] = SCHEDULE
        self.listed: list[dict[str, Any]] = [SCHEDULE]
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.app = Starlette(
            routes=[Route("/{path:path}", self.answer, methods=["GET", "POST", "PUT", "DELETE"])]
        )

    async def answer(self, request: Request) -> Response:
        body = await request.body()
        told = orjson.loads(body) if body else dict(request.query_params)
        path = request.url.path
        self.asked.append((request.method, path, dict(request.headers), told))
        if path == "/metrics":
            rows = ((0.001, 50), (0.01, 99), ("+Inf", 100))
            lines = [f'belfry_fire_lateness_seconds_bucket{{le="{b}"}} {n}' for b, n in rows]
            return Response("# TYPE belfry_fire_lateness_seconds histogram\n" + "\n".join(lines))
        if request.method == self.refused:
            return Response(orjson.dumps({"outcome": "CONFLICT"}), 412)
        if path.endswith("/pause"):
            return Response(orjson.dumps({"outcome": "PAUSED"}), self.verdict)
        status = self.verdict if request.method != "GET" and path != "/v1/preview" else 200
        return Response(orjson.dumps(self.found(path)), status, {"etag": '"7.3"'})

    def found(self, path: str) -> Any:
        ends: dict[str, Any] = {
            "/v1/me": {"name": "n", "role": self.role, "tenants": ["*"]},
            "/v1/cluster": {
                "app_id": HOSTILE, "members": [{"stands_by": [1]}], "standbys": [],
                "workers": [WORKER], "silent": [HOSTILE]},
            "/v1/tenants": {"tenants": [HOSTILE], "figures": [TENANT], "cursor": None,
                            "silent": [HOSTILE]},
            "/v1/tenants/t": {"tenant": "t", "paused": True, "output_topic": HOSTILE,
                              "http_targets": [{"url": "https://hunter2.example"}]},
            "/v1/tenants/t/schedules": {"schedules": self.listed, "examined": 1, "cursor": "more"},
            "/v1/tenants/t/counts": {
                "counts": [{"minute": "2030-01-01T09:00:00.000Z", "pending": 4}],
                "drained": [{"minute": "2030-01-01T08:59:00.000Z", "late_ms": 7,
                             "drained_at": "2030-01-01T08:59:59.007Z"}],
                "examined": 1, "cursor": None},
            "/v1/tenants/t/statistics": {"lifecycle": "ALL"},
            "/v1/rejections": {"rejections": [REJECTED, {**REJECTED, "request": {"a": HOSTILE}}],
                               "examined": 9, "cursor": "more"},
            "/v1/tenants/t/rejections": {"rejections": [REJECTED], "examined": 9, "cursor": None},
            "/v1/tenants/t/dead-letters": {
                "deliveries": [LETTER], "examined": 9, "cursor": "more"},
            "/v1/tenants/t/deliveries": {
                "deliveries": [{**LETTER, "id": None, "state": "retrying"}], "examined": 9},
            "/v1/tenants/t/locks": {"locks": [
                {"schedule_id": "a", "fire_id": "f" * 32, "expires_at": FIRED["at"]}]},
            "/v1/preview": {"words": HOSTILE, "timezone": "UTC", "occurrences": [
                {"occurrence": 0, "scheduled_at": FIRED["at"], "local": HOSTILE}],
                "warnings": [{"code": "c", "text": HOSTILE}]},
        }  # fmt: skip
        if path.endswith("/history"):
            return {"events": [FIRED], "cursor": None}
        return ends.get(path, self.schedule if self.verdict == 200 else {"outcome": "CONFLICT"})


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def client(api: FakeApi) -> TestClient:
    pages = FastAPI()
    pages.include_router(console_routes(api.app, is_open=True))
    return TestClient(pages, BASE, raise_server_exceptions=False)


@pytest.mark.parametrize("path", VIEWS)
def test_what_comes_from_elsewhere_is_text(client: TestClient, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 200
    for tag in ("<img", "<script>", "</pre><s"):
        assert tag not in page.text
    assert "49" not in re.sub(r"[^{}0-9]", " ", page.text).split()


@pytest.mark.parametrize("path", [path for path in VIEWS if path != "/console/create"])
def test_hostile_names_are_shown_as_they_are(client: TestClient, path: str) -> None:
    shown = client.get(path).text.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")
    assert escape(HOSTILE) in shown or "timeline" in path


@pytest.mark.parametrize("path", VIEWS)
def test_no_page_holds_code_or_style(client: TestClient, path: str) -> None:
    page = client.get(path)
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", '""', page.text)
    assert not re.search(r"<script(?![^>]*src=)|<style|<[^>]+\s(style|on[a-z]+)=", bare)
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-frame-options"] == "DENY"


def test_credentials_of_targets_are_not_shown(client: TestClient) -> None:
    assert "a.example" in client.get("/console/schedule?tenant=t&id=a").text
    assert all("hunter2" not in client.get(path).text for path in VIEWS)


def test_a_viewer_sees_no_action(client: TestClient, api: FakeApi) -> None:
    schedule = "/console/schedule?tenant=t&id=a"
    assert 'action="/console/act"' in client.get(schedule).text
    api.role = "read"
    assert 'method="post"' not in "".join(client.get(path).text for path in VIEWS)
    assert "hx-post" not in client.get("/console/create").text


@pytest.mark.parametrize(
    ("action", "method", "ending"),
    [
        ("pause", "POST", "/pause"),
        ("resume", "POST", "/resume"),
        ("trigger", "POST", "/trigger"),
        ("cancel", "DELETE", ""),
    ],
)
def test_actions_name_the_version_that_was_seen(
    client: TestClient, api: FakeApi, action: str, method: str, ending: str
) -> None:
    fields = {"tenant": "t", "id": "a/b", "action": action, "etag": '"7.3"', "reason": "why"}
    answer = client.post("/console/act", data=fields, headers=FORM)
    assert answer.status_code == 204
    place = json.loads(answer.headers["hx-location"])
    assert place["path"] == ("/console/schedules?tenant=t" if action == "cancel" else SHOWN)
    sent_method, path, headers, told = api.asked[-1]
    assert (sent_method, path) == (method, f"/v1/tenants/t/schedules/a/b{ending}")
    assert headers["if-match"] == '"7.3"'
    assert told == {"reason": "why"}


def test_an_action_without_a_version_is_refused(client: TestClient, api: FakeApi) -> None:
    fields = {"tenant": "t", "id": "a", "action": "pause"}
    assert client.post("/console/act", data=fields, headers=FORM).status_code == 422
    assert not api.asked


def test_who_was_too_slow_is_told(client: TestClient, api: FakeApi) -> None:
    api.verdict = 412
    fields = {"tenant": "t", "id": "a", "action": "pause", "etag": '"1.1"'}
    answer = client.post("/console/act", data=fields, headers=FORM)
    assert answer.status_code == 412
    assert "Somebody else was quicker" in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": BASE},
        {"hx-request": "true"},
        {"origin": "http://evil.example", "hx-request": "true"},
        {"origin": "null", "hx-request": "true"},
        {"origin": "http://127.0.0.1:8701", "hx-request": "true"},
    ],
)
@pytest.mark.parametrize("path", ["act", "create", "preview", "first", "replay", "edit", "bulk"])
def test_forms_of_other_pages_are_refused(
    client: TestClient, api: FakeApi, path: str, headers: dict[str, str]
) -> None:
    fields = {"tenant": "t", "id": "a", "action": "pause", "etag": '"1.1"', "kind": "at"}
    answer = client.post(f"/console/{path}", data=fields, headers=headers)
    assert answer.status_code == 403
    assert not api.asked


def test_a_dead_letter_is_delivered_again_by_its_place(client: TestClient, api: FakeApi) -> None:
    answer = client.post("/console/replay", data={"tenant": "t", "id": "0-7"}, headers=FORM)
    assert answer.status_code == 204
    assert "replayed=0-7" in json.loads(answer.headers["hx-location"])["path"]
    assert api.asked[-1][:2] == ("POST", "/v1/tenants/t/dead-letters/0-7/replay")


def test_rejections_and_dead_letters_go_further_back(client: TestClient, api: FakeApi) -> None:
    for path, asked in (("rejections", "/v1/rejections"), ("deliveries?tenant=t", "dead-letters")):
        page = client.get(f"/console/{path}").text
        older = re.search(r'href="([^"]+)" rel="next"', page)
        assert older is not None
        assert "cursor=more" in older[1]
        client.get(older[1].replace("&amp;", "&"))
        told = [told for _, path, _, told in api.asked if path.endswith(asked)]
        assert [each.get("cursor") for each in told] == [None, "more"]


EDITED: Final = {
    "tenant": "t", "id": "a/b", "etag": '"7.3"', "kind": "keep", "timezone": "Europe/Paris",
    "event_type": "e", "reason": "why",
}  # fmt: skip


def edited(client: TestClient, api: FakeApi, **fields: str) -> tuple[dict[str, Any], str]:
    """The definition that saving a form asks for, and its `If-Match`."""
    answer = client.post("/console/edit", data={**EDITED, **fields}, headers=FORM)
    assert answer.status_code == 204, answer.text
    assert json.loads(answer.headers["hx-location"])["path"] == SHOWN
    method, path, headers, body = api.asked[-1]
    assert (method, path) == ("PUT", "/v1/tenants/t/schedules/a/b")
    return body, headers["if-match"]


def test_an_edit_changes_what_the_form_says_and_keeps_the_rest(
    client: TestClient, api: FakeApi
) -> None:
    body, match = edited(client, api, payload=HOSTILE)
    assert match == '"7.3"'
    assert body == {
        "cron": "0 9 * * *", "timezone": "Europe/Paris", "event_type": "e", "reason": "why",
        "payload_text": HOSTILE, "http_targets": SCHEDULE["http_targets"],
    }  # fmt: skip
    body, _ = edited(client, api, kind="interval_ms", when="5000", group="g", payload='{"a":1}')
    assert (body["interval_ms"], body["group"], body["payload_text"]) == (5000, "g", '{"a":1}')
    assert "cron" not in body


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        ({"payload_text": "a\nb"}, "a\r\nb", {"payload_text": "a\nb"}),
        ({"payload_text": "a\r\nb"}, "a\r\nb", {"payload_text": "a\r\nb"}),
        ({"payload_text": "a"}, "c\r\nd", {"payload_text": "c\nd"}),
        ({"payload_text": "a"}, "", {}),
        ({"payload_base64": "/w=="}, "", {"payload_base64": "/w=="}),
        ({"payload_text": "x" * 70_000}, "", {"payload_text": "x" * 70_000}),
    ],
)
def test_a_payload_that_nobody_touched_stays_as_it_was(
    client: TestClient, api: FakeApi, before: Any, given: str, after: Any
) -> None:
    api.schedule = {k: v for k, v in SCHEDULE.items() if k != "payload_text"} | before
    body, _ = edited(client, api, payload=given)
    assert {name: body[name] for name in body if name.startswith("payload")} == after


def test_an_edit_that_came_too_late_is_told(client: TestClient, api: FakeApi) -> None:
    api.refused = "PUT"
    answer = client.post("/console/edit", data=EDITED, headers=FORM)
    assert answer.status_code == 412
    assert "Somebody else was quicker" in answer.text
    api.asked.clear()
    without = {name: value for name, value in EDITED.items() if name != "etag"}
    assert client.post("/console/edit", data=without, headers=FORM).status_code == 422
    assert not api.asked


def test_a_new_rule_is_previewed_before_it_is_saved(client: TestClient, api: FakeApi) -> None:
    page = client.post("/console/edit-preview", data=EDITED, headers=FORM)
    assert "&lt;img src=x" in page.text
    method, path, _, body = api.asked[-1]
    assert (method, path) == ("POST", "/v1/preview")
    assert body == {"cron": "0 9 * * *", "timezone": "Europe/Paris"}


BULK: Final = {"tenant": "t", "group": "g", "action": "pause", "found_pause": "3", "reason": "why"}


def test_what_is_counted_is_what_an_action_is_for(client: TestClient, api: FakeApi) -> None:
    api.listed = [
        {**SCHEDULE, "state": state} for state in ("PENDING", "PENDING", "PAUSED", "FIRED")
    ]
    page = client.get("/console/bulk?tenant=t&group=g").text
    found = dict(re.findall(r'name="found_(\w+)" value="(\d+)"', page))
    # The list of the fake never ends; it is read so often and no more.
    assert found == {"pause": "40", "resume": "20", "cancel": "60"}
    assert "There are more than could be counted" in page
    asked = [told for _, path, _, told in api.asked if path.endswith("/schedules")]
    assert len(asked) == 20
    assert {(each["group"], each["limit"]) for each in asked} == {("g", "1000")}


def test_each_schedule_of_a_page_has_an_outcome(client: TestClient, api: FakeApi) -> None:
    states = ("PENDING", "PAUSED", "PENDING", "PENDING", "PENDING")
    api.listed = [
        {**SCHEDULE, "schedule_id": f"s{n}", "state": state} for n, state in enumerate(states)
    ]
    page = client.post("/console/bulk", data={**BULK, "confirmed": "3"}, headers=FORM).text
    asked = [each for each in api.asked if each[0] == "POST"]
    # No more than were confirmed, and only those in the state that the action is for.
    assert {path for _, path, _, _ in asked} == {
        f"/v1/tenants/t/schedules/s{n}/pause" for n in (0, 2, 3)
    }
    assert {headers["if-match"] for _, _, headers, _ in asked} == {'"7.3"'}
    assert [told for *_, told in asked] == 3 * [{"reason": "why"}]
    assert page.count("<td>PAUSED</td>") == 3
    assert "This is the end." in page
    assert 'hx-trigger="load"' not in page


def test_a_page_leads_to_the_next_and_carries_what_became(client: TestClient, api: FakeApi) -> None:
    api.listed = [{**SCHEDULE, "schedule_id": "s"}]
    api.refused = "POST"
    page = client.post("/console/bulk", data={**BULK, "confirmed": "3"}, headers=FORM).text
    carried = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))
    assert carried["cursor"] == "more"
    assert json.loads(carried.pop("done").replace("&#34;", '"')) == {"CONFLICT": 1}
    assert carried == {**BULK, "confirmed": "3", "cursor": "more"}
    client.post("/console/bulk", data={**carried, "done": '{"CONFLICT":1}'}, headers=FORM)
    told = [told for _, path, _, told in api.asked if path == "/v1/tenants/t/schedules"]
    assert [each.get("cursor") for each in told] == [None, "more"]
    assert [each["limit"] for each in told] == ["3", "2"]


@pytest.mark.parametrize("confirmed", ["", "2", "4", "x", "-3"])
def test_nothing_is_done_that_was_not_confirmed(
    client: TestClient, api: FakeApi, confirmed: str
) -> None:
    answer = client.post("/console/bulk", data={**BULK, "confirmed": confirmed}, headers=FORM)
    assert answer.status_code == 422
    assert not api.asked


def test_filters_go_to_the_api_and_stay_in_the_address(client: TestClient, api: FakeApi) -> None:
    asked = "tenant=t&prefix=a%2F&state=PAUSED&group=g&event_type=e&due_from=2030-01-01T09:00"
    page = client.get(f"/console/schedules?{asked}")
    told = next(told for _, path, _, told in api.asked if path.endswith("/schedules"))
    assert told["due_from"] == "2030-01-01T09:00:00Z"
    assert (told["prefix"], told["state"], told["group"]) == ("a/", "PAUSED", "g")
    following = re.search(r'href="([^"]+)" rel="next"', page.text)
    assert following is not None
    assert "prefix=a%2F" in following[1]
    assert "cursor=more" in following[1]


def test_lateness_is_shown_with_the_cause(client: TestClient) -> None:
    page = client.get("/console/schedule?tenant=t&id=a")
    assert "<td>1.5 s</td>" in page.text
    overview = client.get("/").text
    assert "≤ 1 ms" in overview
    assert "≤ 10 ms" in overview


def test_fires_a_second_come_from_two_looks(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belfry.console.overview.time", lambda: 1010.0)
    assert "<dd>0.5</dd>" in client.get("/?fired=4&at=1000000").text
    assert "<dt>Fires a second</dt><dd>–</dd>" in client.get("/?fired=x&at=1").text


# ------------------------------------------------------------------ with the API's own gate


def with_key(role: str, tenants: list[str]) -> tuple[TestClient, dict[str, str]]:
    """A client of the whole application, and a header with a key of this role."""
    key = new_key()
    entry = {"name": "n", "sha256": digest(key), "tenants": tenants, "role": role}
    keys = ApiKeys(json.dumps([entry]), None, lambda: 0.0)
    parts = ApiDependencies(Gate([keys]), (), lambda: 0.0)
    app = create_app(FakeWorker(), Metrics(CollectorRegistry()), parts=parts)
    client = TestClient(app, BASE, raise_server_exceptions=False)
    return client, {"authorization": f"Bearer {key}"}


@pytest.fixture
def guarded() -> Callable[[str], tuple[TestClient, dict[str, str]]]:
    return lambda role: with_key(role, ["mine"])


Guarded = Callable[[str], tuple[TestClient, dict[str, str]]]


@pytest.mark.parametrize("path", VIEWS)
def test_without_a_key_there_is_only_the_form_for_one(guarded: Guarded, path: str) -> None:
    client, _ = guarded("read")
    page = client.get(path)
    assert page.status_code == 200
    assert 'id="key-form"' in page.text
    wrong = client.get(path, headers={"authorization": f"Bearer {new_key()}"})
    assert wrong.status_code == 401
    assert 'id="key-form"' in wrong.text


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("path", [path for path in VIEWS if "tenant=t" in path])
def test_a_key_of_another_tenant_is_refused(guarded: Guarded, role: Role, path: str) -> None:
    client, key = guarded(role)
    answer = client.get(path, headers=key)
    assert answer.status_code == 403
    assert "is not bound to tenant" in answer.text


@pytest.mark.parametrize("role", list(Role))
def test_each_route_takes_the_role_that_the_api_asks_for(guarded: Guarded, role: Role) -> None:
    client, key = guarded(role)
    act = {"tenant": "mine", "id": "a", "action": "pause", "etag": '"1.1"'}
    again = {"tenant": "mine", "id": "0-7"}
    make = {"tenant": "mine", "id": "a", "kind": "at", "when": "2040-01-01T09:00:00Z"}
    # The worker has not reached Kafka, which is what a caller who may act is told.
    expected = 403 if role is Role.READ else 503
    for path, fields in (("act", act), ("create", make), ("replay", again)):
        answer = client.post(f"/console/{path}", data=fields, headers=FORM | key)
        assert answer.status_code == expected, answer.text
    assert client.post("/console/preview", data=make, headers=FORM | key).status_code == 200
    assert client.get("/console/cluster", headers=key).status_code == 200


@pytest.mark.parametrize("role", list(Role))
def test_a_first_schedule_takes_the_role_schedule_for_its_tenant(role: Role) -> None:
    for tenants, expected in ((["mine"], 403), (["demo"], 403 if role is Role.READ else 503)):
        client, key = with_key(role, tenants)
        answer = client.post("/console/first", data={"a": "b"}, headers=FORM | key)
        assert answer.status_code == expected, answer.text
        why = "is not bound to tenant" if tenants == ["mine"] and role is not Role.READ else "role"
        assert expected == 503 or why in answer.text


def test_me_tells_the_role(guarded: Guarded) -> None:
    client, key = guarded("read")
    told = client.get("/v1/me", headers=key).json()
    assert told == {"name": "n", "role": "read", "tenants": ["mine"]}
    assert client.get("/v1/me").status_code == 401


# ------------------------------------------------------------------ files


def test_files_of_others_are_what_they_were() -> None:
    lines = [line.split() for line in (VENDOR / "SHA256SUMS").read_text().splitlines()]
    listed = {name: sha256 for sha256, name in lines}
    assert listed.keys() == {each.name for each in VENDOR.iterdir()} - {"SHA256SUMS"}
    for name, sha256 in listed.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == sha256, name
    assert {"htmx.LICENSE", "uPlot.LICENSE"} <= listed.keys()


def test_the_page_weighs_little(client: TestClient) -> None:
    files = [each for each in ASSETS.rglob("*.*") if each.suffix in (".js", ".css", ".svg")]
    weight = sum(len(gzip.compress(each.read_bytes())) for each in files)
    assert weight + len(gzip.compress(client.get("/").content)) <= 150_000


@pytest.mark.parametrize("path", sorted(TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_no_template_shows_what_is_not_escaped(path: Path) -> None:
    assert not re.search(r"\|\s*safe|autoescape|<script(?![^>]*src=)|\son[a-z]+=", path.read_text())


def test_the_script_writes_text_alone() -> None:
    script = (ASSETS / "page.js").read_text()
    assert not re.search(r"innerHTML|outerHTML\s*=|insertAdjacent|document\.write|eval\(", script)
