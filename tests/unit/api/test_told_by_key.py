"""What a caller is told of the worker: more with a key of all tenants than with one of a few."""

from __future__ import annotations

import json

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate
from belfry.api.auth.keys import ApiKeys, digest
from belfry.api.routes.app import create_app
from belfry.api.workers.parts import ApiDependencies
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker
from tests.unit.store.test_lookup import NOW_MS

READER, ALL = "belfry_" + "r" * 43, "belfry_" + "a" * 43


@pytest.fixture
def told() -> TestClient:
    entries = [
        {"name": "reader", "sha256": digest(READER), "tenants": ["orders"]},
        {"name": "all", "sha256": digest(ALL), "tenants": ["*"]},
    ]
    gate = Gate([ApiKeys(json.dumps(entries), None, lambda: float(NOW_MS))])
    parts = ApiDependencies(gate, (), lambda: float(NOW_MS))
    worker = FakeWorker()
    worker.state.warnings.append("webhook hosts do not answer: hooks.shop.example")
    worker.state.problems.append("it waits for the topic of tenant shop")
    app = create_app(worker, Metrics(CollectorRegistry()), (), parts)
    return TestClient(app, base_url="http://127.0.0.1:8700")


def test_a_key_of_one_tenant_is_not_told_how_busy_others_are(told: TestClient) -> None:
    (bound,) = told.get("/v1/cluster", headers={"authorization": f"Bearer {READER}"}).json()[
        "workers"
    ]
    (whole,) = told.get("/v1/cluster", headers={"authorization": f"Bearer {ALL}"}).json()["workers"]
    assert (whole["pending"], whole["partitions"][0]["pending"]) == (5, 5)
    assert whole["partitions"][0]["oldest_due_at"] is not None
    assert (bound["pending"], bound["fired"]) == (None, None)
    (partition,) = bound["partitions"]
    assert {name for name, value in partition.items() if value is not None} == {
        "partition",
        "state",
    }
    assert (bound["ready"], bound["worker_id"]) == (whole["ready"], whole["worker_id"])
    assert (len(whole["warnings"]), len(whole["problems"])) == (1, 1)
    assert (bound["warnings"], bound["problems"]) == ([], [])


@pytest.mark.parametrize("key", [None, READER, "belfry_unknown"])
def test_without_a_key_of_all_tenants_readiness_is_yes_or_no(
    told: TestClient, key: str | None
) -> None:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    answer = told.get("/healthz/ready", headers=headers)
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "ready": True,
            "problems": [],
            "partitions": [],
            "warnings": [],
            "tenants_waiting": None,
        },
    )
    whole = told.get("/healthz/ready", headers={"authorization": f"Bearer {ALL}"}).json()
    assert (len(whole["warnings"]), len(whole["problems"])) == (1, 1)
    assert whole["partitions"][0]["pending"] == 5
