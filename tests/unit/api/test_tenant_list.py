"""`GET /v1/tenants` tells of every tenant that has anything, and of who waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import Principal, Role
from belfry.api.routes import tenant_list
from belfry.api.routes.app import create_app
from belfry.api.workers.everyone import Others
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.cli.check import Status
from belfry.cli.doctor_cluster import tenants_waiting
from belfry.cli.tenant_top import line
from belfry.engine.tenant_figures import TenantFigures
from belfry.telemetry.metrics import Metrics
from belfry.telemetry.tenant_metrics import TenantLook
from belfry.tenants.waits import Wait, Why
from tests.unit.api.conftest import FakeWorker

HELD = Why("tenant_blocked", "output_topic", "its topic is missing")
RATE = Why("tenant_queue", "rate", "its policy allows 1 fires a second")
FIGURES = {
    "": TenantFigures(rejected=9),
    "busy": TenantFigures(pending=50, fired=3, late_ms=900),
    "held": TenantFigures(pending=2, wait=Wait(HELD, 2_000, 2, 1_000)),
    "slow": TenantFigures(pending=7, rejected=4, wait=Wait(RATE, 1_000, 5, 500)),
}
ALL, ONE = "all", "one"


class Policies:
    """Policies of tenants, one of which has nothing else."""

    def names(self) -> list[str]:
        return ["busy", "only"]


class Bearers:
    """Knows two tokens: of all tenants, and of one."""

    async def principal(self, token: str) -> Principal | None:
        tenants = {ALL: ("*",), ONE: ("slow",)}.get(token)
        return None if tenants is None else Principal(token, tenants, Role.READ)


def told(*, gate: Gate | None = None, figures: Mapping[str, TenantFigures] = FIGURES) -> TestClient:
    worker, metrics = FakeWorker(), Metrics(CollectorRegistry())
    worker.figures = dict(figures)
    metrics.tenants(TenantLook.of({(0, 1): figures}, 5_000))
    parts = ApiDependencies(gate or Gate(), (), lambda: 0.0)
    opened: Any = (None, None, None, None, Policies())
    parts.open(Open(*opened))
    return TestClient(create_app(worker, metrics, (), parts), "http://127.0.0.1:8700")


@pytest.fixture
def client() -> TestClient:
    return told()


def test_every_tenant_that_has_anything_is_listed(client: TestClient) -> None:
    answer = client.get("/v1/tenants").json()
    assert answer["tenants"] == ["busy", "held", "only", "slow"]
    busy, held, only, _ = answer["figures"]
    assert busy == {
        "tenant": "busy",
        "has_policy": True,
        "pending": 50,
        "fired": 3,
        "rejected": 0,
        "late_seconds": 0.9,
        "wait": None,
    }
    assert (only["has_policy"], held["has_policy"]) == (True, False)
    assert held["wait"] == {
        "tenant": "held",
        "waiting_for": "tenant_blocked",
        "cause": "output_topic",
        "reason": "its topic is missing",
        "since": "1970-01-01T00:00:02.000Z",
        "waiting": 2,
        "oldest_due_at": "1970-01-01T00:00:01.000Z",
    }


def test_pages_go_on_by_name(client: TestClient) -> None:
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = client.get("/v1/tenants", params={"limit": "3", **cursor}).json()
        found += page["tenants"]
        if page["cursor"] is None:
            break
        cursor = {"cursor": page["cursor"]}
    assert found == ["busy", "held", "only", "slow"]


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("waiting", "held"),
        ("pending", "busy"),
        ("fired", "busy"),
        ("rejected", "slow"),
        ("lateness", "busy"),
    ],
)
def test_the_foremost_come_first(client: TestClient, sort: str, first: str) -> None:
    answer = client.get("/v1/tenants", params={"sort": sort, "limit": 1}).json()
    assert (answer["tenants"], answer["cursor"]) == ([first], None)


def test_those_that_wait_and_those_with_a_policy(client: TestClient) -> None:
    assert client.get("/v1/tenants?waiting=true").json()["tenants"] == ["held", "slow"]
    assert client.get("/v1/tenants?policy=true").json()["tenants"] == ["busy", "only"]
    assert client.get("/v1/tenants?alone=true").json()["tenants"] == ["busy", "held", "slow"]


def test_a_cursor_in_another_order_is_refused(client: TestClient) -> None:
    answer = client.get("/v1/tenants?sort=pending&cursor=a")
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_cursor")


def test_a_caller_sees_the_tenants_that_it_is_bound_to() -> None:
    asked = told(gate=Gate([Bearers()]))
    answer = asked.get("/v1/tenants", headers={"authorization": f"Bearer {ONE}"})
    assert answer.json()["tenants"] == ["slow"]


@pytest.mark.parametrize(("token", "sees"), [(None, False), (ONE, False), (ALL, True)])
def test_strangers_are_told_no_names(token: str | None, sees: bool) -> None:
    asked = told(gate=Gate([Bearers()]))
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    for path in ("/healthz/ready", "/metrics"):
        assert ('"held"' in asked.get(path, headers=headers).text) is sees


def test_ready_tells_of_those_that_wait_the_blocked_first(client: TestClient) -> None:
    answer = client.get("/healthz/ready")
    assert answer.status_code == 200
    assert [each["tenant"] for each in answer.json()["tenants_waiting"]] == ["held", "slow"]


def test_the_doctor_says_what_to_do(client: TestClient) -> None:
    held, slow = tenants_waiting(client.get("/v1/tenants?waiting=true").json())
    assert held.status is Status.PROBLEM
    assert held.detail == (
        "held waits (output_topic) since 1970-01-01T00:00:02.000Z: its topic is missing. 2 events"
        " wait, the oldest was due 1970-01-01T00:00:01.000Z."
    )
    assert "create the topic" in held.to_do
    assert slow.status is Status.RISK
    (well,) = tenants_waiting({"figures": [], "silent": []})
    assert well.status is Status.OK
    silent, _ = tenants_waiting({"figures": [], "silent": ["worker-2"]})
    assert silent.status is Status.SKIPPED


def test_the_top_has_figures_and_reasons(client: TestClient) -> None:
    busy, held = client.get("/v1/tenants").json()["figures"][:2]
    told_of = "busy 50 pending 3 fired 0 refused 300 ms late"
    assert " ".join(line(busy).split()) == told_of
    assert "its topic is missing, the oldest due 1970-01-01T00:00:01.000Z" in line(held)


def test_the_page_shows_them(client: TestClient) -> None:
    page = client.get("/console/tenants").text
    assert "held</a></strong> waits because its topic is missing" in page
    assert "All tenants" in page
    assert "only</a>" in page


def test_what_other_workers_own_is_added_and_who_is_silent_is_named(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = told().get("/v1/tenants?alone=true&limit=3")
    asked: list[str] = []

    async def others(*given: Any, at_once: bool) -> Others[Any]:
        assert not at_once
        *_, target, kind = given
        asked.append(target.query)
        return Others({"two": kind.model_validate_json(theirs.content)}, ["three"], [])

    monkeypatch.setattr(tenant_list, "ask_others", others)
    answer = client.get("/v1/tenants?sort=pending").json()
    assert answer["tenants"] == ["busy", "slow", "held", "only"]
    assert [each["pending"] for each in answer["figures"]] == [100, 14, 4, 0]
    busy, slow, *_ = answer["figures"]
    assert (busy["fired"], busy["late_seconds"], slow["rejected"]) == (6, 1.8, 8)
    assert (busy["has_policy"], slow["wait"]["cause"]) == (True, "rate")
    assert answer["silent"] == ["three"]
    assert asked == ["limit=100&sort=pending&alone=true"]


def test_pages_go_on_where_another_worker_owns_more(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, theirs = told(figures={}), told()

    async def others(*given: Any, at_once: bool) -> Others[Any]:
        assert not at_once
        *_, target, kind = given
        answer = theirs.get(f"/v1/tenants?{target.query}")
        return Others({"two": kind.model_validate_json(answer.content)}, [], [])

    monkeypatch.setattr(tenant_list, "ask_others", others)
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = mine.get("/v1/tenants", params={"limit": "1", **cursor}).json()
        found += page["tenants"]
        if page["cursor"] is None:
            break
        cursor = {"cursor": page["cursor"]}
    assert found == ["busy", "held", "only", "slow"]
    asked = mine.get("/v1/tenants", params={"limit": "1", "policy": "true"}).json()
    assert asked["figures"][0]["pending"] == 50
