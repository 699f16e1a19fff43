"""Framing on the real parser, over a socket: no request hides in another one.

Behind each attack comes a second request on the same connection.  What is right is how many
requests the application saw, and how the first was answered: what can be read in two ways is
refused, and then nothing behind it counts.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from belfry.api.server.server import HttpServer
from tests.attack.family import Attack, judge

H: Final = b"Host: localhost\r\n"
LAST: Final = b"GET /last HTTP/1.1\r\n" + H + b"Connection: close\r\n\r\n"
HIDDEN: Final = b"GET /hidden HTTP/1.1\r\n" + H + b"\r\n"
CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
ONE: Final = b"3\r\nabc\r\n0\r\n\r\n"


class Framed(NamedTuple):
    """What the application saw (paths and bodies), and how the first request was answered."""

    seen: tuple[tuple[str, bytes], ...]
    status: int


REFUSED: Final = Framed((), 400)


class Seen:
    """An application that remembers paths and bodies."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for _ in range(2):
                kind = (await receive())["type"]
                await send({"type": f"{kind}.complete"})
            return
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        self.requests.append((scope["path"], body))
        await PlainTextResponse(b"ok")(scope, receive, send)


def post(head: bytes, body: bytes = b"") -> bytes:
    """A request to /a with these lines in its head."""
    return b"POST /a HTTP/1.1\r\n" + H + head + b"\r\n" + body


def accepted(body: bytes) -> Framed:
    """Both requests are seen, the first with this body."""
    return Framed((("/a", body), ("/last", b"")), 200)


def attacks() -> Iterator[Attack[bytes]]:
    """Two readings of one request, and lines that are none."""
    yield Attack("length", post(b"Content-Length: 3\r\n", b"abc"), accepted(b"abc"))
    yield Attack("chunks", post(CHUNKED, ONE), accepted(b"abc"))
    yield Attack("extension", post(CHUNKED, b"3;x=y\r\nabc\r\n0\r\n\r\n"), accepted(b"abc"))
    yield Attack("leading zeros", post(CHUNKED, b"0003\r\nabc\r\n0\r\n\r\n"), accepted(b"abc"))
    both = b"Content-Length: %d\r\n" % (len(ONE) + len(HIDDEN))
    yield Attack("cl then te", post(both + CHUNKED, ONE + HIDDEN), REFUSED)
    yield Attack("te then cl", post(CHUNKED + both, ONE + HIDDEN), REFUSED)
    yield Attack("cl 0 and te", post(b"Content-Length: 0\r\n" + CHUNKED, ONE), REFUSED)
    for name, more in {
        "another length": b"Content-Length: 60\r\n",
        "the same length": b"Content-Length: 3\r\n",
    }.items():
        yield Attack(name, post(b"Content-Length: 3\r\n" + more, b"abc" + HIDDEN), REFUSED)
    for value in (b"-1", b"+3", b"3 3", b"3,3", b"0x3", b"3.0", b"3e0", b"", b"abc", b"\xb3"):
        name = f"length {value!r}"
        yield Attack(name, post(b"Content-Length: " + value + b"\r\n", b"abc"), REFUSED)
    for value in (b"9" * 20, b"9" * 400, b"18446744073709551616"):
        name = f"length {value[:3].decode()}... of {len(value)} digits"
        yield Attack(name, post(b"Content-Length: " + value + b"\r\n", b"abc"), REFUSED)
    for value in (b"xchunked", b"chunked, identity", b"identity", b"gzip", b"chunked\x0b", b"cow"):
        head = b"Transfer-Encoding: " + value + b"\r\n"
        yield Attack(f"te {value!r}", post(head, ONE), REFUSED)
        name = f"te {value!r} and length"
        yield Attack(name, post(head + b"Content-Length: 3\r\n", b"abc"), REFUSED)
    for line in (b"Transfer-Encoding : chunked", b"Transfer-Encoding\t: chunked", b" X: y"):
        yield Attack(f"line {line!r}", post(line + b"\r\n", ONE), REFUSED)
    for size in (b"-3", b"+3", b"0x3", b"3 ", b"g", b"", b"3\x00", b"f" * 17, b"1" + b"0" * 16):
        name = f"chunk of {size!r}"
        seen = post(CHUNKED, size + b"\r\nabc\r\n0\r\n\r\n")
        yield Attack(name, seen, REFUSED)
    yield Attack("chunk too long", post(CHUNKED, b"2\r\nabc\r\n0\r\n\r\n"), REFUSED)
    yield Attack("chunk by lf", post(CHUNKED, b"3\nabc\n0\n\n"), REFUSED)
    for byte in (b"\x00", b"\r", b"\n", b"\x7f", b"\x01", b"\x0c"):
        yield Attack(f"value with {byte!r}", post(b"X: a" + byte + b"b\r\n"), REFUSED)
        if byte != b"\n":
            yield Attack(f"name with {byte!r}", post(b"X" + byte + b"Y: a\r\n"), REFUSED)
    for token in (b"X Y", b"X(Y", b"X/Y", b"X@Y", b"X[Y", b'X"Y', b"X\xe9", b"X,Y", b"X;Y", b"X=Y"):
        yield Attack(f"name {token!r}", post(token + b": a\r\n"), REFUSED)
    yield Attack("folded", post(b"X: a\r\n Transfer-Encoding: chunked\r\n"), REFUSED)
    yield Attack("no name", post(b": a\r\n"), REFUSED)
    yield Attack("no colon", post(b"Connection\r\n"), REFUSED)
    for line in (
        *(b"GET", b"GET / HTTP/9.9", b"GET / HTP/1.1", b"get / HTTP/1.1", b"GET / HTTP/3.0"),
        *(b"GET /a b HTTP/1.1", b"GET /\x00 HTTP/1.1", b"GET  HTTP/1.1", b"FOO / HTTP/1.1"),
        *(
            b"GET / HTTP/1.1 x",
            b"GET / HTTP/1",
            b"GET / HTTP/11",
            b"PRI * HTTP/2.0",
            b"\x16\x03\x01",
        ),
        *(b"GET /\x7f HTTP/1.1", b"GET / HTTP/1.1\x00", b"G\x00ET / HTTP/1.1", b"GET\t/\tHTTP/1.1"),
    ):
        yield Attack(f"request line {line!r}", line + b"\r\n" + H + b"\r\n", REFUSED)
    for line in (b"GET /", b"GET / HTTP/2.0"):
        # Another version is answered once, and nothing behind it counts.
        yield Attack(f"version {line!r}", line + b"\r\n" + H + b"\r\n", Framed((("/", b""),), 200))


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Seen, int]]:
    seen = Seen()
    server = HttpServer(seen, "127.0.0.1", 0)
    yield seen, server.start()
    server.stop()


def test_no_request_hides_in_another_one(server: tuple[Seen, int]) -> None:
    seen, port = server

    def answer(given: bytes) -> Framed:
        seen.requests.clear()
        with socket.create_connection(("127.0.0.1", port), timeout=2) as line:
            line.sendall(given + LAST)
            heard = b""
            try:
                while part := line.recv(65_536):
                    heard += part
            except TimeoutError:
                heard = b"HTTP/1.1 599 silent"
            except ConnectionResetError:
                pass
        status = int(heard.split(b" ", 2)[1]) if heard else 0
        return Framed(tuple(seen.requests), status)

    judge(attacks(), answer, 80)
