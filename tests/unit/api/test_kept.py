"""Rejected requests, deliveries and dead letters over HTTP: whose they are, and how pages go on."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate
from belfry.api.auth.keys import ApiKeys, digest, new_key
from belfry.api.auth.principal import Role
from belfry.api.json.cursors import question, write_cursor
from belfry.api.routes.app import create_app
from belfry.api.workers.kept import (
    Before,
    KeptDelivery,
    KeptPage,
    ReadableValue,
    RejectedRequest,
    UnreadableValue,
)
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.registry.answers import RegistryUnreachableError
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker

BASE: Final = "http://127.0.0.1:8700"
REJECTED: Final = RejectedRequest(
    at_ms=1_700_000_000_000, tenant="mine", code="bad_cron", reason="why", source=("s", 1, 7),
    key=b"\xff", headers=(("h", b"\xfe"), ("n", None)), size_bytes=9,
    request={"cron": "x", "payload": b"p"}, sample=None,
)  # fmt: skip
LETTER: Final = KeptDelivery(
    tenant="mine", schedule_id="a", fire_id="f", at_ms=1, fired_ms=2, state="given_up",
    code="timeout", reason="r", attempt=3, attempts=3, targets=("https://a.example/?***",),
    place=(1, 7),
)  # fmt: skip


class FakeTopics:
    """Keeps what it is asked; older records lie before offset 5 of partition 0."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.fails = False

    def rejected(self, tenant: str | None, before: Before | None) -> KeptPage[RejectedRequest]:
        self.asked.append((tenant, before))
        if self.fails:
            raise ConnectionError("nobody answers")
        return KeptPage([REJECTED], 12, None if before else {0: 5, 3: 2**40})

    def dead_letters(self, tenant: str, before: Before | None) -> KeptPage[KeptDelivery]:
        self.asked.append((tenant, before))
        return KeptPage([LETTER], 12, None)

    def open_deliveries(self, tenant: str) -> KeptPage[KeptDelivery]:
        self.asked.append(tenant)
        return KeptPage([], 12, None)

    def request(
        self, tenant: str, topic: str | None, place: tuple[int, int]
    ) -> dict[str, Any] | None:
        self.asked.append((tenant, topic, place))
        if place != (1, 7):
            return None
        found = {"tenant": tenant, "schedule_id": "a", "at": 5, "delay_ms": 9, "payload": b"\xff"}
        cut = {"payload_size_bytes": 9_000, "payload_sha256": "5f2c"}
        return found | cut | {"headers": [["h", b"v"]]}

    def avro(self, value: bytes) -> ReadableValue:
        if value == b"no":
            raise UnreadableValue("It says nothing.")
        if value == b"out":
            raise RegistryUnreachableError("The schema registry at http://r:8081 does not answer")
        return ReadableValue("shop.Order", {"id": 7, "raw": [b"\xff", b"text"]})

    def replay(self, tenant: str, place: tuple[int, int]) -> bool:
        self.asked.append((tenant, place))
        return place == (1, 7)


class Caller:
    """A client with a key of a role, bound to tenants."""

    def __init__(self, role: str, *tenants: str) -> None:
        key = new_key()
        entry = {"name": "n", "sha256": digest(key), "tenants": tenants, "role": role}
        keys = ApiKeys(json.dumps([entry]), None, lambda: 0.0)
        parts = ApiDependencies(Gate([keys]), (), lambda: 0.0)
        self.topics, self.trail = FakeTopics(), parts.trail
        opened: Any = (None, None, None, None, None, self.topics)
        parts.open(Open(*opened))
        app = create_app(FakeWorker(), Metrics(CollectorRegistry()), parts=parts)
        self._http = TestClient(app, BASE, raise_server_exceptions=False)
        self._headers = {"authorization": f"Bearer {key}"}

    def get(self, path: str) -> Any:
        return self._http.get(path, headers=self._headers)

    def post(self, path: str, body: Any = None) -> Any:
        return self._http.post(path, headers=self._headers, json=body)


READS: Final = ("rejections", "deliveries", "dead-letters")


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("what", READS)
def test_every_role_reads_its_own_tenants_and_no_other(role: Role, what: str) -> None:
    caller = Caller(role, "mine")
    assert caller.get(f"/v1/tenants/mine/{what}").status_code == 200
    assert caller.get(f"/v1/tenants/other/{what}").status_code == 403
    assert len(caller.topics.asked) == 1


@pytest.mark.parametrize("role", list(Role))
def test_to_deliver_again_takes_the_role_schedule(role: Role) -> None:
    caller = Caller(role, "mine")
    status = 403 if role is Role.READ else 200
    assert caller.post("/v1/tenants/mine/dead-letters/1-7/replay").status_code == status
    assert caller.post("/v1/tenants/other/dead-letters/1-7/replay").status_code == 403
    assert caller.topics.asked == ([] if role is Role.READ else [("mine", (1, 7))])


def test_why_something_is_delivered_again_is_noted() -> None:
    caller = Caller("schedule", "mine")
    caller.post("/v1/tenants/mine/dead-letters/1-7/replay?reason=mended")
    assert [each.reason for each in caller.trail.take(10, 0)] == ["mended"]


def test_rejections_of_all_tenants_are_for_who_sees_all() -> None:
    assert Caller("operate", "mine", "m*").get("/v1/rejections").status_code == 403
    caller = Caller("read", "*")
    assert caller.get("/v1/rejections").status_code == 200
    assert caller.topics.asked == [(None, None)]


def test_what_is_text_is_text_and_what_is_none_is_base64() -> None:
    (told,) = Caller("read", "mine").get("/v1/tenants/mine/rejections").json()["rejections"]
    assert told["key_base64"] == "/w=="
    assert [each["value_base64"] for each in told["headers"]] == ["/g==", None]
    assert told["request"] == {"cron": "x", "payload": {"value_text": "p"}}
    assert (told["topic"], told["partition"], told["offset"]) == ("s", 1, 7)


def test_a_page_goes_on_where_the_one_before_ended() -> None:
    caller = Caller("read", "mine", "other")
    cursor = caller.get("/v1/tenants/mine/rejections").json()["cursor"]
    second = caller.get(f"/v1/tenants/mine/rejections?cursor={cursor}")
    assert second.json()["cursor"] is None
    assert caller.topics.asked[1] == ("mine", {0: 5, 3: 2**40})
    for path in ("other/rejections", "mine/dead-letters"):
        assert caller.get(f"/v1/tenants/{path}?cursor={cursor}").json()["code"] == "bad_cursor"
    made_up = write_cursor(question("rejections", "mine"), 3, b"short")
    answer = caller.get(f"/v1/tenants/mine/rejections?cursor={made_up}")
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_cursor")


@pytest.mark.parametrize("place", ["1-8", "x", "1-", "-1-7", "1-7-7"])
def test_a_letter_that_is_not_there_is_not_delivered(place: str) -> None:
    answer = Caller("schedule", "mine").post(f"/v1/tenants/mine/dead-letters/{place}/replay")
    assert answer.status_code == (404 if place == "1-8" else 422)


def test_kafka_that_does_not_answer_is_told() -> None:
    caller = Caller("read", "mine")
    caller.topics.fails = True
    answer = caller.get("/v1/tenants/mine/rejections")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.headers["retry-after"]


@pytest.mark.parametrize("role", list(Role))
def test_a_request_is_shown_to_its_tenant_in_the_names_of_bodies(role: Role) -> None:
    caller = Caller(role, "mine")
    told = caller.get("/v1/tenants/mine/requests/1-7?topic=s").json()
    assert caller.topics.asked == [("mine", "s", (1, 7))]
    assert told == {
        "tenant": "mine",
        "schedule_id": "a",
        "request": {
            "at": "1970-01-01T00:00:00.005Z",
            "delay_ms": 9,
            "payload_base64": "/w==",
            "payload_size_bytes": 9_000,
            "payload_sha256": "5f2c",
            "headers": [["h", {"value_text": "v"}]],
        },
    }
    assert caller.get("/v1/tenants/other/requests/1-7").status_code == 403
    assert caller.get("/v1/tenants/mine/requests/1-8").json()["code"] == "not_found"
    assert caller.get("/v1/tenants/mine/requests/x").status_code == 422


def test_bytes_are_decoded_or_it_is_said_why_not() -> None:
    caller = Caller("read", "mine")
    told = caller.post("/v1/decode", {"value_base64": "YQ=="}).json()
    assert told == {"avro_schema": "shop.Order", "value": {"id": 7, "raw": ["/w==", "text"]}}
    for given, code in (("bm8=", "not_decoded"), ("%", "bad_body"), (7, "bad_body")):
        answer = caller.post("/v1/decode", {"value_base64": given})
        assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_a_registry_that_does_not_answer_is_named() -> None:
    answer = Caller("read", "mine").post("/v1/decode", {"value_base64": "b3V0"})
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.json()["detail"].startswith("The schema registry at http://r:8081 ")
    assert "Kafka" not in answer.json()["detail"]
    assert answer.headers["retry-after"]
