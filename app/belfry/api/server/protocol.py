"""One connection: uvicorn's protocol, within bounds of time and size.

A connection that does not send its head in time is ended, and so is one whose head is too long: the
parser by itself would keep the beginning of a head for as long as it goes on. Offers to speak
something else than HTTP/1.1 are declined.  Java's client makes one with its first request; the
parser would leave that request's body unread.  A request that is refused here has not reached the
application, but gets a problem document all the same.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from belfry.api.problem_answers import problem_response
from belfry.api.problems import Problem
from belfry.api.server.guard import ANSWER_HEADERS
from belfry.api.server.room import Connections

# Seconds for a head, from the accepted connection or from the end of the last answer.
HEAD_SECONDS: Final = 5.0
# Of a head, or of whatever else stands around a body; it comes in reads of some 256 KB at most.
MOST_HEAD_BYTES: Final = 65_536
INVALID: Final = "This is no request that can be read: send HTTP/1.1, well-formed."
ENDLESS: Final = (
    f"The head of a request, or what else stands around its body, is larger than {MOST_HEAD_BYTES}"
    " bytes: send less of it."
)
# Headers of the last answer of a connection.
LAST: Final = {**ANSWER_HEADERS, "connection": "close"}
# Of the offer alone; what is left is the request.
OFFERS: Final = (b"upgrade", b"http2-settings")


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, which also ends connections whose head is late or too long."""

    _deadline: asyncio.TimerHandle | None = None
    _in_head = False
    _unread_bytes = 0
    _refusal = ""

    def __init__(self, room: Connections, *args: Any, **more: Any) -> None:
        """`room` counts the connections of the port; the rest is uvicorn's."""
        super().__init__(*args, **more)
        self._room = room

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The clock runs from the first moment."""
        super().connection_made(transport)
        self._refusal = self._room.enter(self, self.client[0] if self.client else "")
        if self._refusal and self._room.is_overrun:
            transport.abort()
        self._watch()

    def make_room(self) -> None:
        """End at once, for somebody else."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """It stops while a request is carried out, and runs again for the next one's head."""
        self._unread_bytes += len(data)
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
            wrong = ENDLESS if self._unread_bytes > MOST_HEAD_BYTES else ""
        except HttpParserError:
            wrong = INVALID
        if wrong:
            self.send_400_response(wrong)
        if self._awaits_head():
            self._watch()
        else:
            self._unwatch()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header has come; a trailer behind a body is not a header, and is ignored.

        Proxies that check a head don't look at trailers, so none may stand for `Authorization`.
        """
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A head has come."""
        if not self._is_offer():
            self._in_head, self._unread_bytes = False, 0
            self._room.answered(self)
            self.app = _full(self._refusal) if self._refusal else self.config.loaded_app
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body has come, which the guard counts."""
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request has come whole."""
        if not self._is_offer():
            self._unread_bytes = 0
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer has been sent; the next request's may begin."""
        super().on_response_complete()
        if not self._is_asked():
            self._room.idles(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for the client."""
        self._room.leave(self)
        self._unwatch()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer with the mistake in the bytes, and end the connection."""
        answer = problem_response(Problem(HTTPStatus.BAD_REQUEST, msg, "bad_http", LAST), "")
        head = [b"%b: %b\r\n" % each for each in answer.raw_headers]
        self.transport.write(
            b"".join([STATUS_LINE[answer.status_code], *head, b"\r\n", answer.body])
        )
        self.transport.close()

    def _feed(self, data: bytes) -> None:
        """Parse incoming bytes; raises `HttpParserError`."""
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as offer:
            if self._is_offer():
                head = self._without_offer()
                self.parser = HttpRequestParser(self)
                self._feed(head + data[offer.args[0] :])

    def _is_offer(self) -> bool:
        """Whether the head offers another protocol, which is declined; CONNECT is no offer."""
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _without_offer(self) -> bytes:
        """The head that has been read, as it is where nothing else than HTTP/1.1 is offered."""
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        for name, value in self.headers:
            kept = value
            if name == b"connection":
                tokens = [token.strip() for token in value.split(b",")]
                kept = b", ".join(token for token in tokens if token.lower() not in OFFERS)
            if name not in OFFERS:
                lines.append(b"%b: %b" % (name, kept))
        return b"\r\n".join([*lines, b"", b""])

    def _awaits_head(self) -> bool:
        """Whether the next thing that has to come is a head."""
        return self._in_head or not self._is_asked()

    def _is_asked(self) -> bool:
        """Whether there is a request that has no answer yet."""
        return not getattr(self.cycle, "response_complete", True)

    def _watch(self) -> None:
        """Begin to wait for a head, unless that has begun."""
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._late)

    def _unwatch(self) -> None:
        """Wait for no head any more."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        """End the connection, unless an earlier request of it is still carried out."""
        self._deadline = None
        if self._is_asked():
            self._watch()
        else:
            self.transport.close()


def _full(detail: str) -> ASGIApp:
    """Stands for the application where there are too many connections."""

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        headers = {**LAST, "retry-after": "1"}
        refusal = Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "busy", headers)
        await problem_response(refusal, scope["path"])(scope, receive, send)

    return refuse
