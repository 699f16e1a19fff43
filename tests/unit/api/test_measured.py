"""Requests over HTTP are counted by route, status and time, never by what callers make up."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from belfry.api.server.measured import Measured, goes_on_as, route_answering
from belfry.telemetry.metrics import Metrics


def counted(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
        if sample.name == name
    }


@pytest.mark.parametrize(
    ("method", "path", "route", "status"),
    [
        ("GET", "/healthz/live", "/healthz/live", "200"),
        ("GET", "/v1/tenants/a/schedules/x", "/v1/tenants/{tenant}/schedules/{schedule_id}", "503"),
        ("GET", "/v1/tenants/a%20b", "/v1/tenants/{tenant}", "422"),
        ("GET", "/made/up", "(other)", "404"),
        ("BREW", "/made/up", "(other)", "404"),
        ("GET", "/test/fails", "/test/fails", "500"),
    ],
)
def test_a_request_is_counted_by_its_route(
    app: FastAPI, metrics: Metrics, method: str, path: str, route: str, status: str
) -> None:
    client = TestClient(app, "http://127.0.0.1:8700", raise_server_exceptions=False)
    assert str(client.request(method, path).status_code) == status
    shown = method if method == "GET" else "(other)"
    assert counted(metrics, "belfry_http_requests_total") == {(shown, route, status): 1}
    assert counted(metrics, "belfry_http_request_seconds_count") == {(route,): 1}


def test_what_the_guard_refuses_counts(app: FastAPI, metrics: Metrics) -> None:
    assert TestClient(app, "http://elsewhere.example").get("/v1/me").status_code == 421
    assert counted(metrics, "belfry_http_requests_total") == {("GET", "(other)", "421"): 1}


@pytest.mark.parametrize("copied", [True, False])
def test_nothing_of_a_request_stays_for_the_collector_of_garbage(
    metrics: Metrics, *, copied: bool
) -> None:
    class Asked(dict[str, Any]):
        """A scope that can be watched."""

    scopes: list[weakref.ref[Asked]] = []

    async def route(scope: Any, receive: Any, send: Any) -> None:
        if copied:
            scope = Asked(scope)
            goes_on_as(scope)
        scope["route"] = Route
        scopes.append(weakref.ref(scope))

    class Route:
        path = "/v1/me"

    async def ask() -> None:
        scope: Any = Asked(type="http", method="GET")
        scopes.append(weakref.ref(scope))
        await Measured(route, metrics)(scope, list, list)  # type: ignore[arg-type]
        # What traces the call asks when all is over.
        assert route_answering(scope) == "/v1/me"

    gc.disable()
    try:
        asyncio.run(ask())
        assert [scope() for scope in scopes] == [None, None]
    finally:
        gc.enable()
    assert counted(metrics, "belfry_http_request_seconds_count") == {("/v1/me",): 1}
