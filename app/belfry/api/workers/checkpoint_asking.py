"""Asking another worker for a checkpoint: a signed question, and an answer within a time.

It is asked in the thread of a partition or of a standby, which has nothing else to do meanwhile,
and never in the port's event loop: some hundred megabytes may come.

The token is signed with a key for this purpose alone.  A signature for a forwarded call of a caller
does not count here, so no caller reaches a checkpoint by way of another worker.

It is signed for the address that is asked.  Each member of the group tells its own address.
Without the address in the signature a stranger in the group could pass the question on to a worker,
and read the answer.
"""

from __future__ import annotations

import ssl
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import Principal, Role
from belfry.api.setup import believed_of
from belfry.api.workers.internal_token import FORWARDED, InternalToken, Target
from belfry.host import machine
from belfry.host.clock import SystemClock
from belfry.recovery.checkpoint_peers import PIECE_BYTES, PeerBusy
from belfry.settings import Settings
from belfry.store.checkpoint import MOST_BYTES
from belfry.wire.worker_keys import Purpose

# Seconds for a connection.
CONNECT_S: Final = 1.0
# The longest answer: an index, or a piece.
_LONGEST: Final = max(MOST_BYTES, PIECE_BYTES)
_READ_BYTES: Final = 256 * 1024
_BUSY: Final = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)
# A worker asks for itself, and has no rights by that: the token alone counts.
_WORKER: Final = Principal("worker", (), Role.READ)


def token_of(settings: Settings, clock: SystemClock) -> InternalToken:
    """The token of questions for checkpoints; it signs none without a shared secret."""
    return InternalToken(settings.worker_keys(Purpose.CHECKPOINTS), Gate(), clock.wall_ms)


class CheckpointAsker:
    """Asks other workers; any thread may, each with a connection of its own."""

    def __init__(self, settings: Settings, clock: SystemClock) -> None:
        self._token = token_of(settings, clock)
        self._believed = believed_of(settings)
        self._lock = machine.Lock()

    def __call__(self, url: str, path: str, seconds: float) -> bytes:
        """The answer of the worker at `url` to a path with its query.

        Raises FileNotFoundError if the worker lacks it, `PeerBusy`, TimeoutError after so many
        seconds, and ConnectionError for any other failure.
        """
        until_s = machine.monotonic() + seconds
        connection = self._connection(url, min(CONNECT_S, seconds))
        try:
            try:
                connection.connect()
                return self._answer(connection, url, path, until_s)
            except HTTPException as error:
                raise ConnectionError(f"{url} answers what is no HTTP: {error!r}") from error
        finally:
            connection.close()

    def _answer(self, connection: HTTPConnection, url: str, path: str, until_s: float) -> bytes:
        # The connection lets go of it once it has answered and is to be closed.
        sock = connection.sock
        sock.settimeout(_left_s(until_s))
        bare, _, query = path.partition("?")
        token = self._token.write(Target("GET", bare, query).at(url), _WORKER)
        connection.request("GET", path, headers={FORWARDED: token})
        with connection.getresponse() as answer:
            parts, size = list[bytes](), 0
            while part := answer.read1(_READ_BYTES):
                parts.append(part)
                size += len(part)
                if size > _LONGEST:
                    raise ConnectionError(f"it answers more than {_LONGEST} bytes")
                left_s = _left_s(until_s)
                # With its last bytes an answer may close the connection.
                if not answer.isclosed():
                    sock.settimeout(left_s)
            return _judged(answer, b"".join(parts))

    def _connection(self, url: str, seconds: float) -> HTTPConnection:
        given = urlsplit(url)
        host, port = given.hostname or "", given.port
        if given.scheme != "https":
            return HTTPConnection(host, port, timeout=seconds)
        return HTTPSConnection(host, port, timeout=seconds, context=self._context())

    def _context(self) -> ssl.SSLContext:
        """Whose certificates count; asked from one thread at a time."""
        if self._believed is None:
            return ssl.create_default_context()
        with self._lock:
            return self._believed.context()


def _left_s(until_s: float) -> float:
    left_s = until_s - machine.monotonic()
    if left_s <= 0:
        raise TimeoutError("it has not answered in time")
    return left_s


def _judged(answer: HTTPResponse, body: bytes) -> bytes:
    """A body that was asked for; raises for every other answer."""
    if answer.status == HTTPStatus.OK:
        return body
    if answer.status == HTTPStatus.NOT_FOUND:
        raise FileNotFoundError("it has none")
    if answer.status in _BUSY:
        raise PeerBusy(f"it answers {answer.status}")
    raise ConnectionError(f"it answers {answer.status}: {body[:300].decode(errors='replace')}")
