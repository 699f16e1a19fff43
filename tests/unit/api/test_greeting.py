"""Connections count from when they are accepted, also where they have not agreed on keys."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPSConnection
from pathlib import Path
from time import monotonic

import pytest
from fastapi import FastAPI

from belfry.api.server import server as served
from belfry.api.server.room import Connections
from belfry.api.server.server import HttpServer, Manner
from belfry.host.tls_files import shown
from tests.acceptance.harness.site import wait_for
from tests.unit.kafka.test_security import Signed, signed

ROOM = 5


@pytest.fixture(scope="module")
def authority() -> Signed:
    return signed("authority")


@pytest.fixture
def room() -> Connections:
    return Connections(ROOM, ROOM)


@pytest.fixture
def port(app: FastAPI, room: Connections, authority: Signed, tmp_path: Path) -> Iterator[int]:
    own = signed("belfry", authority)
    files = tmp_path / "own.pem", tmp_path / "own.key"
    files[0].write_text(own.pem)
    files[1].write_text(own.key_pem())
    server = HttpServer(app, "127.0.0.1", 0, tls=shown(*files), manner=Manner(room=room))
    yield server.start()
    server.stop()


def connection(port: int, authority: Signed) -> HTTPSConnection:
    context = ssl.create_default_context(cadata=authority.pem)
    return HTTPSConnection("127.0.0.1", port, timeout=5, context=context)


def status(port: int, authority: Signed) -> int:
    """Of a request on a connection of its own."""
    line = connection(port, authority)
    try:
        line.request("GET", "/healthz/live")
        with line.getresponse() as answer:
            return answer.status
    finally:
        line.close()


def silent(opened: ExitStack, port: int, said: bytes = b"") -> socket.socket:
    found = opened.enter_context(socket.create_connection(("127.0.0.1", port), 5))
    found.sendall(said)
    return found


def ended(line: socket.socket) -> bool:
    """Whether the other side has ended a connection."""
    line.settimeout(2)
    try:
        return line.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_requests_come_through_on_one_connection(port: int, authority: Signed) -> None:
    line = connection(port, authority)
    for _ in range(3):
        line.request("GET", "/healthz/live")
        with line.getresponse() as answer:
            assert answer.status == 200
            answer.read()
    line.close()


def test_a_request_that_comes_with_the_handshake_is_answered(port: int, authority: Signed) -> None:
    assert [status(port, authority) for _ in range(50)] == [200] * 50


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"])
def test_those_that_do_not_agree_on_keys_make_room(
    said: bytes, port: int, authority: Signed, room: Connections
) -> None:
    with ExitStack() as opened:
        first = silent(opened, port, said)
        others = [silent(opened, port, said) for _ in range(3 * ROOM)]
        wait_for("all to be accepted", lambda: room._all.members == ROOM)
        assert ended(first)
        assert not ended(others[-1])
        assert status(port, authority) == 200


def test_one_that_does_not_agree_in_time_is_ended(
    monkeypatch: pytest.MonkeyPatch,
    app: FastAPI,
    authority: Signed,
    room: Connections,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(served, "HEAD_SECONDS", 0.3)
    own = signed("belfry", authority)
    files = tmp_path / "own.pem", tmp_path / "own.key"
    files[0].write_text(own.pem)
    files[1].write_text(own.key_pem())
    server = HttpServer(app, "127.0.0.1", 0, tls=shown(*files), manner=Manner(room=room))
    port = server.start()
    try:
        with ExitStack() as opened:
            began = monotonic()
            assert ended(silent(opened, port))
            assert 0.2 < monotonic() - began < 2.0
            wait_for("it to leave", lambda: room._all.members == 0)
    finally:
        server.stop()


def test_what_is_no_tls_is_ended(port: int, room: Connections) -> None:
    with ExitStack() as opened:
        line = silent(opened, port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        line.settimeout(5)
        assert b"HTTP" not in line.recv(100)
    wait_for("it to leave", lambda: room._all.members == 0)


def test_all_that_came_and_went_have_left(port: int, authority: Signed, room: Connections) -> None:
    for _ in range(3):
        status(port, authority)
    wait_for("all to leave", lambda: room._all.members == 0)
