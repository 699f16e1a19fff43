"""A span for each request over HTTP whose caller has its trace sampled.

    traceparent of the caller ─► span of this request ─┬─► record of the request in Kafka
                                                       ├─► other workers that are asked for it
                                                       └─► log lines: trace_id, span_id

It is in front of all others only in a process that traces. Whether a trace is sampled is the
caller's decision, as W3C Trace Context passes it on; no trace begins here. Calls without a known
caller (401) and too frequent calls (429) have no span: anybody could fill the queue with them.
"""

from __future__ import annotations

from http import HTTPStatus
from secrets import token_hex
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from belfry.api.server.measured import METHODS, OTHER, route_answering
from belfry.telemetry.spans import Span, SpanKind
from belfry.telemetry.tracing import CURRENT, Tracing
from belfry.wire.trace_context import TRACEPARENT, TRACESTATE, TraceContext, sampled_in

_HEADERS: Final = {name.encode(): name for name in (TRACEPARENT, TRACESTATE)}
_UNTOLD: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS})


class TracedCalls:
    """ASGI middleware: makes spans of requests, and tells inner code which span is its own.

    It runs on the port's event loop. A span is put into a queue of `Tracing` and is sent from
    there, so a collector that does not answer delays no request.
    """

    def __init__(self, app: ASGIApp, tracing: Tracing) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        parent = _sampled(scope) if scope["type"] == "http" else None
        if parent is None:
            await self._app(scope, receive, send)
            return
        # The same trace; this request is a child of the caller's span.
        own = parent._replace(span_id=token_hex(8))
        began_ms, status = self._tracing.now_ms(), HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        token = CURRENT.set(own)
        try:
            with bound_contextvars(trace_id=own.trace_id, span_id=own.span_id):
                await self._app(scope, receive, seen)
        finally:
            CURRENT.reset(token)
            if status not in _UNTOLD:
                times = began_ms, self._tracing.now_ms()
                self._tracing.put([_span(scope, (own, parent), status, times)])


def _sampled(scope: Scope) -> TraceContext | None:
    """The caller's context of its trace where that is sampled (W3C Trace Context), else None."""
    given = scope["headers"]
    return sampled_in((_HEADERS[name], value) for name, value in given if name in _HEADERS)


def _span(
    scope: Scope,
    contexts: tuple[TraceContext, TraceContext],
    status: int,
    times: tuple[float, float],
) -> Span:
    """The span of a request: its route and status, never its path.

    `contexts` are its own and that of the caller; `times` are begin and end in epoch ms.
    """
    method = scope["method"] if scope["method"] in METHODS else OTHER
    route, failed = route_answering(scope), status >= HTTPStatus.INTERNAL_SERVER_ERROR
    attributes: dict[str, str | int] = {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": status,
        "url.scheme": scope.get("scheme", "http"),
    }
    if failed:
        attributes["error.type"] = str(status)
    own, parent = contexts
    return Span(
        name=f"{method} {route}",
        kind=SpanKind.SERVER,
        context=own,
        parent=parent,
        began_ms=times[0],
        ended_ms=times[1],
        attributes=attributes,
        error=f"status {status}" if failed else None,
    )
