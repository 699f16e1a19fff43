"""A port for health alone, which callers of the API cannot fill."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.request import Request, urlopen

import pytest
from fastapi import FastAPI

from belfry.api.routes.app import create_health_app
from belfry.api.server.health_server import BEYOND, HttpPorts
from belfry.api.server.room import Connections
from belfry.api.server.server import HttpAddressError, HttpServer, Manner
from belfry.settings import Settings
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker


def ports(app: FastAPI, worker: FakeWorker, metrics: Metrics, settings: Settings) -> HttpPorts:
    http = HttpServer(app, "127.0.0.1", settings.http_port, manner=Manner(room=Connections(2, 2)))
    return HttpPorts(http, create_health_app(worker, metrics), settings)


@pytest.fixture
def both(app: FastAPI, worker: FakeWorker, metrics: Metrics) -> Iterator[HttpPorts]:
    found = ports(app, worker, metrics, Settings(http_port=0))
    found.start()
    yield found
    found.stop()


def status(url: str, host: str = "127.0.0.1") -> int:
    with urlopen(Request(url, headers={"host": host}), timeout=10) as answer:
        return int(answer.status)


def test_health_is_told_while_the_api_has_no_room(both: HttpPorts) -> None:
    with ExitStack() as callers:
        for _ in range(4):
            _, _, port = both.url.rpartition(":")
            line = callers.enter_context(socket.create_connection(("127.0.0.1", int(port)), 10))
            line.sendall(
                b"POST /v1/preview HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                b"Content-Type: application/json\r\n\r\n"
            )
        for path in ("/healthz/live", "/healthz/ready", "/healthz/startup", "/metrics"):
            assert status(f"{both.health_url}{path}") == 200


def test_orchestrators_ask_by_address_and_pages_by_name(both: HttpPorts) -> None:
    assert status(f"{both.health_url}/healthz/live", "10.1.2.3:9700") == 200
    with pytest.raises(OSError, match="421"):
        status(f"{both.health_url}/healthz/live", "page.example")


def test_it_answers_nothing_else(both: HttpPorts) -> None:
    for path in ("/v1/cluster", "/openapi.json", "/"):
        with pytest.raises(OSError, match="404"):
            status(f"{both.health_url}{path}")


def taken() -> socket.socket:
    """A port that is in use, with a free one below it for the API."""
    while True:
        line = socket.create_server(("127.0.0.1", 0))
        if line.getsockname()[1] > BEYOND + 1_024:
            return line
        line.close()


def test_a_port_that_nobody_named_may_be_taken(
    app: FastAPI, worker: FakeWorker, metrics: Metrics
) -> None:
    with taken() as line:
        found = ports(app, worker, metrics, Settings(http_port=line.getsockname()[1] - BEYOND))
        found.start()
        assert found.health_url is None
        assert json.loads(urlopen(f"{found.url}/healthz/live", timeout=10).read())["ok"]
        found.stop()


def test_a_port_that_is_named_has_to_be_free(
    app: FastAPI, worker: FakeWorker, metrics: Metrics
) -> None:
    with taken() as line:
        settings = Settings(http_port=0, health_port=line.getsockname()[1])
        found = ports(app, worker, metrics, settings)
        with pytest.raises(HttpAddressError, match="BELFRY_HEALTH_PORT"):
            found.start()
        found.stop()
