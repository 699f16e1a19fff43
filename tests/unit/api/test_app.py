"""The HTTP application: health, cluster, page, problems, and who may ask."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.responses import Response
from starlette.testclient import TestClient

from belfry import __version__
from belfry.api.routes.app import create_app
from belfry.api.workers.internal_token import Target
from belfry.api.workers.peers import Peers, PeerUnreachable
from belfry.api.workers.view import PartitionView, Readiness, WorkerIdentity, WorkerView
from belfry.balance.assignment_map import AssignedMember, AssignmentMap
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker


@pytest.fixture
def client(app: FastAPI) -> TestClient:
    return TestClient(app, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)


def is_problem(answer: Any, status: int) -> bool:
    body = answer.json()
    kind = answer.headers["content-type"]
    return bool(
        answer.status_code == body["status"] == status
        and kind == "application/problem+json"
        and {"type", "title", "detail", "instance", "code"} <= body.keys()
    )


def test_live(client: TestClient, worker: Any) -> None:
    assert client.get("/healthz/live").status_code == 200
    worker.is_live = False
    answer = client.get("/healthz/live")
    assert answer.status_code == 503
    assert answer.json()["ok"] is False


def test_startup(client: TestClient, worker: Any) -> None:
    assert client.get("/healthz/startup").status_code == 200
    worker.state = Readiness(ready=False, started=False)
    assert client.get("/healthz/startup").status_code == 503


def test_ready(client: TestClient) -> None:
    answer = client.get("/healthz/ready")
    assert answer.status_code == 200
    assert answer.json()["ready"] is True
    assert answer.json()["partitions"][0]["oldest_due_at"] == "2023-11-14T22:13:21.500Z"


def test_not_ready_says_what_is_missing(client: TestClient, worker: Any) -> None:
    worker.state = Readiness(
        ready=False,
        partitions=[PartitionView(2, "recovering", missing="7 changelog records are to be read.")],
        problems=["The broker does not answer."],
    )
    answer = client.get("/healthz/ready")
    assert answer.status_code == 503
    assert answer.json()["problems"] == ["The broker does not answer."]
    (partition,) = answer.json()["partitions"]
    assert partition["partition"] == 2
    assert partition["state"] == "recovering"
    assert partition["missing"] == "7 changelog records are to be read."


def test_metrics(client: TestClient, metrics: Metrics) -> None:
    metrics.steps.fired([1, 2])
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "belfry_fired_total 2.0" in answer.text


def test_cluster(client: TestClient, metrics: Metrics) -> None:
    metrics.steps.fired([1, 2])
    metrics.clock_skew(0.125)
    cluster = client.get("/v1/cluster").json()
    assert (cluster["app_id"], cluster["kafka_cluster_id"]) == ("belfry", "cluster-a")
    (worker,) = cluster["workers"]
    assert worker["take_overs"] == [
        {"partition": 0, "at": "2023-11-14T22:13:20.000Z", "took_seconds": 0.25, "warm": True,
         "former": "worker-2", "cause": "owner_silent", "records": 12}
    ]  # fmt: skip
    assert worker["worker_id"] == "worker-1"
    assert worker["version"] == __version__
    assert worker["started_at"] == "2023-11-14T22:13:20.000Z"
    assert (worker["pending"], worker["fired"]) == (5, 2)
    assert worker["clock_skew_seconds"] == 0.125
    assert worker["firing_paused"] is False


def test_the_cluster_is_all_of_its_workers(
    app: FastAPI, worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that is asked comes first; who does not answer is named, and holds nobody up."""
    other = FakeWorker()
    other.identity = WorkerIdentity("worker-2", "belfry", 0, "cluster-a")
    entries = tuple(AssignedMember(f"worker-{n}", http=f"http://worker-{n}:1") for n in (1, 2, 3))
    other.assignment_map = worker.assignment_map = lambda: AssignmentMap(entries)  # type: ignore[method-assign]
    elsewhere = TestClient(create_app(other, Metrics(CollectorRegistry())), "http://127.0.0.1")
    asked = []

    async def ask(_: Any, url: str, target: Target, *_more: Any) -> Response:
        asked.append(url)
        if url == "http://worker-3:1":
            raise PeerUnreachable("it was killed")
        return Response(elsewhere.get(f"{target.path}?{target.query}").content)

    monkeypatch.setattr(Peers, "ask", ask)
    client = TestClient(app, base_url="http://127.0.0.1:8700")
    found = client.get("/v1/cluster").json()
    assert [each["worker_id"] for each in found["workers"]] == ["worker-1", "worker-2"]
    assert found["silent"] == ["worker-3"]
    assert asked == ["http://worker-2:1", "http://worker-3:1"]
    alone = client.get("/v1/cluster?alone=true").json()
    assert [each["worker_id"] for each in alone["workers"]] == ["worker-1"]
    assert len(asked) == 2


def test_openapi_lists_the_routes(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {
        "/healthz/live",
        "/healthz/ready",
        "/healthz/startup",
        "/metrics",
        "/v1/cluster",
    } <= set(paths)


def test_each_route_is_made_once(app: FastAPI) -> None:
    # Included routers would make all of them again, and be asked for each call.
    made = [id(route) for routes in app.state.routers for route in routes.routes]
    assert made
    assert [id(route) for route in app.routes if id(route) in set(made)] == made


def test_the_page_loads_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-security-policy"].startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'"
    )
    for link in re.findall(r'<(?:script|link)[^>]*(?:src|href)="([^"]+)"', page.text):
        assert link.startswith("/"), link
        assert client.get(link).status_code == 200, link


def test_unknown_paths_are_problems(client: TestClient) -> None:
    answer = client.get("/nowhere")
    assert is_problem(answer, 404)
    assert "/nowhere" in answer.json()["detail"]
    assert answer.json()["code"] == "not_found"
    assert is_problem(client.post("/v1/cluster"), 405)
    assert is_problem(client.get("/console/../settings.py"), 404)


def test_invalid_input_is_a_problem(client: TestClient) -> None:
    answer = client.get("/test/number", params={"value": "x"})
    assert is_problem(answer, 422)
    assert "query.value" in answer.json()["detail"]
    assert answer.json()["code"] == "bad_parameters"


def test_a_bug_is_a_problem_without_its_traceback(client: TestClient) -> None:
    answer = client.get("/test/fails")
    assert is_problem(answer, 500)
    assert answer.json()["code"] == "internal_error"
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8700", "localhost", "LOCALHOST:1", "[::1]:8700", "127.1.2.3"]
)
def test_names_of_this_machine_may_ask(client: TestClient, host: str) -> None:
    assert client.get("/healthz/live", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "10.0.0.1", "", "[::", "a:b@c"]
)
def test_other_names_may_not(client: TestClient, host: str) -> None:
    answer = client.get("/healthz/live", headers={"host": host})
    assert is_problem(answer, 421)
    assert "content-security-policy" in answer.headers


def test_the_fake_is_a_worker_view(worker: Any) -> None:
    view: WorkerView = worker
    assert view.live()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/tenants/t/schedules/a", "DELETE, GET, HEAD, PUT"),
        ("DELETE", "/v1/tenants/t/schedules", "GET, HEAD, POST"),
        ("PUT", "/v1/tenants/t/schedules/a/pause", "POST"),
        ("DELETE", "/v1/tenants/t/schedules/a/history", "GET, HEAD"),
        ("POST", "/v1/cluster", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
        ("POST", "/console/page.js", "GET, HEAD"),
    ],
)
def test_a_method_that_is_not_there_is_told_which_are(
    client: TestClient, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    assert is_problem(answer, 405)
    assert answer.headers["allow"] == allowed
    assert answer.json()["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "path", ["/", "/healthz/live", "/healthz/ready", "/metrics", "/v1/cluster", "/openapi.json"]
)
def test_what_can_be_read_can_be_asked_for_its_head(client: TestClient, path: str) -> None:
    whole, head = client.get(path), client.head(path)
    assert head.status_code == whole.status_code
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.content == b""


def test_what_cannot_be_read_has_no_head(client: TestClient) -> None:
    answer = client.head("/v1/preview")
    assert (answer.status_code, answer.headers["allow"], answer.content) == (405, "POST", b"")


def test_a_worker_that_starts_says_so(client: TestClient) -> None:
    answer = client.get("/v1/tenants/t/schedules/order%2F4711%2Fpause")
    assert is_problem(answer, 503)
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["code"] == "starting"
