"""The guard of the HTTP port: allowed hosts and origins, sizes, times and counts of requests.

Without authentication the port is bound to loopback. That alone does not stop a web page whose own
host name is made to resolve to 127.0.0.1, so the `Host` of each request has to be a name of this
worker; and a page of another origin that posts here anyway is told by its `Origin`. Sizes, times
and the number of requests under way are bounded before anything is read (`incoming.py` counts the
bodies), and every answer forbids the browser to load anything from elsewhere.

    evil.example resolves to 127.0.0.1, and its page posts to http://evil.example:8700/v1/…
      Host: evil.example:8700               421: not a name of this machine
    a page of https://evil.example posts to http://127.0.0.1:8700/v1/…
      Origin: https://evil.example          403: not ours, and no setting names it

A refusal is a problem document, given before a route or a key is looked at. It runs on the port's
event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from belfry.api.problem_answers import problem_response
from belfry.api.problems import Problem
from belfry.api.server.hosts import LONGEST_HOST, is_address, named_host
from belfry.api.server.incoming import Bodies, Body
from belfry.api.server.limits import PortLimits, Traffic
from belfry.api.server.measured import goes_on_as

# Paths that begin so are left encoded, and only they.
API: Final = "/v1/"
ANSWER_HEADERS: Final = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_OURS: Final = [(name.encode(), value.encode()) for name, value in ANSWER_HEADERS.items()]


class Guard:
    """ASGI middleware: refuses, bounds, and adds the headers of every answer.

    It belongs to the port's event loop. An answer that has not begun within `answer_s` seconds is
    503 `slow`; one that has begun by then is cut off, since its status has been sent.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: PortLimits = PortLimits(),  # frozen
        traffic: Traffic | None = None,
    ) -> None:
        """Stand in front of `app`, and count in `traffic`."""
        self._app = app
        self._limits = limits
        self._traffic = traffic or Traffic()
        self._bodies = Bodies(limits.bodies_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        body = Body(receive, headers, self._limits, self._bodies)
        slot = _Slot(self._traffic)
        answer = _SentAnswer(send, body, slot)
        refusal = self._refusal(headers, body)
        if refusal is not None:
            await problem_response(refusal, scope["path"])(scope, receive, answer)
            return
        # The server has decoded the path; `raw_path` is as the caller wrote it.
        if scope["path"].startswith(API) and scope.get("raw_path"):
            # Names are decoded after the path has been split: an id may hold slashes.
            scope = {**scope, "path": scope["raw_path"].decode("ascii", "replace")}
            goes_on_as(scope)
        slot.take()
        try:
            async with asyncio.timeout(self._limits.answer_s):
                await self._app(scope, body.part, answer)
        except TimeoutError:
            if answer.begun:
                raise
            problem = _slow(self._limits.answer_s)
            await problem_response(problem, scope["path"])(scope, receive, answer)
        except asyncio.CancelledError:
            # The port closes, and waits no longer; a caller that was cut off is not there either.
            if answer.begun:
                raise
            await problem_response(_stopping(), scope["path"])(scope, receive, answer)
        finally:
            slot.free()
            body.forget()

    def _refusal(self, headers: Headers, body: Body) -> Problem | None:
        """Why a request is not looked at, or None."""
        hosts = headers.getlist("host")
        if len(hosts) > 1:
            return _many_hosts()
        given = hosts[0] if hosts else ""
        if len(given) > LONGEST_HOST or not self._is_here(given):
            return _foreign_host(given)
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(origin, given):
            return _foreign_origin(origin)
        if self._traffic.calls >= self._limits.under_way:
            return _too_many(self._limits.under_way)
        return body.refusal()

    def _is_here(self, host: str) -> bool:
        """Whether a `Host` header is a name of this worker."""
        name, is_this_machine = named_host(host)
        if is_this_machine or name in self._limits.hosts:
            return True
        return self._limits.addresses and is_address(name)

    def _is_ours(self, origin: str, host: str) -> bool:
        """Whether a page of this origin may ask: ours, or one that the settings name."""
        if origin in self._limits.origins:
            return True
        try:
            # A page of this very port has its host and port in both headers.
            return urlsplit(origin).netloc.lower() == host.lower()
        except ValueError:
            return False


class _Slot:
    """A call's place among those under way."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._taken = False

    def take(self) -> None:
        """Count the call as under way."""
        self._traffic.began(monotonic())
        self._taken = True

    def free(self) -> None:
        """Give the place back, once."""
        if self._taken:
            self._taken = False
            self._traffic.ended()


class _SentAnswer:
    """Sends, with the headers of every answer; knows whether it has begun."""

    def __init__(
        self, send: Callable[[MutableMapping[str, Any]], Awaitable[None]], body: Body, slot: _Slot
    ) -> None:
        self._send = send
        self._slot = slot
        self._body = body
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            # The rest of a body may never come, and takes no place of another request.
            self._slot.free()
            await self._body.discard()
            self.begun = True
            given = message.setdefault("headers", [])
            names = {name.lower() for name, _ in given}
            message["headers"] = [*given, *(each for each in _OURS if each[0] not in names)]
        await self._send(message)


def _many_hosts() -> Problem:
    """Two Host headers may mean one host to a proxy and another one here."""
    detail = "The request has more than one Host header: send one, as RFC 9112 says."
    return Problem(HTTPStatus.BAD_REQUEST, detail, "bad_http", {"connection": "close"})


def _foreign_host(given: str) -> Problem:
    """A request that a web page of another name may have made."""
    return Problem(
        HTTPStatus.MISDIRECTED_REQUEST,
        f"Host {given[:200]!r} is not a name of this machine: use http://127.0.0.1 or"
        " http://localhost; from elsewhere, use the advertised address, or a name that"
        " BELFRY_HTTP_ALLOWED_HOSTS lists.",
        "foreign_host",
    )


def _foreign_origin(given: str) -> Problem:
    """A request of a page that may not ask."""
    return Problem(
        HTTPStatus.FORBIDDEN,
        f"A page of {given[:200]!r} may not ask this worker; BELFRY_HTTP_ALLOWED_ORIGINS lists"
        " those that may.",
        "foreign_origin",
    )


def _too_many(most: int) -> Problem:
    """One request too many at the same time."""
    return Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"{most} requests are under way already: try again.",
        "busy",
        {"retry-after": "1"},
    )


def _stopping() -> Problem:
    """The worker stops, and this call has no answer yet."""
    detail = "This worker stops. Ask again: another one, or this one when it has started."
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "stopping", {"retry-after": "1"})


def _slow(seconds: float) -> Problem:
    """An answer that has taken too long; its work goes on if it cannot be stopped."""
    detail = f"There is no answer within {seconds:g} s: try again."
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "slow", {"retry-after": "1"})
