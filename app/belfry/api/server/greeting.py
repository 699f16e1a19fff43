"""A connection until both sides have agreed on keys, counted from the moment it is accepted.

A server that is given a certificate tells its protocol of a connection when the handshake is over.
Until then the connection takes memory, some 70 kB, and is not counted: a client that sends nothing,
or half of a greeting, could open as many as there are file descriptors.  So the port is opened
without TLS, each connection enters the room as one that has not asked for anything, and the
handshake is made here.

    accepted ──► Greeting, in the room ──handshake──► Protocol, in the room ──► …
                    └─ too late, or makes room: ended
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ssl import SSLContext
from typing import Any

from belfry.api.server.room import Connections


class Greeting(asyncio.Protocol):
    """One connection, from its acceptance to the end of its handshake."""

    def __init__(
        self,
        room: Connections,
        context: SSLContext,
        within_s: float,
        make: Callable[[], asyncio.Protocol],
    ) -> None:
        """`make` gives the protocol behind the handshake, which may take `within_s` seconds."""
        self._room = room
        self._context = context
        self._within_s = within_s
        self._make = make
        self._handshake: asyncio.Task[None] | None = None
        self._read = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It has been accepted."""
        self._transport = transport
        address = transport.get_extra_info("peername")
        refused = self._room.enter(self, address[0] if address else "")
        if refused and self._room.is_overrun:
            self._room.leave(self)
            transport.abort()
            return
        self._handshake = asyncio.get_running_loop().create_task(self._agree())

    def data_received(self, data: bytes) -> None:
        """The beginning of a handshake, read before it was begun here."""
        self._read += data

    def make_room(self) -> None:
        """End at once, for somebody else."""
        self._transport.abort()

    async def _agree(self) -> None:
        """Agree on keys, and hand the connection over."""
        loop, early = asyncio.get_running_loop(), _Early()
        handshake = loop.create_task(
            loop.start_tls(
                self._transport,
                early,
                self._context,
                server_side=True,
                ssl_handshake_timeout=self._within_s,
            )
        )
        try:
            # For one turn of the loop, incoming bytes belong to the handshake; the loop does not
            # read them.
            await asyncio.sleep(0)
            if self._read and not handshake.done():
                _give(self._transport.get_protocol(), self._read)
            secured = await handshake
        except OSError:
            # Not in time, or not TLS: such a client cannot read an answer.
            secured = None
        finally:
            self._room.leave(self)
        if secured is None or self._transport.is_closing():
            self._transport.abort()
        else:
            early.hand_over(secured, self._make())


def _give(handshake: Any, data: bytes) -> None:
    """Let a handshake have bytes as if they had just come (`asyncio.BufferedProtocol`)."""
    while data:
        buffer = handshake.get_buffer(len(data))
        part = data[: len(buffer)]
        buffer[: len(part)] = part
        handshake.buffer_updated(len(part))
        data = data[len(part) :]


class _Early(asyncio.Protocol):
    """Keeps bytes that come with the end of the handshake, before the protocol is connected."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._has_ended = False

    def data_received(self, data: bytes) -> None:
        """A request, or its beginning."""
        self._parts.append(data)

    def eof_received(self) -> None:
        """There will be no request."""
        self._has_ended = True

    def hand_over(self, transport: asyncio.Transport, protocol: asyncio.Protocol) -> None:
        """Give the kept bytes to the protocol, in their order."""
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        for part in self._parts:
            protocol.data_received(part)
        if self._has_ended:
            transport.close()
