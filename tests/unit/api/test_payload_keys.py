"""What HTTP says of a tenant's keys: when its policy is removed, and whenever it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import Principal
from belfry.api.routes.app import create_app
from belfry.api.routes.payload_key_routes import WorkerKeys, WorkersKeys
from belfry.api.workers import everyone
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.balance.assignment_map import AssignmentMap
from belfry.client.key_ring import KeyRing
from belfry.telemetry.metrics import Metrics
from belfry.tenants.policy import TenantPolicy
from tests.unit.api.conftest import FakeWorker
from tests.unit.api.test_policies import BOUND, EVERYBODYS, PLATFORM, Policies, principals

KEYED = TenantPolicy("big", payload_key_ref="file:big.keys")


@pytest.fixture
def policies() -> Policies:
    found = Policies()
    found.kept = {"big": KEYED}
    return found


@pytest.fixture
def rings() -> dict[str, KeyRing]:
    """Tenants whose keys this worker uses."""
    return {"big": KeyRing("big", [b"0" * 32])}


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def client(policies: Policies, rings: dict[str, KeyRing], gate: Gate) -> Iterator[TestClient]:
    parts = ApiDependencies(gate, (), lambda: 0.0)
    holdings = SimpleNamespace(payload_keys=rings.get)
    opened: Any = (None, holdings, None, None, policies)
    parts.open(Open(*opened))
    app = create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts)
    with TestClient(app, base_url="http://127.0.0.1:8700/v1/tenants") as found:
        yield found


@pytest.mark.parametrize("query", ["", "?cancel_pending=true"])
def test_who_removes_a_policy_is_told_which_secret_to_destroy(
    client: TestClient, query: str
) -> None:
    answer = client.delete(f"/big{query}")
    assert answer.status_code == 200
    told = answer.json()
    assert told["tenant"] == "big"
    assert told["destroy"]["reference"] == "file:big.keys"
    assert told["destroy"]["key_ids"] == ["id of big"]
    assert told["destroy"]["shared_with"] == []
    assert "delete file:big.keys" in told["destroy"]["advice"]
    assert told["destroy"]["check"].startswith("belfry payloads readable big")


def test_a_secret_that_others_name_is_not_to_be_destroyed(
    client: TestClient, policies: Policies
) -> None:
    policies.kept["other"] = TenantPolicy("other", payload_key_ref="file:./big.keys")
    told = client.delete("/big").json()["destroy"]
    assert told["shared_with"] == ["other"]
    assert "not shredded" in told["advice"]


def test_without_keys_there_is_nothing_to_say(client: TestClient, policies: Policies) -> None:
    policies.kept = {"big": TenantPolicy("big")}
    answer = client.delete("/big")
    assert (answer.status_code, answer.content) == (204, b"")


def test_a_worker_says_which_keys_it_uses_and_could_read(
    client: TestClient, policies: Policies, rings: dict[str, KeyRing]
) -> None:
    policies.secrets.add("file:old.keys")
    query = "reference=file:old.keys&reference=file:gone.keys&alone=true"
    told = client.get(f"/big/payload-keys?{query}").json()
    (mine,) = told["workers"]
    assert mine["in_use"] is True
    assert [each["reference"] for each in mine["readable"]] == ["file:big.keys", "file:old.keys"]
    policies.kept.clear()
    policies.secrets.clear()
    rings.clear()
    (mine,) = client.get(f"/big/payload-keys?{query}").json()["workers"]
    assert (mine["in_use"], mine["readable"]) == (False, [])


def test_all_workers_are_asked_and_those_that_are_silent_named(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def others(_view: Any, _parts: Any, _caller: Any, target: Any, *_: Any) -> Any:
        asked.append(target)
        one = WorkerKeys(worker_id="w2", in_use=True, readable=[])
        told = WorkersKeys(tenant="big", shared_with=[], workers=[one], silent=[])
        return everyone.Others({"w2": told}, ["w3"], [])

    monkeypatch.setattr("belfry.api.routes.payload_key_routes.ask_others", others)
    told = client.get("/big/payload-keys?reference=file:a%26b").json()
    assert [each["worker_id"] for each in told["workers"]][1:] == ["w2"]
    # The second worker of the map has no address, so nobody knows what it has.
    assert told["silent"] == ["w3", "worker-2"]
    (target,) = asked
    assert (target.path, target.query) == (
        "/v1/tenants/big/payload-keys", "reference=file%3Aa%26b&alone=true",
    )  # fmt: skip


def test_who_knows_no_others_does_not_answer_for_them(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeWorker, "assignment_map", lambda _: AssignmentMap())
    answer = client.get("/big/payload-keys")
    assert (answer.status_code, answer.json()["code"]) == (503, "starting")
    assert client.get("/big/payload-keys?alone=true").status_code == 200


@pytest.mark.parametrize("gate", [principals(*BOUND, PLATFORM, EVERYBODYS)])
def test_secrets_are_the_platforms(client: TestClient) -> None:
    def status(who: Principal) -> int:
        shown = {"authorization": f"Bearer {who.name}"}
        return client.get("/big/payload-keys?alone=true", headers=shown).status_code

    assert [status(each) for each in (*BOUND, EVERYBODYS, PLATFORM)] == [403, 403, 403, 200]
