"""How quick a caller may be, and an address that shows what is worth nothing."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from belfry.api.auth.access import Gate
from belfry.api.auth.keys import ApiKeys, digest
from belfry.api.auth.rates import MOST_NAMES, FailedTokens, TokenBuckets
from belfry.api.routes.app import create_app
from belfry.api.server.limits import PortLimits
from belfry.api.server.server import HttpServer, Manner
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker
from tests.unit.api.test_express import LATER, READER, WRITER, Desk, Holdings
from tests.unit.store.test_lookup import NOW_MS

HOME = "/v1/tenants/orders/schedules"
AT_HOME = "http://127.0.0.1:8700"


def test_a_caller_gets_a_seconds_worth_and_then_its_rate() -> None:
    rate = TokenBuckets(5)
    assert [rate.take("a", 0) for _ in range(5)] == [0] * 5
    assert rate.take("a", 0) == pytest.approx(0.2)
    assert rate.take("b", 0) == 0
    assert rate.take("a", 200) == 0
    assert rate.take("a", 200) > 0


def test_what_costs_much_is_let_in_and_waited_for_afterwards() -> None:
    rate = TokenBuckets(10)
    assert rate.take("a", 0) == 0
    rate.charge("a", 99, 0)
    assert rate.take("a", 0) == pytest.approx(9.1)
    assert rate.take("a", 8_000) > 0
    assert rate.take("a", 9_100) == 0


def test_who_took_last_is_remembered_longest() -> None:
    rate = TokenBuckets(1)
    rate.charge("a", 5, 0)
    for number in range(MOST_NAMES - 1):
        rate.take(f"n{number}", 0)
    rate.charge("a", 5, 0)
    for number in range(MOST_NAMES - 1):
        rate.take(f"m{number}", 0)
    assert rate.take("a", 0) > 0
    assert "n0" not in rate


def test_an_address_that_fails_is_refused_but_for_what_was_good_there() -> None:
    failures = FailedTokens(2)
    for _ in range(2):
        assert failures.wait_s("1.1.1.1", "bad", 0) == 0
        failures.failed("1.1.1.1", 0)
        failures.worked("1.1.1.1", "good")
    assert failures.wait_s("1.1.1.1", "bad", 0) > 0
    assert failures.wait_s("1.1.1.1", None, 0) > 0
    assert failures.wait_s("1.1.1.1", "good", 0) == 0
    assert failures.wait_s("2.2.2.2", "good", 0) == 0
    assert failures.wait_s("1.1.1.1", "bad", 1_000) == 0


def keyed(limits: PortLimits, **more: Any) -> FastAPI:
    entries = [
        {"name": "reader", "sha256": digest(READER), "tenants": ["orders"], **more},
        {"name": "writer", "sha256": digest(WRITER), "tenants": ["orders"], "role": "schedule"},
    ]
    gate = Gate([ApiKeys(json.dumps(entries), None, lambda: float(NOW_MS))])
    return opened(gate, limits)


def opened(gate: Gate, limits: PortLimits) -> FastAPI:
    parts = ApiDependencies(gate, (), lambda: float(NOW_MS))
    given: Any = (Desk(), Holdings(), None, None, None)
    parts.open(Open(*given))
    return create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts, limits)


@pytest.mark.parametrize("query", ["", "?wait=accepted"])
def test_each_line_of_many_counts(query: str) -> None:
    """With 5 a second, 6 lines are a second's worth and one more: the next request waits."""
    client = TestClient(keyed(PortLimits(per_second=5)), AT_HOME)
    lines = "\n".join(json.dumps({**LATER, "schedule_id": f"n{each}"}) for each in range(6))
    headers = {"authorization": f"Bearer {WRITER}", "content-type": "application/x-ndjson"}
    assert client.post(HOME + query, content=lines, headers=headers).status_code == 200
    refused = client.post(HOME + query, content=lines, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")


def test_a_key_may_have_a_rate_of_its_own() -> None:
    client = TestClient(keyed(PortLimits(), requests_per_second=2), AT_HOME)
    headers = {"authorization": f"Bearer {READER}"}
    found = [client.get(f"{HOME}/a", headers=headers).status_code for _ in range(3)]
    assert found == [200, 200, 429]


def test_unknown_tokens_of_one_address_are_refused_unseen() -> None:
    client = TestClient(keyed(PortLimits(failures_per_second=3)), AT_HOME)
    good = {"authorization": f"Bearer {READER}"}
    found = []
    for number in range(4):
        bad = {"authorization": f"Bearer belfry_{number}"}
        answer = client.get(f"{HOME}/a", headers=bad)
        found.append((answer.status_code, answer.json()["code"]))
        assert client.get(f"{HOME}/a", headers=good).status_code == 200
    assert found[2:] == [(401, "unauthorized"), (429, "too_many_failures")]


def test_an_unsigned_claim_of_a_worker_spares_nobody_its_rate() -> None:
    client = TestClient(opened(Gate(), PortLimits(per_second=2)), AT_HOME)
    found = [
        client.get(f"{HOME}/a", headers={"belfry-forwarded": f"{number}."}).status_code
        for number in range(3)
    ]
    assert found == [200, 200, 429]


async def tells(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the address that asks."""
    if scope["type"] == "lifespan":
        for _ in range(2):
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
        return
    client = Request(scope, receive).client
    await PlainTextResponse(client.host if client else "")(scope, receive, send)


@pytest.mark.parametrize(
    ("proxies", "believed"), [([], False), (["127.0.0.0/8"], True), (["10.0.0.0/8"], False)]
)
def test_only_a_proxy_that_is_named_says_who_asks(proxies: list[str], believed: bool) -> None:
    server = HttpServer(tells, "127.0.0.1", 0, manner=Manner(proxies))
    try:
        with socket.create_connection(("127.0.0.1", server.start()), timeout=10) as line:
            line.sendall(
                b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.7\r\n"
                b"Connection: close\r\n\r\n"
            )
            heard = b"".join(iter(lambda: line.recv(65_536), b""))
    finally:
        server.stop()
    assert heard.endswith(b"192.0.2.7" if believed else b"127.0.0.1")
