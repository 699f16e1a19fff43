"""Policies over HTTP: one change after the other, and none that would lose schedules."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from belfry.api.access import Gate
from belfry.api.app import create_app
from belfry.api.parts import Open, Parts
from belfry.schedules.policy import TenantPolicy
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker


class Policies:
    """Policies that take a moment to be written."""

    def __init__(self) -> None:
        self.kept = {"big": TenantPolicy("big", spread=2)}
        self.shared = False

    def policy(self, tenant: str) -> TenantPolicy | None:
        return self.kept.get(tenant)

    def put(self, policy: TenantPolicy, *, share_topic: bool = False) -> None:
        time.sleep(0.05)
        self.shared = share_topic
        self.kept[policy.tenant] = policy

    def remove(self, tenant: str) -> None:
        del self.kept[tenant]

    def is_used(self, _tenant: str) -> bool:
        return True


@pytest.fixture
def policies() -> Policies:
    return Policies()


@pytest.fixture
def client(policies: Policies) -> Iterator[TestClient]:
    parts = Parts(Gate(), (), lambda: 0.0)
    opened: Any = (None, None, None, None, policies)
    parts.open(Open(*opened))
    app = create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts)
    with TestClient(app, base_url="http://127.0.0.1:8700/v1/tenants") as found:
        yield found


def test_no_former_spread_is_lost_where_two_change_it_at_once(
    client: TestClient, policies: Policies
) -> None:
    def put(spread: int) -> int:
        return client.put("/big", json={"spread": spread}).status_code

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(put, (4, 8))) == [200, 200]
    kept = policies.kept["big"]
    assert {kept.spread, *kept.former_spreads} == {2, 4, 8}


@pytest.mark.parametrize(
    ("policy", "query", "status"),
    [
        (TenantPolicy("big"), "", 204),
        (TenantPolicy("big", spread=2), "", 409),
        (TenantPolicy("big", former_spreads=(2,)), "", 409),
        (TenantPolicy("big", spread=2), "?cancel_pending=true", 204),
        (None, "", 404),
        (None, "?cancel_pending=true", 204),
    ],
)
def test_a_policy_that_knows_where_schedules_live_stays(
    client: TestClient,
    policies: Policies,
    policy: TenantPolicy | None,
    query: str,
    status: int,
) -> None:
    policies.kept = {} if policy is None else {"big": policy}
    answer = client.delete(f"/big{query}")
    assert answer.status_code == status
    left = policies.kept.get("big")
    if query:
        assert left is not None
        assert left.removed
        assert left.spread == (1 if policy is None else policy.spread)
    else:
        assert (left is None) == (status != 409)


@pytest.mark.parametrize(("query", "shared"), [("", False), ("?share_topic=true", True)])
def test_who_shares_a_topic_says_so(
    client: TestClient, policies: Policies, query: str, shared: bool
) -> None:
    assert client.put(f"/big{query}", json={"output_topic": "theirs"}).status_code == 200
    assert policies.shared is shared
