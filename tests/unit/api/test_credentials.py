"""Credentials that stand in a target's header as they are: taken, and warned of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from starlette.responses import Response

from belfry.api.json.credentials import WARNING, warned_of_policy
from belfry.schedules.targets import HttpTarget
from tests.attack.door import OWN, Door

KEYS = [{"name": "own", "sha256": "belfry_own", "tenants": [OWN], "role": "schedule"}]
PATH = f"/v1/tenants/{OWN}/schedules"
SHOWN = {"authorization": "Bearer belfry_own", "content-type": "application/json"}


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door(KEYS, opened=True)
    yield door
    door.close()


def body(value: str, **more: Any) -> bytes:
    headers = [{"name": "Authorization", "value": value}]
    targets = [{"url": "https://a.example.com/", "headers": headers}]
    return orjson.dumps({"at": "2030-01-01T00:00:00Z", "http_targets": targets, **more})


@pytest.mark.parametrize(
    ("value", "is_warned"),
    [("Bearer abc", True), ("Bearer ${env:BELFRY_SECRET_X}", False), ("", False)],
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_literal_credential_is_answered_with_a_warning(
    door: Door, method: str, value: str, is_warned: bool
) -> None:
    named = {"schedule_id": "a"} if method == "POST" else {}
    path = PATH if method == "POST" else f"{PATH}/a"
    answer = door(method, path, SHOWN, body(value, **named))
    assert answer.status in (200, 201)
    assert (WARNING in answer.headers) is is_warned
    assert "abc" not in answer.headers.get(WARNING, "")


def test_a_line_of_many_says_it_beside_its_outcome(door: Door) -> None:
    lines = [body(each, schedule_id=each[7:9]) for each in ("Bearer abc", "Bearer ${file:x}")]
    shown = {**SHOWN, "content-type": "application/x-ndjson"}
    answer = door("POST", PATH, shown, b"\n".join(lines))
    first, second = map(orjson.loads, answer.body.splitlines())
    assert "authorization" in first["warning"]
    assert "warning" not in second


def test_a_policy_is_warned_of_too() -> None:
    target = HttpTarget("https://a/", headers=(("x-api-key", "abc"),))
    assert WARNING in warned_of_policy(Response(), [target]).headers
    assert WARNING not in warned_of_policy(Response(), [HttpTarget("https://a/")]).headers
