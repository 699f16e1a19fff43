"""A schema registry that knows what it is shown, and says so at once, late, or never."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Final, Self

UNKNOWN: Final = b'{"error_code": 40403, "message": "Schema not found"}'


class MisroutedRegistry:
    """Has an id for each schema that anybody names, and of other ids says that there are none."""

    def __init__(self) -> None:
        self._free = Event()
        self._free.set()
        self._wait_s = 0.0
        self._schemas: list[str] = []
        # Ids that are answered at once, whatever becomes of others.
        self.prompt: set[int] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        run: Callable[..., Any] = self._server.serve_forever
        Thread(target=run, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._free.set()
        self._server.shutdown()
        self._server.server_close()

    def add(self, schema: dict[str, Any]) -> int:
        """Register a schema of which no worker has heard yet; it is answered at once."""
        self._schemas.append(json.dumps(schema))
        number = len(self._schemas)
        self.prompt.add(number)
        return number

    @contextmanager
    def slow(self, wait_s: float | None) -> Iterator[None]:
        """Each answer takes so long; None: there is none."""
        self._wait_s = wait_s or 0.0
        if wait_s is None:
            self._free.clear()
        try:
            yield
        finally:
            self._wait_s = 0.0
            self._free.set()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                number = self.path.partition("?")[0].rpartition("/")[2]
                known = number.isdigit() and 0 < int(number) <= len(registry._schemas)
                prompt = number.isdigit() and int(number) in registry.prompt
                told = {"schema": registry._schemas[int(number) - 1]} if known else None
                self.answer(told, prompt=prompt)

            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                schema: str = json.loads(self.rfile.read(size))["schema"]
                if schema not in registry._schemas:
                    registry._schemas.append(schema)
                number = registry._schemas.index(schema) + 1
                subject = self.path.split("/")[2].partition("?")[0]
                self.answer({"subject": subject, "id": number, "version": 1, "schema": schema})

            def answer(self, told: dict[str, Any] | None, *, prompt: bool = False) -> None:
                if not prompt:
                    registry._free.wait()
                    Event().wait(registry._wait_s)
                body = UNKNOWN if told is None else json.dumps(told).encode()
                self.send_response(404 if told is None else 200)
                self.send_header("content-type", "application/vnd.schemaregistry.v1+json")
                self.send_header("content-length", str(len(body)))
                # Who was kept waiting may have gone.
                with suppress(OSError):
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing on the terminal of the tests."""

        return Handler
