"""How a post gets to its target: the port, and HTTP behind it.

A further protocol is one more `Transport`, chosen by the scheme of the target's address.

HTTP dials judged addresses only: the resolver judges each address of a name, and the socket is made
for an address that is judged again, which covers addresses that stand in the URL itself. The name
stays what TLS verifies. No redirects, no cookies, no proxies from the environment, and only so much
of the answer's body is read that the connection stays usable. Of an answer, belfry tells only its
status and its Retry-After: the tenant reads the reason, and a port that speaks another protocol
would show its greeting there.

    https://hooks.example.com/a ─► resolver: 10.0.0.5 is private: refused
    https://10.0.0.5/a          ─► nothing to resolve ─► socket factory: refused
    https://example.com         ─► 302 to http://169.254.169.254/        not followed

So a tenant cannot make belfry call a server that only the operator's network can reach (server-side
request forgery). A name whose address changes between the two looks (DNS rebinding) is judged by
the address that is dialled.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any, Final, Protocol

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from belfry.delivery.addresses import Networks, refusal
from belfry.delivery.answers import Answer, End, answered
from belfry.delivery.http_requests import Post
from belfry.host.clock import SystemClock

# Bytes of an answer's body that are read, and for how many seconds, to keep the connection.
MOST_BODY_BYTES: Final = 65_536
BODY_S: Final = 1.0
# Seconds for which addresses of a name, and idle connections, are kept.
DNS_CACHE_S: Final = 10
KEEP_ALIVE_S: Final = 15


class AddressRefused(OSError):
    """An address that is not dialled; an `OSError`, so that aiohttp sees a failed connection."""


class Transport(Protocol):
    """Sends one post; never raises, whatever the other side does."""

    async def post(self, post: Post) -> Answer:
        """Send it; returns the answer."""

    async def close(self) -> None:
        """Give connections back."""


class JudgedResolver(AbstractResolver):
    """Resolves names, and refuses those that have an address which is not dialled."""

    def __init__(self, inner: AbstractResolver, allowed: Networks) -> None:
        self._inner = inner
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Addresses of a name, all of them fit to be dialled."""
        found = await self._inner.resolve(host, port, family)
        for each in found:
            _judge(each["host"], self._allowed)
        return found

    async def close(self) -> None:
        """Close the resolver."""
        await self._inner.close()


class HttpTransport:
    """HTTP and HTTPS by aiohttp; made inside the loop that it works in."""

    def __init__(
        self, clock: SystemClock, allowed: Networks, resolver: AbstractResolver | None = None
    ) -> None:
        self._clock = clock
        self._allowed = allowed
        connector = aiohttp.TCPConnector(
            resolver=JudgedResolver(resolver or aiohttp.ThreadedResolver(), allowed),
            limit=0,
            ttl_dns_cache=DNS_CACHE_S,
            keepalive_timeout=KEEP_ALIVE_S,
            socket_factory=self._socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        )

    async def post(self, post: Post) -> Answer:
        """Send it; every way to fail is an answer.

        The post's time-out covers all of it, from the look-up of the name to the answer.
        """
        try:
            async with asyncio.timeout(post.timeout_ms / 1000):
                return await self._posted(post)
        except TimeoutError:
            reason = f"no answer within {post.timeout_ms} ms"
            return Answer(End.AGAIN, post.url, "timeout", reason, heard=False)
        except aiohttp.InvalidURL as error:
            return Answer(End.FINAL, post.url, "bad_url", str(error)[:300])
        except aiohttp.ClientConnectorError as error:
            return _not_connected(post, error)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Answer(End.AGAIN, post.url, "connection", _broken(error), heard=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def _posted(self, post: Post) -> Answer:
        request = self._session.post(
            URL(post.url, encoded=True),
            data=post.body,
            headers=post.headers,
            allow_redirects=False,
            skip_auto_headers=("Accept", "Accept-Encoding"),
        )
        async with request as response:
            after = response.headers.get("Retry-After")
            answer = answered(response.status, after, post.url, int(self._clock.wall_ms()))
            await _drain(response)
        return answer

    def _socket(self, info: Any) -> socket.socket:
        """A socket for an address that is about to be dialled."""
        family, kind, proto, _, address = info
        _judge(str(address[0]), self._allowed)
        made = socket.socket(family, kind, proto)
        made.setblocking(False)
        return made


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read a short body, so that the connection can be used again; drop it with a long one."""
    try:
        async with asyncio.timeout(BODY_S):
            left = MOST_BODY_BYTES
            while left > 0 and (chunk := await response.content.read(left)):
                left -= len(chunk)
    except (TimeoutError, aiohttp.ClientError, OSError):
        left = 0
    if left <= 0:
        response.close()


def _judge(address: str, allowed: Networks) -> None:
    """Raise `AddressRefused` for an address that is not dialled."""
    why = refusal(address, allowed)
    if why is not None:
        raise AddressRefused(why)


def _broken(error: Exception) -> str:
    """The kind of failure, without words of the other side: messages of aiohttp may quote them."""
    number = error.errno if isinstance(error, OSError) else None
    what = os.strerror(number) if number else "no complete answer in HTTP/1.1 came"
    return f"{type(error).__name__}: {what}"


def _not_connected(post: Post, error: aiohttp.ClientConnectorError) -> Answer:
    """The answer if no connection came about, with the cause."""
    # An error of a certificate has no such attribute.
    cause = getattr(error, "os_error", None)
    if isinstance(cause, AddressRefused):
        reason = (
            f"{cause}: belfry posts to public addresses, and to networks that the operator allows"
            " (BELFRY_WEBHOOK_PRIVATE_NETWORKS)"
        )
        return Answer(End.FINAL, post.url, "address_refused", reason)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Answer(End.AGAIN, post.url, "dns", f"{str(error)[:300]}", heard=False)
    code = "tls" if isinstance(error, aiohttp.ClientSSLError) else "connection"
    return Answer(End.AGAIN, post.url, code, f"{str(error)[:300]}", heard=False)
