"""A collector of spans: an HTTP server that takes OTLP, read by OpenTelemetry's own schema."""

from __future__ import annotations

import gzip
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Collected:
    """One span as it came: ids in hexadecimal digits, instants in nanoseconds."""

    name: str
    kind: int
    trace_id: str
    span_id: str
    parent: str
    links: list[tuple[str, str]]
    began_ns: int
    ended_ns: int
    failed: bool
    message: str
    attributes: dict[str, Any]
    resource: dict[str, Any]


class Collector:
    """The server, in a thread of its own; `status` is what it answers."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.headers: list[dict[str, str]] = []
        self._spans: list[Collected] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert self.path == "/v1/traces"
                owner.headers.append({name.lower(): v for name, v in self.headers.items()})
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if owner.status == 200:
                    owner._take(body)
                self.send_response(owner.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def spans(self, **attributes: Any) -> list[Collected]:
        """What came so far with these attributes (``belfry_tenant``: `belfry.tenant`)."""
        asked = {name.replace("_", ".", 1): value for name, value in attributes.items()}
        return [each for each in list(self._spans) if asked.items() <= each.attributes.items()]

    def wait(self, count: int, timeout_s: float = 20.0, **attributes: Any) -> list[Collected]:
        """The same once there are so many."""
        deadline = time.monotonic() + timeout_s
        while len(found := self.spans(**attributes)) < count:
            assert time.monotonic() < deadline, [each.name for each in self._spans]
            time.sleep(0.02)
        return found

    def _take(self, body: bytes) -> None:
        asked = ExportTraceServiceRequest.FromString(body)
        for of_resource in asked.resource_spans:
            resource = _values(of_resource.resource.attributes)
            for scope in of_resource.scope_spans:
                self._spans += [_collected(span, resource) for span in scope.spans]


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def _collected(span: Any, resource: dict[str, Any]) -> Collected:
    return Collected(
        span.name,
        span.kind,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        [(each.trace_id.hex(), each.span_id.hex()) for each in span.links],
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code == 2,
        span.status.message,
        _values(span.attributes),
        resource,
    )
