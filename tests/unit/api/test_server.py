"""The HTTP server: a port of its own, in a thread of its own."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from fastapi import FastAPI

from belfry.api.server.server import HttpAddressError, HttpServer, listen


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


def test_a_connection_that_rests_is_kept(server: HttpServer) -> None:
    """uvicorn's own limit of 5 s lies within what clients keep a connection for."""
    connection = HTTPConnection("127.0.0.1", server.start(), timeout=5)
    connection.connect()
    connection.auto_open = 0
    for rest_s in (0, 5.5):
        time.sleep(rest_s)
        connection.request("GET", "/healthz/live")
        with connection.getresponse() as answer:
            assert answer.status == 200
            answer.read()
    connection.close()


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
