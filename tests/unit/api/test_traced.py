"""A span for each request whose caller samples it; what is inside goes on with its context."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from threading import Lock
from typing import Any

import pytest
import structlog
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate
from belfry.api.auth.keys import ApiKeys, digest
from belfry.api.routes.app import create_app
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.api.workers.request_client import RequestClient
from belfry.client.verdict import Verdict
from belfry.settings import Settings
from belfry.telemetry.logs import configure
from belfry.telemetry.metrics import Metrics
from belfry.telemetry.spans import Span
from belfry.telemetry.tracing import CURRENT, Tracing
from belfry.wire.claims import proves
from belfry.wire.trace_context import TraceContext, sampled_in
from tests.unit.api.conftest import FakeWorker
from tests.unit.api.test_express import HELD, HOME, LATER, WRITER, Desk
from tests.unit.store.test_lookup import NOW_MS

CONTEXT = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", True, "v=1")
SHOWN = {name: (value or b"").decode() for name, value in CONTEXT.headers()}


class Tracer(Tracing):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.now_ms = lambda: float(NOW_MS)

    def put(self, spans: Any) -> None:
        self.spans += spans


class SeeingDesk(Desk):
    """Sees within which span it is asked."""

    def __init__(self) -> None:
        self.seen: list[TraceContext | None] = []

    async def ask(self, fields: dict[str, Any], home: int, timeout_s: float) -> Verdict:
        self.seen.append(CURRENT.get())
        structlog.get_logger("belfry").info("asked")
        return await super().ask(fields, home, timeout_s)


@pytest.fixture
def tracer() -> Tracer:
    return Tracer()


@pytest.fixture
def desk() -> SeeingDesk:
    return SeeingDesk()


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure(Settings(log_format="json"), stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


@pytest.fixture
def client(tracer: Tracer, desk: SeeingDesk) -> TestClient:
    return TestClient(application(tracer, desk), base_url="http://127.0.0.1:8700")


def application(tracer: Tracer | None, desk: Desk) -> FastAPI:
    listed = [{"name": "w", "sha256": digest(WRITER), "tenants": ["orders"], "role": "schedule"}]
    gate = Gate([ApiKeys(json.dumps(listed), None, lambda: float(NOW_MS))])
    parts = ApiDependencies(gate, (), lambda: float(NOW_MS), None, tracer)
    opened: Any = (desk, HELD, None, None, None)
    parts.open(Open(*opened))
    return create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts)


def key(**more: str) -> dict[str, str]:
    return {"authorization": f"Bearer {WRITER}", **more}


@pytest.mark.parametrize("query", ["", "?wait=accepted"])
def test_a_write_is_a_span_and_goes_on_with_it(
    client: TestClient, tracer: Tracer, desk: SeeingDesk, lines: io.StringIO, query: str
) -> None:
    answer = client.post(HOME + query, json=LATER, headers=key(**SHOWN))
    assert answer.status_code == 201, answer.text
    (span,) = tracer.spans
    assert span.name == "POST /v1/tenants/{tenant}/schedules"
    assert (span.parent, span.context.trace_id) == (CONTEXT, CONTEXT.trace_id)
    assert (span.context.state, span.error) == ("v=1", None)
    assert span.context.span_id != CONTEXT.span_id
    assert span.attributes["http.response.status_code"] == 201
    assert desk.seen == [span.context]
    line = json.loads(lines.getvalue().splitlines()[-1])
    assert (line["event"], line["trace_id"]) == ("asked", CONTEXT.trace_id)
    assert line["span_id"] == span.context.span_id
    assert CURRENT.get() is None


def test_a_conflict_is_no_failure_of_the_server(client: TestClient, tracer: Tracer) -> None:
    answer = client.post(HOME, json={**LATER, "schedule_id": "old"}, headers=key(**SHOWN))
    (span,) = tracer.spans
    assert (answer.status_code, span.attributes["http.response.status_code"]) == (409, 409)
    assert span.error is None


def test_what_no_route_answers_and_what_fails_are_spans(tracer: Tracer) -> None:
    app = application(tracer, Desk())

    async def broken() -> None:
        raise RuntimeError("a bug")

    app.add_api_route("/broken", broken)
    client = TestClient(app, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)
    for path in ("/nowhere", "/broken"):
        client.get(path, headers=key(**SHOWN))
    missing, failed = tracer.spans
    assert (missing.name, missing.error) == ("GET (other)", None)
    assert (failed.name, failed.error) == ("GET /broken", "status 500")
    assert failed.attributes["error.type"] == "500"


@pytest.mark.parametrize(
    "headers",
    [
        key(),
        key(traceparent=SHOWN["traceparent"][:-2] + "00"),
        key(traceparent="00-1"),
        # Nobody is known who asked for it.
        SHOWN,
    ],
)
def test_what_is_not_sampled_and_what_strangers_ask_has_no_span(
    client: TestClient, tracer: Tracer, headers: dict[str, str]
) -> None:
    client.post(HOME, json=LATER, headers=headers)
    assert not tracer.spans


def test_a_process_that_does_not_trace_has_nothing_in_front() -> None:
    desk = SeeingDesk()
    client = TestClient(application(None, desk), base_url="http://127.0.0.1:8700")
    assert client.post(HOME, json=LATER, headers=key(**SHOWN)).status_code == 201
    assert desk.seen == [None]


@pytest.mark.parametrize("secret", [b"", b"what the tenant signs with"])
def test_a_request_carries_the_span_of_its_call(
    monkeypatch: pytest.MonkeyPatch, secret: bytes
) -> None:
    produced: list[Any] = []
    client = object.__new__(RequestClient)
    monkeypatch.setattr("belfry.wire.catalogue.encode", lambda *_: b"body")
    client._topic, client._frame = "belfry.schedules", b"\0"
    client._secret_of = lambda _tenant: secret
    producer: Any = type("P", (), {"produce": lambda _, *a, **more: produced.append((a, more))})
    client._made, client._lock = producer(), Lock()
    client._write({"tenant": "shop"}, 1, None)
    token = CURRENT.set(CONTEXT)
    try:
        client._write({"tenant": "shop"}, 1, None)
    finally:
        CURRENT.reset(token)
    (_, bare), ((_, value, of_tenant), carried) = produced
    assert sampled_in(bare.get("headers", [])) is None
    assert sampled_in(carried["headers"]) == CONTEXT
    assert not secret or proves([secret], "shop", of_tenant, value, carried["headers"])
