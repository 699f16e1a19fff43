"""Bodies of requests as they come in: each in time, not too long, and not too much of all.

The body of a refused request is read up to a limit, and not kept: many clients read their answer
only when they have sent everything.

    limit of one body        body_bytes, for JSON lines bulk_bytes      413
    limit of all together    bodies_bytes                               503, try again
    a part that is slow      body_s for each                            408
    after the answer         unwanted_bytes are read and dropped        then the connection ends

A body counts for as long as its request is under way, for routes hold it whole. It belongs to the
port's event loop.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from belfry.api.problems import Problem
from belfry.api.server.limits import PortLimits

# Types of JSON lines, which may be longer.
LINES: Final = ("application/x-ndjson", "application/jsonl", "application/json-lines")


class Bodies:
    """The bytes kept of the bodies of all requests under way."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = 0

    def keep(self, more: int, own: int) -> None:
        """Keep `more` bytes of a body of which `own` are kept; raises `Problem`.

        A body that is alone has its own limit and no other.
        """
        if self._kept > own and self._kept + more > self._most:
            raise _too_many_bytes(self._most)
        self._kept += more

    def forget(self, kept: int) -> None:
        """A request has ended."""
        self._kept -= kept


class Body:
    """A request's body: its parts, as long as they come in time and are not too many.

    The application gets `part` in place of ASGI's `receive`.
    """

    def __init__(
        self, receive: Receive, headers: Headers, limits: PortLimits, bodies: Bodies
    ) -> None:
        self._receive = receive
        self._bodies = bodies
        self._kept = 0
        self._limits = limits
        self._length = headers.get("content-length")
        self._most = _most_bytes(headers, limits)
        self._taken = 0
        self._more = True
        # What neither says how long it is nor comes in chunks has no body to be discarded.
        self._announced = self._length is not None or "transfer-encoding" in headers
        # Its client sends the body only when asked to, and a refused request is not asked.
        self._held_back = "expect" in headers

    def refusal(self) -> Problem | None:
        """Why it is not let in, as far as its head says, or None."""
        given = self._length
        if given is None or (given.isdecimal() and len(given) < 19 and int(given) <= self._most):
            return None
        return _too_large(self._most)

    async def part(self) -> Message:
        """The next part.

        Raises:
            Problem: when it does not come in time, or is one too many.
        """
        if not self._more:
            return await self._receive()
        self._held_back = False
        try:
            async with asyncio.timeout(self._limits.body_s):
                message = await self._receive()
        except TimeoutError:
            self._more = False
            raise _slow_body(self._limits.body_s) from None
        self._count(message)
        if self._taken > self._most:
            raise _too_large(self._most)
        size = len(message.get("body", b""))
        self._bodies.keep(size, self._kept)
        self._kept += size
        return message

    def forget(self) -> None:
        """The request has ended, and its body is not kept any more."""
        self._bodies.forget(self._kept)
        self._kept = 0

    async def discard(self) -> None:
        """Read what is left, for a client that reads its answer only when it has sent all."""
        if self._held_back or not self._announced:
            self._more = False
            return
        most = self._taken + self._limits.unwanted_bytes
        try:
            async with asyncio.timeout(self._limits.body_s):
                while self._more and self._taken <= most:
                    self._count(await self._receive())
        except TimeoutError:
            pass
        finally:
            self._more = False

    def _count(self, message: Message) -> None:
        """Note how much has come, and whether more does."""
        self._taken += len(message.get("body", b""))
        self._more = message.get("more_body", False)


def _most_bytes(headers: Headers, limits: PortLimits) -> int:
    """The largest body of this type."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return limits.bulk_bytes if kind in LINES else limits.body_bytes


def _too_many_bytes(most: int) -> Problem:
    return Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"The requests under way have bodies of {most} bytes already: try again.",
        "busy",
        {"retry-after": "1"},
    )


def _too_large(most: int) -> Problem:
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"The body is larger than {most} bytes. Send less at once, or store the content elsewhere"
        " and schedule its address (claim check).",
        "body_too_large",
    )


def _slow_body(seconds: float) -> Problem:
    detail = f"A part of the body did not come within {seconds:g} s."
    return Problem(HTTPStatus.REQUEST_TIMEOUT, detail, "slow_body", {"connection": "close"})
