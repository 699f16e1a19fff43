"""A real HTTP server that webhooks are posted to, which fails in all the ways that a test asks for.

The path says how it behaves: ``/ok``, ``/status/503``, ``/flaky/2`` (fails twice for each id),
``/hang``, ``/drop`` (closes without an answer), ``/redirect``, ``/endless`` (a body without end),
``/garbage`` (no HTTP), ``/later/1`` (503 with Retry-After, once for each id).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Received:
    """One request, and when it came (epoch seconds); header names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.time)

    @property
    def id(self) -> str:
        """The message's id, the same for each attempt."""
        return self.headers["webhook-id"]


class Receiver:
    """The server, in threads of its own; leaving it ends it."""

    def __init__(self, port: int = 0) -> None:
        self.received: list[Received] = []
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._tries: Counter[tuple[str, str]] = Counter()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                owner.take(self)

            def do_GET(self) -> None:
                owner.take(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 1_000

            def handle_error(self, *_: object) -> None:
                """Who posted may have gone."""

        self._server = Server(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _: object, __: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Where it listens, on the loopback address."""
        return int(self._server.server_address[1])

    def url(self, path: str) -> str:
        """Address of one behaviour."""
        return f"http://127.0.0.1:{self.port}{path}"

    def at(self, path: str) -> list[Received]:
        """What came in there, in its order."""
        with self._lock:
            return [each for each in self.received if each.path == path]

    def take(self, handler: Any) -> None:
        """Receive a request and behave."""
        size = int(handler.headers.get("content-length") or 0)
        body = handler.rfile.read(size)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        one = Received(handler.path, headers, body)
        with self._lock:
            self.received.append(one)
            key = (one.path, headers.get("webhook-id", ""))
            self._tries[key] += 1
            tries = self._tries[key]
        _, kind, *rest = one.path.split("/")
        getattr(self, f"_{kind}")(handler, tries, rest[0] if rest else "")

    def _ok(self, handler: Any, _tries: int, _rest: str) -> None:
        _answer(handler, 204)

    def _status(self, handler: Any, _tries: int, rest: str) -> None:
        _answer(handler, int(rest))

    def _flaky(self, handler: Any, tries: int, rest: str) -> None:
        _answer(handler, 500 if tries <= int(rest) else 200)

    def _later(self, handler: Any, tries: int, rest: str) -> None:
        if tries == 1:
            _answer(handler, 503, {"Retry-After": rest})
        else:
            _answer(handler, 200)

    def _hang(self, handler: Any, _tries: int, _rest: str) -> None:
        self.released.wait(120)
        handler.close_connection = True

    def _drop(self, handler: Any, _tries: int, _rest: str) -> None:
        handler.close_connection = True

    def _redirect(self, handler: Any, _tries: int, _rest: str) -> None:
        _answer(handler, 302, {"Location": "/ok"})

    def _garbage(self, handler: Any, _tries: int, _rest: str) -> None:
        handler.wfile.write(b"\x00\x01 this is no HTTP\r\n\r\n")
        handler.close_connection = True

    def _endless(self, handler: Any, _tries: int, _rest: str) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(1 << 40))
        handler.end_headers()
        while not self.released.is_set():
            handler.wfile.write(b"x" * 65_536)


def _answer(handler: Any, status: int, headers: dict[str, str] | None = None) -> None:
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", "0")
    handler.end_headers()
