"""API keys: how each is used, which end soon, and who is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry
from starlette.responses import Response
from structlog.testing import capture_logs

from belfry.api.auth.access import Gate
from belfry.api.auth.key_uses import SOON_MS, KeyRow, id_of, merged
from belfry.api.auth.keys import ApiKeys, digest
from belfry.api.auth.principal import Principal, Role
from belfry.api.routes.app import create_app
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.peers import PeerUnreachable
from belfry.balance.assignment_map import AssignedMember, AssignmentMap
from belfry.cli.api_key import key_text
from belfry.cli.check import Status
from belfry.cli.doctor_worker import keys_checks
from belfry.telemetry.metrics import KEY_STATES, Metrics
from tests.unit.api.conftest import FakeWorker

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
NAMES = ("platform", "orders", "spare", "ending", "ended")


def key_of(name: str) -> str:
    return f"belfry_{name}-key"


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "sha256": digest(key_of(name)), "tenants": ["orders"], **more}


ENTRIES = [
    entry("platform", role="operate") | {"tenants": ["*"]},
    entry("orders", role="schedule"),
    entry("spare"),
    entry("ending", expires="2027-01-20T08:00:00Z"),
    entry("ended", expires="2027-01-14T08:00:00Z"),
]


class Clock:
    """A clock that the test holds."""

    def __init__(self) -> None:
        self.now_ms = float(NOW_MS)

    def __call__(self) -> float:
        return self.now_ms


class Site:
    """A worker with these keys, and what it says."""

    def __init__(self) -> None:
        self.clock, self.view = Clock(), FakeWorker()
        self.keys = ApiKeys(json.dumps(ENTRIES), None, self.clock)
        self.parts = ApiDependencies(Gate([self.keys], self.keys), (), self.clock)
        self.metrics = Metrics(CollectorRegistry())
        app = create_app(self.view, self.metrics, (), self.parts)
        self.client = TestClient(app, base_url="http://127.0.0.1:8700", client=("192.0.2.9", 5))

    def get(self, path: str, name: str) -> Any:
        return self.client.get(path, headers={"authorization": f"Bearer {key_of(name)}"})

    def shown(self) -> dict[str, dict[str, Any]]:
        answer = self.get("/v1/keys?alone=true", "platform")
        assert answer.status_code == 200, answer.text
        return {each["name"]: each for each in answer.json()["keys"]}


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    with site.client:
        yield site


def test_each_key_tells_when_it_was_used_and_from_where(site: Site) -> None:
    for _ in range(3):
        site.clock.now_ms += 1_000
        assert site.get("/v1/cluster", "orders").status_code == 200
    site.clock.now_ms += 60_000
    found = site.shown()
    assert found.keys() == set(NAMES)
    orders = found["orders"]
    assert (orders["uses"], orders["last_used_from"]) == (3, "192.0.2.9")
    assert orders["last_used_at"] == "2027-01-15T08:00:03.000Z"
    assert (orders["role"], orders["tenants"], orders["expires_at"]) == (
        "schedule",
        ["orders"],
        None,
    )
    assert (found["spare"]["uses"], found["spare"]["last_used_at"]) == (0, None)


def test_a_use_after_the_end_counts_for_itself(site: Site) -> None:
    assert site.get("/v1/cluster", "ended").status_code == 401
    found = site.shown()["ended"]
    assert (found["state"], found["uses"], found["refused"]) == ("expired", 0, 1)


def test_neither_a_key_nor_its_digest_is_told(site: Site) -> None:
    text = site.get("/v1/keys", "platform").text + site.client.get("/metrics").text
    for name in NAMES:
        assert key_of(name) not in text
        assert digest(key_of(name)) not in text
        assert id_of(digest(key_of(name))) in text


@pytest.mark.parametrize("name", ["orders", "spare", "ending"])
def test_only_who_operates_all_tenants_is_told(site: Site, name: str) -> None:
    assert site.get("/v1/keys", name).status_code == 403


def test_who_operates_some_tenants_is_not_told() -> None:
    class Some:
        async def principal(self, _token: str) -> Principal | None:
            return Principal("some", ("orders",), Role.OPERATE)

    parts = ApiDependencies(Gate([Some()]), (), lambda: float(NOW_MS))
    app = create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts)
    with TestClient(app, base_url="http://127.0.0.1:8700") as client:
        assert client.get("/v1/keys", headers={"authorization": "Bearer x"}).status_code == 403


def test_all_workers_are_asked_and_those_that_are_silent_named(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.get("/v1/cluster", "orders")
    mine = site.shown()["orders"]
    later = {**mine, "uses": 40, "last_used_at": "2027-01-15T08:00:09.000Z"}
    later["last_used_from"] = "192.0.2.77"
    told = {"workers": 1, "counted_since": "2027-01-15T00:00:00.000Z", "silent": []}
    entries = [
        AssignedMember("worker-1"),
        AssignedMember("two", http="http://two"),
        AssignedMember("three", http="http://three"),
    ]
    monkeypatch.setattr(site.view, "assignment_map", lambda: AssignmentMap(tuple(entries)))

    async def ask(url: str, target: Target, _principal: Principal, _headers: Any) -> Response:
        if url == "http://three":
            raise PeerUnreachable(url)
        assert target.query == "alone=true"
        return Response(json.dumps({**told, "keys": [later]}), 200)

    monkeypatch.setattr(site.parts.peers, "ask", ask)
    answer = site.get("/v1/keys", "platform").json()
    found = {each["name"]: each for each in answer["keys"]}
    assert (answer["silent"], answer["workers"]) == (["three"], 2)
    assert answer["counted_since"] == told["counted_since"]
    orders = found["orders"]
    assert (orders["uses"], orders["last_used_from"], orders["workers"]) == (41, "192.0.2.77", 2)
    assert found["spare"]["workers"] == 1


def test_rows_of_workers_add_up() -> None:
    row = KeyRow("a", "orders", "read", ("*",), uses=1, last_ms=5, last_from="x")
    other = KeyRow("a", "orders", "read", ("*",), uses=2, refused=1, last_ms=4, last_from="y")
    (both,) = merged([row, other])
    assert (both.uses, both.refused, both.workers) == (3, 1, 2)
    assert (both.last_ms, both.last_from) == (5, "x")


def test_metrics_tell_of_keys_without_their_names(site: Site) -> None:
    site.get("/v1/cluster", "orders")
    text = site.client.get("/metrics").text
    own = id_of(digest(key_of("orders")))
    assert 'belfry_api_keys{state="valid"} 3.0' in text
    assert 'belfry_api_keys{state="expiring"} 1.0' in text
    assert 'belfry_api_keys{state="expired"} 1.0' in text
    assert f'belfry_api_key_uses_total{{key="{own}"}} 1.0' in text
    assert f'belfry_api_key_last_use_timestamp_seconds{{key="{own}"}} 1.8e+09' in text
    ending = id_of(digest(key_of("ending")))
    assert f'belfry_api_key_expiry_timestamp_seconds{{key="{ending}"}}' in text
    assert '"orders"' not in text


def test_a_key_that_ends_soon_is_warned_of_once_a_day(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "keys.json"
    path.write_text(json.dumps(ENTRIES))
    with capture_logs() as said:
        keys = ApiKeys(None, path, clock)
    assert [each["name"] for each in said] == ["ending"]
    with capture_logs() as said:
        for _ in range(23):
            clock.now_ms += 3_600_000
            keys._look()
            keys._warn()
    assert said == []
    with capture_logs() as said:
        clock.now_ms += 3_600_000
        keys._warn()
    assert [each["name"] for each in said] == ["ending"]


def test_a_key_that_left_the_list_is_forgotten(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "keys.json"
    path.write_text(json.dumps(ENTRIES))
    keys = ApiKeys(None, path, clock)
    keys.used(Principal("orders", ("orders",), Role.READ, None, digest(key_of("orders"))), "x")
    path.write_text(json.dumps(ENTRIES[:1]))
    clock.now_ms += 2_000
    keys._look()
    assert [row.name for row in keys.rows()] == ["platform"]
    assert keys.uses._uses == {}


@pytest.mark.parametrize(
    ("left_ms", "state"),
    [(SOON_MS + 1, "valid"), (SOON_MS, "expiring"), (1, "expiring"), (0, "expired")],
)
def test_states_by_what_is_left(left_ms: int, state: str) -> None:
    row = KeyRow("a", "x", "read", (), expires_ms=NOW_MS + left_ms)
    assert row.state(NOW_MS) == state
    assert state in KEY_STATES


def test_doctor_warns_of_keys_that_end_soon(site: Site) -> None:
    (check,) = keys_checks(site.client.get("/metrics").text)
    assert check.status is Status.RISK
    assert "1 expiring" in check.detail
    fine = 'belfry_api_keys{state="valid"} 2.0\nbelfry_api_keys{state="expiring"} 0.0\n'
    assert [each.status for each in keys_checks(fine)] == [Status.OK]
    assert list(keys_checks("")) == []


def test_the_command_tells_all_of_a_key_in_a_line(site: Site) -> None:
    site.get("/v1/cluster", "orders")
    line = key_text(site.shown()["orders"], 2)
    for part in ("orders", "schedule", "used 1 times", "192.0.2.9", "known to 1 of 2 workers"):
        assert part in line
    assert "not used" in key_text(site.shown()["spare"], 1)
