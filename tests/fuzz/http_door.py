"""HTTP as a door: what reads bodies and cursors, with as little as possible around it.

The framework takes longer to find a route than belfry takes for the whole request, and what it does
there depends on no byte of a body.  So most inputs go to the routes' own functions, and each
`WHOLE`-th one takes the whole way, through guard, framework and route.  A preview shows up to a
thousand instants, which takes a hundred times as long as reading what was asked.  So only on the
whole way are all of them looked for, and else the first few.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, TypeVar
from unittest.mock import patch
from urllib.parse import unquote

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from belfry.api.auth.principal import Principal, Role
from belfry.api.problem_answers import problem_response
from belfry.api.problems import Problem
from belfry.api.routes import previews
from belfry.schedules.preview import Preview, preview
from belfry.schedules.rejections import Rejection
from tests.attack.door import OWN, Door

WHOLE: Final = 64
FEW: Final = 10
CALLER: Final = Principal("fuzz", ("*",), Role.OPERATE)

Route = Callable[[Request], Awaitable[Response]]
T = TypeVar("T")


class Ready(selectors.DefaultSelector):
    """Asks the system for nothing while there is work to do."""

    def select(self, timeout: float | None = None) -> Any:
        """What is ready; at once where nothing is to be waited for."""
        return [] if timeout is not None and timeout <= 0 else super().select(timeout)


class AtOnce:
    """In place of `Threads`: what those do is done here, and counts as the input's time."""

    def __init__(self, what: str, most: int) -> None:
        """As the other one's."""

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns."""
        return work()


class HttpDoor:
    """One application, asked by its routes' functions and as a whole."""

    def __init__(self) -> None:
        loop = asyncio.SelectorEventLoop(Ready())
        with (
            patch("belfry.api.routes.previews.Threads", AtOnce),
            patch("belfry.api.routes.lists.Threads", AtOnce),
            patch("asyncio.new_event_loop", lambda: loop),
        ):
            self._door = Door([], opened=True)
        self._loop = loop
        self._asked = 0
        self._functions = {
            (method, route.path): route.endpoint
            for routes in self._door.routers
            for route in routes.routes
            if isinstance(route, APIRoute)
            for method in route.methods or ()
        }

    def function(self, method: str, path: str) -> Callable[..., Awaitable[Response]]:
        """What a route calls, by its method and the pattern of its path."""
        found: Callable[..., Awaitable[Response]] = self._functions[method, path]
        return found

    def whole(self) -> bool:
        """Whether this input's turn is to take the whole way."""
        self._asked += 1
        return self._asked % WHOLE == 0

    def ask(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Response:
        """The answer of the whole application."""
        answer = self._door(method, target, headers, body)
        return Response(answer.body, answer.status)

    def call(self, scope: dict[str, Any], body: bytes, route: Route) -> Response:
        """The answer of a route's function, or the problem that it raises."""
        with patch.object(previews, "preview", _few):
            return self._loop.run_until_complete(self._call(scope, body, route))

    async def _call(self, scope: dict[str, Any], body: bytes, route: Route) -> Response:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        request = Request(scope, receive)
        try:
            return await route(request)
        except Problem as problem:
            return problem_response(problem, request.url.path)

    def check(self, answer: Response, allowed: Callable[[int], bool]) -> None:
        """The status is one of those that may be, and no other tenant was touched."""
        assert allowed(answer.status_code), (answer.status_code, answer.body)
        assert self._door.reached <= {OWN}, answer.body


def _few(request: Any, now_ms: int, count: int, *shown: Any, **bounds: Any) -> Preview | Rejection:
    """The first instants of a rule alone."""
    return preview(request, now_ms, min(count, FEW), *shown, **bounds)


def scope_of(method: str, target: str, kind: str = "") -> dict[str, Any]:
    """What the server would say of such a request."""
    path, _, query = target.partition("?")
    headers = [(b"host", b"127.0.0.1:8700")]
    if kind:
        headers.append((b"content-type", kind.encode()))
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8700),
        "path_params": {"tenant": OWN},
    }


def is_answer(status: int) -> bool:
    """No body is the server's failure."""
    return status < HTTPStatus.INTERNAL_SERVER_ERROR
