"""Questions to the API, asked inside the process on behalf of a request for a page.

The question goes through the whole application: guard, rates, roles, tenants, audit.  It carries
the key of the person who looks and nothing else of the browser's headers.

    Pages ─► view ─► api.get("/v1/me") ─► the application itself, called as a server calls it
                                          host, key and trace of the browser's request, no cookie
                  ◄─ JSON, or `ApiRefusal` with the API's own sentence

So a page shows only data that its reader could ask for, and rights are checked in one place. It
makes no connection, so a look costs as much as the route. A page asks for several things, and each
of them counts for the rate of the caller, and against the port's limits, as any other call.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

import orjson
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Scope

PASSED_ON: Final = ("host", "authorization", "traceparent", "x-request-id")


class ApiRefusal(Exception):
    """The API refused; `status` and `code` are its own, the message is its `detail`."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


class ApiAnswer:
    """An answer of the API."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        """Headers have names in lower case."""
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def is_refusal(self) -> bool:
        """Whether the API refused or failed."""
        return self.status >= HTTPStatus.BAD_REQUEST

    def json(self) -> Any:
        """The body; raises `Refused` where the API refused."""
        told = orjson.loads(self.body)
        if self.is_refusal:
            if "detail" in told:
                raise ApiRefusal(self.status, str(told.get("code")), str(told["detail"]))
            # A verdict, such as CONFLICT, says why in its reason.
            detail = told.get("reason") or f"The verdict is {told.get('outcome')}."
            raise ApiRefusal(self.status, str(told.get("code") or told.get("outcome")), detail)
        return told


class Api:
    """The API, as the person behind one request may use it."""

    def __init__(self, app: ASGIApp, request: Request) -> None:
        """`app` is the whole application."""
        self._app = app
        self._request = request

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON that a route answers; raises `Refused`."""
        return (await self.ask("GET", path, query)).json()

    async def found(self, path: str, **query: Any) -> Any | None:
        """The same; None if it does not exist."""
        answer = await self.ask("GET", path, query)
        return None if answer.status == HTTPStatus.NOT_FOUND else answer.json()

    async def post(self, path: str, body: Any) -> Any:
        """The JSON that a route answers to this body; raises `Refused`."""
        return (await self.ask("POST", path, {}, body)).json()

    async def ask(
        self,
        method: str,
        path: str,
        query: dict[str, Any],
        body: Any = None,
        more: dict[str, str] | None = None,
    ) -> ApiAnswer:
        """An answer of any status; empty parts of the query are left out."""
        sent = b"" if body is None else orjson.dumps(body)
        headers = {name: self._request.headers[name] for name in PASSED_ON if self._has(name)}
        if body is not None:
            headers |= {"content-type": "application/json", "content-length": str(len(sent))}
        scope = self._scope(method, path, query, headers | (more or {}))
        return await _answered(self._app, scope, sent)

    def _has(self, name: str) -> bool:
        return name in self._request.headers

    def _scope(
        self, method: str, path: str, query: dict[str, Any], headers: dict[str, str]
    ) -> Scope:
        """The question as a server would hand it to the application."""
        given = self._request.scope
        asked = urlencode({name: value for name, value in query.items() if value not in (None, "")})
        return {
            "type": "http",
            "asgi": given.get("asgi", {"version": "3.0"}),
            "http_version": "1.1",
            "method": method,
            "scheme": given["scheme"],
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": asked.encode(),
            "root_path": "",
            "headers": [
                (name.encode(), value.encode("latin-1")) for name, value in headers.items()
            ],
            "client": given.get("client"),
            "server": given.get("server"),
        }


def tenant_path(tenant: str) -> str:
    """Address of a tenant in the API."""
    return f"/v1/tenants/{quote(tenant, safe='')}"


def schedule_path(tenant: str, schedule_id: str) -> str:
    """Address of a schedule in the API; an id may hold slashes."""
    return f"{tenant_path(tenant)}/schedules/{quote(schedule_id, safe='')}"


async def _answered(app: ASGIApp, scope: Scope, body: bytes) -> ApiAnswer:
    """The whole answer of the application to a question."""
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    status, headers, chunks = 0, {}, list[bytes]()

    async def receive() -> Message:
        if parts:
            return parts.pop()
        # A question whether the caller is still there gets no answer: it is this process.
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            chunks.append(message.get("body", b""))

    await app(scope, receive, send)
    return ApiAnswer(status, headers, b"".join(chunks))
