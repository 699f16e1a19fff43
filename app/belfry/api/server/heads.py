"""HEAD: each address that can be read can be asked for its head alone (RFC 9110, section 9.3.2).

    HEAD …/schedules/order-7     the framework sees GET: 200, ETag, Content-Length, and no body
    HEAD …/schedules/order-8     404, and no body
    HEAD /v1/preview             405: it takes POST alone

The server leaves the body of an answer to HEAD out. What stands before this middleware, such as the
audit log and the metrics, sees the method that was asked for.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from belfry.api.server.measured import goes_on_as


class Heads:
    """ASGI middleware: hands HEAD on as GET."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand in front of `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            # A copy: by its own scope the server knows that there is no body to send.
            scope = {**scope, "method": "GET"}
            goes_on_as(scope)
        await self._app(scope, receive, send)
