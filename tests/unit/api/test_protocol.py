"""One connection: what it may send, for how long, and in which order it is answered."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from time import sleep

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from belfry.api.server import protocol
from belfry.api.server.room import Connections
from belfry.api.server.server import HttpServer, Manner

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the body; waits as long as the header `wait` says."""
    if scope["type"] == "lifespan":
        for _ in range(2):
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
        return
    request = Request(scope, receive)
    body = await request.body()
    await asyncio.sleep(float(request.headers.get("wait", "0")))
    shown = {"saw": request.headers.get("authorization", "nothing")}
    await PlainTextResponse(b"<" + body + b">", headers=shown)(scope, receive, send)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A connection to a server that is soon impatient."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    server = HttpServer(echo, "127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", server.start()), timeout=10) as line:
        yield line
    server.stop()


def said(line: socket.socket, end: bytes = b"") -> bytes:
    """What the server says until it says `end`, or ends the connection."""
    heard = b""
    while not (end and end in heard):
        try:
            part = line.recv(65_536)
        except ConnectionResetError:
            part = b""
        if not part:
            break
        heard += part
    return heard


@pytest.mark.parametrize("begun", [b"", b"GET / HT", POST + b"Content-Ty", b"\r\n\r\n"])
def test_who_does_not_say_what_it_wants_is_not_waited_for(
    line: socket.socket, begun: bytes
) -> None:
    line.sendall(begun)
    assert said(line) == b""


def test_the_time_runs_again_for_the_next_request(line: socket.socket) -> None:
    line.sendall(GET)
    assert b"<>" in said(line, b"<>")
    line.sendall(b"GET / HT")
    assert said(line) == b""


def test_what_is_carried_out_is_not_cut_off(line: socket.socket) -> None:
    line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nWait: 0.8\r\n\r\nGET / HT")
    assert b"<>" in said(line, b"<>")


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: ",
        POST + b"Transfer-Encoding: chunked\r\n\r\n3;",
    ],
)
def test_a_head_without_end_is_refused(
    line: socket.socket, endless: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 60.0)
    line.sendall(endless)
    try:
        for _ in range(protocol.MOST_HEAD_BYTES // 1_000 + 100):
            line.sendall(b"x" * 1_000)
    except (BrokenPipeError, ConnectionResetError):
        pass
    else:
        assert b" 400 Bad Request" in said(line)


def test_a_body_may_be_longer_than_a_head(line: socket.socket) -> None:
    size = 4 * protocol.MOST_HEAD_BYTES
    line.sendall(POST + b"Content-Length: %d\r\n\r\n" % size + b"x" * size)
    assert said(line, b">").endswith(b"<" + b"x" * size + b">")


def test_requests_are_answered_in_their_order(line: socket.socket) -> None:
    bodies = [b"%d" % number for number in range(20)]
    asked = (POST + b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies)
    line.sendall(b"".join(asked))
    heard = said(line, b"<19>")
    assert [heard.count(b"<" + body + b">") for body in bodies] == [1] * 20


def test_what_comes_behind_a_body_is_no_header(line: socket.socket) -> None:
    """A proxy looks at the head alone, so a trailer must not say who asks or how long to wait."""
    asked = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    trailers = b"0\r\nAuthorization: Bearer x\r\nIf-Match: 7\r\nWait: 30\r\n\r\n"
    line.sendall(asked + b"3\r\none\r\n" + trailers + POST + b"Content-Length: 3\r\n\r\ntwo")
    heard = said(line, b"<two>")
    assert b"<one>" in heard
    assert b"saw: Bearer" not in heard


def test_an_offer_to_upgrade_is_declined(line: socket.socket) -> None:
    """Java's client offers HTTP/2 with its first request, and goes on with what it gets."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAA\r\n"
    for body in (b"one", b"two"):
        line.sendall(POST + offer + b"Content-Length: 3\r\n\r\n" + body)
        assert b"<" + body + b">" in said(line, b">")


def test_an_offer_that_comes_in_pieces_is_declined(line: socket.socket) -> None:
    offer = b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\none"
    for byte in POST + offer:
        line.sendall(bytes([byte]))
    assert b"<one>" in said(line, b">")


def test_no_tunnel_is_made(line: socket.socket) -> None:
    line.sendall(b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n" + GET)
    assert b" 400 Bad Request" in said(line)


def test_what_is_no_http_is_refused(line: socket.socket) -> None:
    line.sendall(b"\x16\x03\x01\x02\x00 hello\r\n\r\n")
    heard = said(line)
    assert heard.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert problem_in(heard) == (400, "bad_http")


def served(room: Connections) -> Iterator[tuple[str, int]]:
    server = HttpServer(echo, "127.0.0.1", 0, manner=Manner(room=room))
    yield "127.0.0.1", server.start()
    server.stop()


@pytest.fixture
def narrow() -> Iterator[tuple[str, int]]:
    """A server that has room for three connections, two of them of one address."""
    yield from served(Connections(3, 2))


def connected(place: tuple[str, int]) -> socket.socket:
    return socket.create_connection(place, timeout=10)


BUSY = b"GET / HTTP/1.1\r\nHost: localhost\r\nWait: 2\r\n\r\n"


def test_a_connection_too_many_is_told_to_come_again(narrow: tuple[str, int]) -> None:
    with connected(narrow) as one, connected(narrow) as two:
        one.sendall(BUSY)
        two.sendall(BUSY)
        sleep(0.3)
        with connected(narrow) as other:
            other.sendall(POST + b"Content-Length: 3\r\n\r\none")
            heard = said(other)
        assert heard.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"retry-after: 1\r\n" in heard
        assert problem_in(heard) == (503, "busy")
        assert b"<>" in said(one, b"<>")
        one.sendall(POST + b"Content-Length: 3\r\n\r\ntwo")
        assert b"<two>" in said(one, b"<two>")


def test_silent_connections_shut_nobody_out(narrow: tuple[str, int]) -> None:
    """With room for three, thirty that say nothing or half of a head stay, and all are answered."""
    with ExitStack() as open_ones:
        for number in range(30):
            silent = open_ones.enter_context(connected(narrow))
            silent.sendall(b"GET / HT" * (number % 2))
        for _ in range(5):
            line = open_ones.enter_context(connected(narrow))
            line.sendall(GET)
            assert b"<>" in said(line, b"<>")


def test_an_idle_connection_makes_room_after_those_that_never_asked() -> None:
    room = Connections(3, 3)
    for place in served(room):
        with connected(place) as idle, connected(place) as silent, connected(place) as newer:
            idle.sendall(GET)
            assert b"<>" in said(idle, b"<>")
            with connected(place) as line:
                line.sendall(GET)
                assert b"<>" in said(line, b"<>")
                assert said(silent) == b""
                idle.sendall(GET)
                assert b"<>" in said(idle, b"<>")
            newer.close()


def problem_in(heard: bytes) -> tuple[int, str]:
    """Status and code of the problem document in an answer."""
    head, _, body = heard.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    assert b"content-length: %d\r\n" % len(body) in head + b"\r\n"
    found = json.loads(body)
    return found["status"], found["code"]
