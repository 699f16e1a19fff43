"""The console: what is text stays text, who may do what, where forms come from, what it weighs."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate
from belfry.api.auth.keys import ApiKeys, digest, new_key
from belfry.api.auth.principal import Role
from belfry.api.routes.app import create_app
from belfry.api.workers.parts import ApiDependencies
from belfry.console import ASSETS, TEMPLATES
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker
from tests.unit.console.conftest import BASE, FORM, HOSTILE, SHOWN, VENDOR, VIEWS, WAIT, FakeApi


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
    # None of them blocks the first content.
    assert all(" defer" in each for each in re.findall("<script[^>]*>", page.text))
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
@pytest.mark.parametrize(
    "path", ["act", "create", "preview", "first", "replay", "edit", "bulk", "job-stop"]
)
def test_forms_of_other_pages_are_refused(
    client: TestClient, api: FakeApi, path: str, headers: dict[str, str]
) -> None:
    fields = {"tenant": "t", "id": "a", "action": "pause", "etag": '"1.1"', "kind": "at"}
    answer = client.post(f"/console/{path}", data=fields, headers=headers)
    assert answer.status_code == 403
    assert not api.asked


def test_a_dead_letter_is_delivered_again_by_its_place(client: TestClient, api: FakeApi) -> None:
    fields = {"tenant": "t", "id": "0-7", "reason": "mended"}
    answer = client.post("/console/replay", data=fields, headers=FORM)
    assert answer.status_code == 204
    assert "replayed=0-7" in json.loads(answer.headers["hx-location"])["path"]
    assert api.asked[-1][:2] == ("POST", "/v1/tenants/t/dead-letters/0-7/replay")
    assert api.queries[-1] == {"reason": "mended"}


def test_rejections_and_dead_letters_go_further_back(client: TestClient, api: FakeApi) -> None:
    for path, asked in (("rejections", "/v1/rejections"), ("deliveries?tenant=t", "dead-letters")):
        page = client.get(f"/console/{path}").text
        older = re.search(r'href="([^"]+)" rel="next"', page)
        assert older is not None
        assert "cursor=more" in older[1]
        client.get(older[1].replace("&amp;", "&"))
        told = [told for _, path, _, told in api.asked if path.endswith(asked)]
        assert [each.get("cursor") for each in told] == [None, "more"]


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


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        ("output_topic", "Create its output topic"),
        ("paused", "belfry tenant set held-up paused=false"),
        ("not_served", "Give it a policy"),
        ("ack_lock", "belfry schedule locks held-up"),
        ("later_release", "It needs a later release"),
        ("rate", None),
    ],
)
def test_what_waits_for_somebody_is_told_with_what_to_do(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, cause: str, told: str | None
) -> None:
    monkeypatch.setitem(WAIT, "cause", cause)
    monkeypatch.setitem(WAIT, "tenant", "held-up")
    overview = client.get("/").text
    assert ">held-up</a></strong> waits because" in overview
    assert "3 due, the oldest" in overview
    assert told is None or told in overview
    monkeypatch.setitem(WAIT, "oldest_due_at", None)
    assert "3 due, the oldest" not in client.get("/").text


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
