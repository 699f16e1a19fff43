"""Counts requests and how long each took: first of all, so refusals of the guard count too.

A request is told by its route as the document has it, never by its path: a path has names of
tenants and schedules in it, and anybody may make up as many as they like.
"""

from __future__ import annotations

from http import HTTPStatus
from time import perf_counter
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from belfry.telemetry.metrics import Metrics

# Where a call that goes past the framework says which route it stands for.
ROUTE: Final = "belfry.route"
# The scope that the request went on with; code that goes on with a copy says so.
GONE_ON: Final = "belfry.gone_on"
OTHER: Final = "(other)"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Measured:
    """ASGI middleware: counts the status of each answer, and how long it took."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        gone_on: list[Scope] = [scope]
        scope[GONE_ON] = gone_on
        began, status = perf_counter(), int(HTTPStatus.INTERNAL_SERVER_ERROR)

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, seen)
        finally:
            method = scope["method"] if scope["method"] in METHODS else OTHER
            seconds = perf_counter() - began
            route = scope[ROUTE] = route_of(gone_on[0])
            self._metrics.http((method, route, str(status)), seconds)
            # List and scopes hold each other.  What was asked, with its credentials, would stay
            # until Python looks for cycles, which it does rarely (`host/memory.py`).
            gone_on.clear()


def goes_on_as(scope: Scope) -> None:
    """The request goes on with this copy of its scope: there its route will stand."""
    gone_on = scope.get(GONE_ON)
    if gone_on is not None:
        gone_on[0] = scope


def route_answering(scope: Scope) -> str:
    """The route that answered a request which came in with this scope."""
    gone_on = scope.get(GONE_ON)
    return route_of(gone_on[0] if gone_on else scope)


def route_of(scope: Scope) -> str:
    """The route that answered a request; `OTHER` if none did."""
    said: str | None = scope.get(ROUTE)
    return said or getattr(scope.get("route"), "path", None) or OTHER
