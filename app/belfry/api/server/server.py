"""The HTTP server: uvicorn in a thread with a loop of its own.

It starts before anything else of the worker and stops last, and a worker whose loop is busy (a
large batch, a recovery) still answers its probes.

    accepted ─► Greeting (TLS) ─► Protocol (heads) ─► Measured ─► Guard ─► callers ─► routes

uvicorn carries connections and ASGI. What belfry adds are bounds: `room.py` for connections,
`greeting.py` for handshakes, `protocol.py` for heads, `guard.py` for requests.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from belfry.api.server.greeting import Greeting
from belfry.api.server.hosts import is_loopback
from belfry.api.server.protocol import HEAD_SECONDS, Protocol
from belfry.api.server.room import Connections
from belfry.host.tls_files import RenewedContext

# Seconds for the port to answer, and for answers under way when it closes.
START_SECONDS: Final = 10.0
STOP_SECONDS: Final = 5.0
# Longer than clients keep a connection that they don't use (Go 90 s, Java 30 s): one that is ended
# here may be taking the next request just then, and its sender doesn't know the result.
KEEP_ALIVE_SECONDS: Final = 100


class HttpAddressError(Exception):
    """The HTTP port cannot be opened where the settings want it."""


class _Server(uvicorn.Server):
    """uvicorn's, which counts a caller from when it is accepted, not from when keys are agreed."""

    def __init__(
        self, config: uvicorn.Config, room: Connections, tls: RenewedContext | None
    ) -> None:
        super().__init__(config)
        self._room = room
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port without TLS, so that each connection is greeted by `Greeting`."""
        loop: Any = asyncio.get_running_loop()
        opened, tls = loop.create_server, self._tls

        def create_server(make: Any, *, ssl: Any = None, **more: Any) -> Any:
            def greet() -> Greeting:
                assert tls is not None
                # Asked for each connection: certificates are renewed while the port is open.
                return Greeting(self._room, tls.context(), HEAD_SECONDS, make)

            return opened(make if ssl is None else greet, **more)

        loop.create_server = create_server
        await super().startup(sockets)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a port is served.

    `proxies` are addresses or networks whose `X-Forwarded-For` is believed, `room` bounds the
    connections (None: as many as by default), `name` is that of the thread, and `setting` the one
    that says which port it is.
    """

    proxies: Sequence[str] = ()
    room: Connections | None = None
    name: str = "http"
    setting: str = "BELFRY_HTTP_PORT"


class HttpServer:
    """One HTTP port.  `start` and `stop` are called once each, from any thread."""

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        *,
        tls: RenewedContext | None = None,
        guarded: bool = False,
        manner: Manner = Manner(),  # frozen
    ) -> None:
        """Prepare to serve `app`; port 0 takes any free one.

        `tls` is what the port shows, None for plain HTTP; `guarded` says that callers need a key,
        so that it may open to other machines.
        """
        self._manner = manner
        self._host = host
        self._port = port
        self._guarded = guarded
        self._tls = tls is not None
        # uvicorn takes the scheme of requests from it.
        secured: dict[str, Any] = (
            {} if tls is None else {"ssl_context_factory": lambda *_: tls.context()}
        )
        room = manner.room or Connections()
        self._server = _Server(
            uvicorn.Config(
                app,
                http=partial(Protocol, room),  # type: ignore[arg-type]
                ws="none",
                log_config=None,
                access_log=False,
                lifespan="on",
                server_header=False,
                timeout_graceful_shutdown=2,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                # Its defaults believe each process of this machine.
                proxy_headers=bool(manner.proxies),
                forwarded_allow_ips=list(manner.proxies),
                **secured,
            ),
            room,
            tls,
        )
        self._thread: threading.Thread | None = None

    def start(self) -> int:
        """Open the port and serve it; returns the port, once it answers.

        Raises `HttpAddressError` where the address cannot be had, or may not be opened without
        callers.
        """
        listener = listen(self._host, self._port, self._manner.setting, guarded=self._guarded)
        self._port = int(listener.getsockname()[1])
        self._thread = threading.Thread(
            target=self._server.run,
            args=([listener],),
            name=f"belfry-{self._manner.name}",
            daemon=True,
        )
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                listener.close()
                raise HttpAddressError(f"The HTTP server did not start within {START_SECONDS} s.")
            time.sleep(0.005)
        return self._port

    @property
    def url(self) -> str:
        """Address to paste into a browser; valid once `start` has returned."""
        return self.url_at(self._host)

    def url_at(self, host: str) -> str:
        """The same for those who reach this machine by another name or address."""
        host = f"[{host}]" if ":" in host else host
        return f"http{'s' if self._tls else ''}://{host}:{self._port}"

    def stop(self) -> None:
        """Answer what is being answered, close the port and end the thread."""
        if self._thread is None:
            return
        self._server.should_exit = True
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            self._server.force_exit = True
            self._thread.join(STOP_SECONDS)
        self._thread = None


def listen(
    host: str, port: int, setting: str = "BELFRY_HTTP_PORT", *, guarded: bool = False
) -> socket.socket:
    """A socket that listens, on loopback unless `guarded`, or a sentence why there is none."""
    if not guarded and not is_loopback(host):
        raise HttpAddressError(
            f"http_host {host!r} is not a loopback address: without authentication the HTTP port"
            " opens on this machine only. Set BELFRY_HTTP_HOST to 127.0.0.1, ::1 or localhost, or"
            " configure API keys (BELFRY_HTTP_API_KEYS_FILE) or an OpenID provider"
            " (BELFRY_OIDC_ISSUER)."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise HttpAddressError(
            f"HTTP port {port} on {host} cannot be opened ({error.strerror}). Set {setting} to"
            " another port, or to 0 for any free one."
        ) from error
    return listener
