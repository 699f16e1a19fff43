"""The HTTP server: a port of its own, in a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from fastapi import FastAPI

from belfry.api.server import HttpAddressError, HttpServer, listen


@pytest.fixture
def server(app: FastAPI) -> Iterator[HttpServer]:
    server = HttpServer(app, "127.0.0.1", 0)
    yield server
    server.stop()


def test_it_answers_once_started(server: HttpServer) -> None:
    port = server.start()
    assert server.url == f"http://127.0.0.1:{port}"
    with urlopen(f"{server.url}/healthz/live", timeout=5) as answer:
        assert answer.status == 200


def test_it_stops(server: HttpServer) -> None:
    server.start()
    server.stop()
    assert not any(thread.name == "belfry-http" for thread in threading.enumerate())
    with pytest.raises(URLError):
        urlopen(server.url, timeout=1)
    server.stop()


def test_two_servers_live_side_by_side(server: HttpServer, app: FastAPI) -> None:
    other = HttpServer(app, "127.0.0.1", 0)
    try:
        assert server.start() != other.start()
    finally:
        other.stop()


def test_a_taken_port_is_named(app: FastAPI) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(HttpAddressError, match=f"port {port} .*BELFRY_HTTP_PORT"):
            HttpServer(app, "127.0.0.1", port).start()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_only_loopback_is_served(host: str) -> None:
    with pytest.raises(HttpAddressError, match="not a loopback address"):
        listen(host, 0)
