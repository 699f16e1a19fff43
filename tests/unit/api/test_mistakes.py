"""A mistake in a body or a parameter: what was given, what is wrong, what is allowed."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.testclient import TestClient

from belfry.api.json.bodies import DefinitionBody, ScheduleBody
from belfry.api.json.parsing import read_json
from belfry.api.problems import Problem
from belfry.api.routes.tenants import PolicyBody

WHOLE: dict[str, Any] = {"schedule_id": "a", "delay_ms": 1}
INSTANT = "is no instant: give an RFC 3339 date and time with its offset, such as"


def messages(kind: type[BaseModel], body: Any) -> dict[str, str]:
    with pytest.raises(Problem) as refused:
        read_json(orjson.dumps(body), kind)
    return {each["where"]: each["message"] for each in refused.value.more["errors"]}


@pytest.mark.parametrize(
    ("body", "where", "message"),
    [
        ({"delay_ms": "5s"}, "delay_ms", "'5s' is no whole number of milliseconds, such as 300000"),
        ({"delay_ms": -5}, "delay_ms", "-5 is not allowed: 0 or more"),
        ({"delay_ms": 1e3}, "delay_ms", "1000.0 is no whole number of milliseconds, such as"),
        ({"delay_ms": 2**60}, "delay_ms", f"{2**60} is not allowed: at most {2**53}"),
        ({"at": True}, "at", f"true {INSTANT}"),
        ({"at": "tomorrow"}, "at", f"'tomorrow' {INSTANT}"),
        ({"max_fires": "3"}, "max_fires", "'3' is no whole number, such as 3"),
        ({"misfire": "skip"}, "misfire", "'skip' is not allowed: FIRE_ONCE, FIRE_ALL or SKIP"),
        ({"serial": "yes"}, "serial", "'yes' is neither true nor false"),
        ({"schedule_id": 5}, "schedule_id", "5 is no text"),
        ({"schedule_id": ""}, "schedule_id", "'' is too short: it has to have 1 or more"),
        ({"group": "g" * 256}, "group", "it is too long: at most 255 characters are allowed"),
        ({"http_targets": "http://h/"}, "http_targets", "it is no list, such as []"),
        ({"headers": [{}] * 257}, "headers", "it has 257 items; at most 256 are allowed"),
    ],
)
def test_a_value_that_does_not_fit(body: dict[str, Any], where: str, message: str) -> None:
    assert messages(ScheduleBody, {**WHOLE, **body})[where].startswith(message)


def test_what_is_missing_and_what_is_no_object() -> None:
    missing = "it is missing, and has to be given"
    assert messages(ScheduleBody, {"delay_ms": 1})["schedule_id"] == missing
    assert messages(ScheduleBody, [])["body"] == "it is no object, such as {}"
    assert messages(ScheduleBody, None)["body"] == "null is no object, such as {}"


def test_a_symbol_for_readers_is_not_offered() -> None:
    allowed = "'X' is not allowed: PAYLOAD or ENVELOPE"
    assert messages(PolicyBody, {"delivery": "X"})["delivery"] == allowed


def test_contents_and_credentials_are_not_told_again() -> None:
    header = [{"name": "authorization", "value": 12345}]
    body = {
        **WHOLE,
        "payload_text": 12345,
        "http_targets": [{"url": "http://h", "headers": header}],
    }
    assert set(messages(ScheduleBody, body).values()) == {"it is no text"}


@pytest.mark.parametrize(
    ("kind", "name", "why"),
    [
        (ScheduleBody, "tenant", "the address names the tenant"),
        (ScheduleBody, "action", "the method and the address say it"),
        (DefinitionBody, "schedule_id", "the address names the schedule"),
        (PolicyBody, "tenant", "the address names the tenant"),
    ],
)
def test_a_field_that_the_address_says(kind: type[BaseModel], name: str, why: str) -> None:
    assert messages(kind, {name: "x"})[name].startswith(f"unknown field {name!r}: {why}")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v1/tenants/t/schedules?limit=0", "query.limit: '0' is not allowed: 1 or more"),
        ("/v1/tenants/t/schedules?limit=x", "query.limit: 'x' is no whole number, such as 3"),
        ("/v1/tenants/t/schedules?state=x", "query.state: 'x' is not allowed: PENDING, "),
        ("/v1/tenants/t/schedules?due_from=x", f"query.due_from: 'x' {INSTANT}"),
        (
            "/v1/tenants/t/schedules?limit=5&limit=9",
            "query.limit: limit is given 2 times, and takes",
        ),
        ("/v1/tenants/t/counts?due_from=1&due_from=2", "query.due_from: due_from is given 2 times"),
        ("/v1/tenants/t/history?from=1&from=1", "query.from: from is given 2 times, and takes one"),
        ("/v1/tenants/t/schedules?limti=5&limti=9", "query.limti: unknown parameter 'limti'; did"),
        ("/v1/tenants/t/schedules?due_from=2&due_until=1", "query: due_from is after due_until"),
        ("/v1/tenants/t/counts?due_from=2&due_until=1", "query: due_from is after due_until"),
        ("/v1/tenants/a..b/schedules", "path.tenant: Tenant 'a..b' is not allowed: 1-100 of"),
    ],
)
def test_a_parameter_that_does_not_fit(app: FastAPI, path: str, message: str) -> None:
    client = TestClient(app, base_url="http://127.0.0.1:8700")
    assert client.get(path).json()["detail"].startswith(message)


@pytest.mark.parametrize(
    "path", ["schedules?due_from=1&due_until=1", "schedules/a/history?outcome=FIRED&outcome=MISSED"]
)
def test_an_empty_range_and_a_list_are_no_mistakes(app: FastAPI, path: str) -> None:
    """The worker behind it has just begun: it is asked."""
    client = TestClient(app, base_url="http://127.0.0.1:8700")
    assert client.get(f"/v1/tenants/t/{path}").status_code == 503


@pytest.mark.parametrize(
    ("named", "status", "detail"),
    [
        ({"schedule_id": "order/1", "tenant": "t"}, 503, ""),
        ({"schedule_id": None}, 503, ""),
        ({"schedule_id": "order/2"}, 422, "schedule_id: the body says 'order/2', and the address"),
        ({"tenant": "T"}, 422, "tenant: the body says 'T', and the address 't': leave it out"),
        ({"schedule_id": 1}, 422, "schedule_id: 1 is no text"),
    ],
)
def test_a_body_may_name_what_the_address_names(
    app: FastAPI, named: dict[str, Any], status: int, detail: str
) -> None:
    client = TestClient(app, base_url="http://127.0.0.1:8700")
    answer = client.put("/v1/tenants/t/schedules/order%2F1", json={"delay_ms": 1, **named})
    assert answer.status_code == status
    assert answer.json()["detail"].startswith(detail)
