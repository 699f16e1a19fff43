"""Policies over HTTP: one change after the other, and none that would lose schedules."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import Principal, Role
from belfry.api.routes.app import create_app
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.client.policy_fields import BadPolicy
from belfry.telemetry.metrics import Metrics
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.policy_rights import PLATFORMS, platform_changes
from belfry.tenants.shredding import KeyToDestroy, key_to_destroy
from tests.unit.api.conftest import FakeWorker


class Policies:
    """Policies that take a moment to be written."""

    def __init__(self) -> None:
        self.kept = {"big": TenantPolicy("big", spread=2)}
        self.shared = False
        self.reason: str | None = None
        self.closed = False
        self.wrong = ""
        # References that this worker can read.
        self.secrets = {"file:big.keys"}
        # Written by another worker, and not read by this one yet.
        self.elsewhere: dict[str, TenantPolicy] = {}

    def catch_up(self, tenant: str) -> None:
        if self.wrong:
            raise BadPolicy(f"{tenant}: {self.wrong}")
        self.kept |= self.elsewhere

    def policy(self, tenant: str) -> TenantPolicy | None:
        return self.kept.get(tenant)

    def put(
        self, policy: TenantPolicy, *, share_topic: bool = False, reason: str | None = None
    ) -> None:
        time.sleep(0.05)
        self.shared, self.reason = share_topic, reason
        self.kept[policy.tenant] = policy

    def remove(self, tenant: str, *, reason: str | None = None) -> None:
        self.reason = reason
        del self.kept[tenant]

    def is_used(self, _tenant: str) -> bool:
        return True

    def to_destroy(self, removed: TenantPolicy | None) -> KeyToDestroy | None:
        return key_to_destroy(removed, self.kept.values())

    def key_ids(self, tenant: str, reference: str) -> tuple[str, ...] | None:
        return (f"id of {tenant}",) if reference in self.secrets else None


@pytest.fixture
def policies() -> Policies:
    return Policies()


@pytest.fixture
def client(policies: Policies) -> Iterator[TestClient]:
    parts = ApiDependencies(Gate(), (), lambda: 0.0)
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


def test_a_change_counts_only_for_the_policy_that_was_seen(client: TestClient) -> None:
    seen = client.get("/big").headers["etag"]
    changed = client.put("/big", json={"spread": 2, "paused": True}, headers={"if-match": seen})
    assert changed.status_code == 200
    assert changed.headers["etag"] == client.get("/big").headers["etag"] != seen
    late = client.put("/big", json={"spread": 2}, headers={"if-match": seen})
    assert (late.status_code, late.json()["code"]) == (412, "changed")
    assert client.get("/big").json()["paused"] is True
    none = client.put("/new", json={}, headers={"if-match": seen})
    assert none.status_code == 412


def test_it_is_compared_with_what_another_worker_wrote_a_moment_ago(
    client: TestClient, policies: Policies
) -> None:
    seen = client.get("/big").headers["etag"]
    policies.elsewhere = {"big": TenantPolicy("big", spread=2, max_pending=7)}
    late = client.put("/big", json={"spread": 2}, headers={"if-match": seen})
    assert (late.status_code, late.json()["code"]) == (412, "changed")
    assert client.get("/big").json()["max_pending"] == 7


def principals(*given: Principal) -> Gate:
    """A gate that knows each by its name."""

    class Known:
        async def principal(self, token: str) -> Principal | None:
            return next((each for each in given if each.name == token), None)

    return Gate([Known()])


BOUND = [Principal("admin", ("big",), Role.ADMIN), Principal("bound", ("b*",), Role.OPERATE)]
EVERYBODYS = Principal("everybodys", ("*",), Role.ADMIN)
PLATFORM = Principal("platform", ("*",), Role.OPERATE)
SCHEDULER = Principal("scheduler", ("*",), Role.SCHEDULE)
VIEWER = Principal("viewer", ("*",), Role.READ)
STANDS = TenantPolicy("big", max_pending=10, priority=-1, output_topic="theirs")
OTHERS: dict[str, object] = {
    "output_topic": "belfry.tenants",
    "spread": 4,
    "max_pending": 11,
    "max_requests_per_second": 5.0,
    "max_fires_per_second": 5.0,
    "priority": 7,
    "history_ms": 1,
    "allowed_hosts": ["evil.example"],
    "former_spreads": [2],
    "removed": True,
    "signing_secret_ref": "env:BELFRY_SECRET_X",
    "payload_key_ref": "file:shop/payload-keys",
    "secret_refs": ["env:BELFRY_SECRET_X"],
    "output": "SHARED",
    "claim_check_over_bytes": 1,
}


@pytest.fixture
def asked(policies: Policies) -> Iterator[Callable[..., Any]]:
    """Asks as one of the principals."""
    policies.kept = {"big": STANDS}
    parts = ApiDependencies(
        principals(*BOUND, EVERYBODYS, PLATFORM, SCHEDULER, VIEWER), (), lambda: 0.0
    )
    opened: Any = (None, None, None, None, policies)
    parts.open(Open(*opened))
    app = create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts)
    with TestClient(app, base_url="http://127.0.0.1:8700/v1/tenants") as client:

        def ask(who: Principal, method: str, path: str, **given: Any) -> Any:
            return client.request(
                method, path, headers={"authorization": f"Bearer {who.name}"}, **given
            )

        yield ask


def test_an_etag_tells_nothing_of_headers_to_who_may_not_see_them(
    asked: Callable[..., Any],
) -> None:
    assert "etag" in asked(SCHEDULER, "GET", "/big").headers
    assert "etag" not in asked(VIEWER, "GET", "/big").headers


def test_the_platforms_fields_are_those_that_are_tried_here() -> None:
    assert set(OTHERS) == set(PLATFORMS)


@pytest.mark.parametrize("who", [*BOUND, EVERYBODYS], ids=lambda each: each.name)
@pytest.mark.parametrize("field", OTHERS)
def test_who_is_not_the_platform_changes_none_of_its_fields(
    asked: Callable[..., Any], policies: Policies, who: Principal, field: str
) -> None:
    answer = asked(who, "PUT", "/big", json={"paused": True, field: OTHERS[field]})
    assert answer.status_code == 403
    problem = answer.json()
    assert (problem["code"], problem["fields"][0]) == ("forbidden", field)
    assert "operate for all tenants (*)" in problem["detail"]
    assert "It may set delivery, cloudevents" in problem["detail"]
    assert policies.kept == {"big": STANDS}
    assert asked(PLATFORM, "PUT", "/big", json={field: OTHERS[field]}).status_code == 200


@pytest.mark.parametrize("who", [*BOUND, EVERYBODYS], ids=lambda each: each.name)
def test_a_tenants_admin_sets_what_is_its_own_and_leaves_the_rest(
    asked: Callable[..., Any], policies: Policies, who: Principal
) -> None:
    targets = [{"url": "https://hooks.example/"}]
    given = {"paused": True, "delivery": "ENVELOPE", "http_targets": targets}
    assert asked(who, "PUT", "/big", json=given).status_code == 200
    found = policies.kept["big"]
    assert (found.paused, found.delivery, len(found.http_targets)) == (True, "ENVELOPE", 1)
    assert not platform_changes(STANDS, found)
    # As a command gives them that has read the whole policy.
    whole = {**asked(who, "GET", "/big").json(), "paused": False}
    del whole["tenant"]
    assert asked(who, "PUT", "/big", json=whole).status_code == 200
    assert policies.kept["big"] == replace(found, paused=False)


@pytest.mark.parametrize("path", ["/big", "/big?cancel_pending=true"])
def test_a_tenants_admin_does_not_get_rid_of_what_the_platform_set(
    asked: Callable[..., Any], policies: Policies, path: str
) -> None:
    for who in BOUND:
        assert asked(who, "DELETE", path).status_code == 403
    assert policies.kept == {"big": STANDS}
    policies.kept = {"big": TenantPolicy("big", paused=True)}
    expected = 204 if path == "/big" else 403
    assert asked(BOUND[0], "DELETE", path).status_code == expected


def test_a_first_policy_lets_a_tenant_in_only_where_everybody_is_served(
    asked: Callable[..., Any], policies: Policies
) -> None:
    policies.kept = {}
    policies.closed = True
    assert asked(BOUND[0], "PUT", "/big", json={"paused": True}).status_code == 403
    assert asked(PLATFORM, "PUT", "/big", json={"paused": True}).status_code == 200
    policies.kept = {}
    policies.closed = False
    assert asked(BOUND[0], "PUT", "/big", json={"paused": True}).status_code == 200


def test_a_policy_that_is_not_carried_out_is_the_platforms_to_mend(
    asked: Callable[..., Any], policies: Policies
) -> None:
    """What the worker shows of it are the defaults, which would take its limits away."""
    policies.wrong = "its policy cannot be carried out"
    assert asked(BOUND[0], "PUT", "/big", json={"paused": True}).status_code == 422
    assert asked(PLATFORM, "PUT", "/big", json={"paused": True}).status_code == 200


def test_other_tenants_and_other_roles_stay_out(asked: Callable[..., Any]) -> None:
    assert asked(BOUND[0], "PUT", "/other", json={"paused": True}).status_code == 403
    assert asked(SCHEDULER, "PUT", "/big", json={"paused": True}).status_code == 403
    assert asked(BOUND[0], "PUT", "/big?share_topic=true", json={}).status_code == 403
