"""What of HTTP reaches the audit log: who, from where, what, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import Principal, Role
from belfry.api.routes.app import create_app
from belfry.api.routes.audited import CHANGES_NOTHING, LOOKS, MOST_OBJECTS, asked_by
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.telemetry.metrics import Metrics
from belfry.tenants.policy import TenantPolicy
from belfry.wire.audit import AuditEvent
from tests.attack.door import OTHER, OWN, Door
from tests.unit.api.conftest import FakeWorker
from tests.unit.api.test_policies import Policies, principals

KEYS = [
    {"name": "own", "sha256": "belfry_own", "tenants": [OWN], "role": "schedule"},
    {"name": "reads", "sha256": "belfry_reads", "tenants": [OWN], "role": "read"},
]
PATH = f"/v1/tenants/{OWN}/schedules"
SHOWN = {"authorization": "Bearer belfry_own", "content-type": "application/json"}
TRACE = "0af7651916cd43dd8448eb211c80319c"
AT = "2030-01-01T00:00:00Z"


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door(KEYS, opened=True)
    yield door
    door.close()


def noted(door: Door) -> list[AuditEvent]:
    return door.trail.take(1_000, 0)


def test_a_change_is_noted_with_all_that_is_known_of_it(door: Door) -> None:
    headers = {**SHOWN, "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    body = orjson.dumps({"at": AT, "request_id": "r-1"})
    assert door("PUT", f"{PATH}/order%2F1", headers, body).status == 201
    (event,) = noted(door)
    assert event == AuditEvent(
        at=event.at,
        action="schedule.put",
        result="DONE",
        caller="own",
        role="schedule",
        source_address="127.0.0.1",
        tenant=OWN,
        object="order/1",
        status=201,
        outcome="ACCEPTED",
        request_id="r-1",
        trace_id=TRACE,
    )


def test_the_reason_of_an_action_is_noted_with_it(door: Door) -> None:
    door("PUT", f"{PATH}/a", SHOWN, orjson.dumps({"at": AT}))
    door("POST", f"{PATH}/a/pause?reason=the+customer+asks", SHOWN)
    door("POST", f"{PATH}/none/dry-run?reason=a+look", SHOWN)
    assert [each.reason for each in noted(door)] == [None, "the customer asks", "a look"]


@pytest.mark.parametrize(
    ("method", "path", "body", "action"),
    [
        ("POST", PATH, {"schedule_id": "a", "at": AT}, "schedule.create"),
        ("PUT", f"{PATH}/a", {"at": AT}, "schedule.put"),
        ("DELETE", f"{PATH}/a", None, "schedule.cancel"),
        ("POST", f"{PATH}/a/pause", None, "schedule.pause"),
        ("POST", f"{PATH}/a/resume", None, "schedule.resume"),
        ("POST", f"{PATH}/a/trigger", None, "schedule.trigger"),
        ("POST", f"{PATH}/a/ack?fire_id={'0f' * 16}", None, "schedule.ack"),
        ("POST", f"{PATH}/none/dry-run", None, "schedule.dry-run"),
    ],
)
def test_each_change_of_a_schedule_is_noted_once(
    door: Door, method: str, path: str, body: dict[str, Any] | None, action: str
) -> None:
    door(method, path, SHOWN, b"" if body is None else orjson.dumps(body))
    (event,) = noted(door)
    assert (event.action, event.caller, event.tenant) == (action, "own", OWN)
    assert event.object == ("none" if action == "schedule.dry-run" else "a")


def test_many_are_noted_with_each_schedule_and_its_outcome(door: Door) -> None:
    lines = [orjson.dumps({"schedule_id": f"s{n}", "at": AT}) for n in range(MOST_OBJECTS + 2)]
    lines.append(b'{"schedule_id": "bad"}')
    shown = {**SHOWN, "content-type": "application/x-ndjson"}
    assert door("POST", PATH, shown, b"\n".join(lines)).status == 200
    events = noted(door)
    assert [len(each.objects) for each in events] == [MOST_OBJECTS, 3]
    assert {each.action for each in events} == {"schedule.create_many"}
    found = {each.id: (each.outcome, each.code) for event in events for each in event.objects}
    assert found["s0"] == ("ACCEPTED", None)
    assert len(found) == MOST_OBJECTS + 3
    assert [code for outcome, code in found.values() if outcome is None] == ["bad_body"]


def test_what_was_asked_wrongly_is_noted_as_rejected(door: Door) -> None:
    assert door("POST", PATH, SHOWN, b'{"schedule_id": "a"}').status == 422
    (event,) = noted(door)
    assert (event.result, event.status, event.caller) == ("REJECTED", 422, "own")
    assert event.code


def test_reads_are_not_noted_unless_they_are_refused(door: Door) -> None:
    assert door("GET", f"{PATH}/a", SHOWN).status == 200
    assert door("GET", "/healthz/live").status == 200
    assert noted(door) == []
    assert door("GET", f"/v1/tenants/{OTHER}/schedules/a", SHOWN).status == 403
    (event,) = noted(door)
    assert (event.action, event.result, event.code) == ("read", "REFUSED", "forbidden")
    assert (event.caller, event.role, event.tenant) == ("own", "schedule", OTHER)


@pytest.mark.parametrize(
    ("shown", "caller", "status"),
    [({}, "", 401), ({"authorization": "Bearer belfry_reads"}, "reads", 403)],
)
def test_a_change_without_the_right_is_noted_as_refused(
    door: Door, shown: dict[str, str], caller: str, status: int
) -> None:
    assert door("DELETE", f"{PATH}/a", shown).status == status
    (event,) = noted(door)
    assert (event.action, event.result, event.caller, event.status, event.object) == (
        "schedule.cancel",
        "REFUSED",
        caller,
        status,
        "a",
    )


def test_who_is_too_quick_is_noted_by_name() -> None:
    class Slow(Gate):
        is_open = False

        async def admit(self, _authorization: str | None) -> Principal:
            return Principal("quick", (OWN,), Role.READ, per_second=1.0)

    parts = ApiDependencies(Slow(), (), lambda: 0.0)
    with TestClient(
        create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts),
        base_url="http://127.0.0.1:8700",
    ) as client:
        statuses = [client.get("/v1/cluster").status_code for _ in range(3)]
    assert statuses[-1] == 429
    events = parts.trail.take(10, 0)
    assert {(each.caller, each.code, each.result) for each in events} == {
        ("quick", "too_many_requests", "REFUSED")
    }


# -- policies ----------------------------------------------------------------------------------


@pytest.fixture
def policies() -> Policies:
    return Policies()


def asks(policies: Policies) -> tuple[ApiDependencies, TestClient]:
    platform = Principal("platform", ("*",), Role.OPERATE)
    admin = Principal("admin", ("big",), Role.ADMIN)
    parts = ApiDependencies(principals(platform, admin), (), lambda: 0.0)
    opened: Any = (None, None, None, None, policies)
    parts.open(Open(*opened))
    app = create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts)
    return parts, TestClient(app, base_url="http://127.0.0.1:8700/v1/tenants")


def test_a_policy_is_noted_with_the_fields_that_changed(policies: Policies) -> None:
    policies.kept = {"big": TenantPolicy("big", max_pending=10)}
    parts, client = asks(policies)
    target = {"url": "https://a.example/?t=s3cret", "headers": [["authorization", "s3cret"]]}
    with client:
        shown = {"authorization": "Bearer platform"}
        answer = client.put(
            "/big", json={"max_pending": 11, "http_targets": [target]}, headers=shown
        )
        assert answer.status_code == 200
    (event,) = parts.trail.take(10, 0)
    assert (event.action, event.caller, event.tenant) == ("policy.set", "platform", "big")
    changed = {each.field: (each.before, each.after) for each in event.changes}
    assert changed.keys() == {"max_pending", "http_targets"}
    assert changed["max_pending"] == ("10", "11")
    assert "s3cret" not in str(event)


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("query", ["", "&cancel_pending=true"])
def test_the_reason_of_a_change_is_noted_and_goes_along(
    policies: Policies, method: str, query: str
) -> None:
    policies.kept = {"big": TenantPolicy("big")}
    parts, client = asks(policies)
    address = f"/big?reason=month%20end{query if method == 'DELETE' else ''}"
    with client:
        answer = client.request(
            method, address, headers={"authorization": "Bearer platform"},
            json={"max_pending": 11} if method == "PUT" else None,
        )  # fmt: skip
        assert answer.status_code in (200, 204)
    (event,) = parts.trail.take(10, 0)
    assert (event.reason, policies.reason) == ("month end", "month end")


def test_a_policy_that_is_the_platforms_is_noted_with_what_was_tried(policies: Policies) -> None:
    policies.kept = {"big": TenantPolicy("big", max_pending=10)}
    parts, client = asks(policies)
    with client:
        shown = {"authorization": "Bearer admin"}
        answer = client.put("/big", json={"max_pending": 11}, headers=shown)
        assert answer.status_code == 403
    (event,) = parts.trail.take(10, 0)
    assert (event.action, event.result, event.caller) == ("policy.set", "REFUSED", "admin")
    assert [each.field for each in event.changes] == ["max_pending"]


def test_a_removal_is_noted_with_what_it_takes_away(policies: Policies) -> None:
    policies.kept = {"big": TenantPolicy("big", max_pending=10)}
    parts, client = asks(policies)
    with client:
        shown = {"authorization": "Bearer platform"}
        assert client.delete("/big", headers=shown).status_code == 204
    (event,) = parts.trail.take(10, 0)
    assert (event.action, event.result, event.object) == ("policy.remove", "DONE", "big")
    assert [(each.field, each.before) for each in event.changes] == [("max_pending", "10")]


def test_every_route_that_may_change_something_has_a_name(policies: Policies) -> None:
    """A new one gets a row in the table, or its changes would be hard to find in the log."""
    _, client = asks(policies)
    app: Any = client.app
    unnamed = [
        (method, route.path)
        for routes in app.state.routers
        for route in routes.routes
        if getattr(route, "include_in_schema", False)
        for method in set(route.methods) - CHANGES_NOTHING
        if route.path not in LOOKS
        and "." not in asked_by(method, route.path.replace(":path", "")).action
    ]
    assert unnamed == []
