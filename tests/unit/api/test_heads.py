"""HEAD: the head of what GET answers, at each address, and nothing else."""

from __future__ import annotations

import re
import socket

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from belfry.api.server.server import HttpServer

# Figures that change from one answer to the next.
MOVING = ("/metrics", "/v1/cluster")


def addresses(app: FastAPI) -> list[str]:
    """Each address that can be read, with names in place of its parameters."""
    found = {
        re.sub(r"\{[^}]*\}", "t", route.path)
        for routes in app.state.routers
        for route in routes.routes
        if "GET" in (getattr(route, "methods", None) or ())
    }
    return sorted(found | {"/openapi.json", "/console/page.js", "/nothing"})


def test_each_address_has_the_head_that_it_answers_with(app: FastAPI) -> None:
    paths = addresses(app)
    assert len(paths) > 40
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        for path in paths:
            whole, head = client.get(path), client.head(path)
            assert (head.status_code, head.content) == (whole.status_code, b""), path
            moves = {"content-length"} if path in MOVING else set()
            odd = set(head.headers.items()) ^ set(whole.headers.items())
            assert {name for name, _ in odd} <= moves, path


@pytest.mark.parametrize("path", ["/metrics", "/", "/nothing", "/v1/preview"])
def test_the_connection_goes_on_behind_a_head(app: FastAPI, path: str) -> None:
    server = HttpServer(app, "127.0.0.1", 0)
    try:
        with socket.create_connection(("127.0.0.1", server.start()), timeout=10) as line:
            line.sendall(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            line.sendall(
                b"GET /healthz/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            heard = b"".join(iter(lambda: line.recv(65_536), b""))
    finally:
        server.stop()
    head, then, _ = heard.split(b"\r\n\r\n", 2)
    assert b"content-length: " in head
    assert then.startswith(b"HTTP/1.1 200 OK\r\n")
