"""Asking another worker, for a caller that asked this one.

A caller may ask any worker, while the state of a partition is with the one that holds it. So the
worker that was asked passes the question on as it came, and hands the answer back. The name of the
caller goes along, signed (`internal_token.py`), and so do the headers that only workers use:

    belfry-partition   which partition is asked for
    belfry-after       the offset that has to show: that of the caller's last write
    belfry-not-held    in an answer (421): the partition is not held there, so look for its holder
                       again
    belfry-lies-at     in such an answer: the partition where the tenant's key group lies, to be
                       asked instead; in a question: it is asked so
    traceparent        the span of the caller, if it is traced

Connections are kept and shared by all callers. A worker that is frozen holds a read up for `READ_S`
seconds at most; a change may take longer, for its verdict is waited for at the other end.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

import aiohttp
from starlette.requests import Request
from starlette.responses import Response
from yarl import URL

from belfry.api.auth.principal import Principal
from belfry.api.problems import Problem
from belfry.api.workers.internal_token import FORWARDED, InternalToken, Target
from belfry.host.errors import named
from belfry.host.tls_files import RenewedContext
from belfry.telemetry.tracing import CURRENT

NOT_HELD: Final = "belfry-not-held"
AFTER: Final = "belfry-after"
AT: Final = "belfry-partition"
LIES_AT: Final = "belfry-lies-at"
# Digits of a number in a header of workers.
MOST_DIGITS: Final = 18
# Seconds for a connection, and for an answer to a change.
CONNECT_S: Final = 1.0
TOTAL_S: Final = 20.0
# An owner that is frozen holds a read up no longer than that.
READ_S: Final = 2.0
# Headers of a caller that go along, and headers of an answer that come back.
PASSED_ON: Final = ("content-type", "accept", "if-match")
HANDED_BACK: Final = ("content-type", "etag", "location", "retry-after", NOT_HELD, LIES_AT)


class PeerUnreachable(Exception):
    """The other worker did not answer."""


def number_told(request: Request, header: str) -> int | None:
    """The number that another worker tells in a header, or None; raises `Problem`."""
    given = request.headers.get(header)
    if given is None or FORWARDED not in request.headers:
        return None
    return number_in(header, given)


def number_in(header: str, given: str) -> int:
    """The number in a worker's header.

    Raises:
        Problem: if it is not a number, or longer than any that a worker sends.
    """
    if given.isascii() and given.isdecimal() and len(given) <= MOST_DIGITS:
        return int(given)
    raise Problem(
        HTTPStatus.BAD_REQUEST,
        f"Header {header} is {given[:40]!r}, of {len(given)} characters. It is for workers among"
        f" themselves, and holds numbers of up to {MOST_DIGITS} digits: leave it out.",
        "bad_header",
    )


class Peers:
    """Connections to the other workers; belongs to one event loop.

    A GET gets `READ_S` seconds and is not tried again here: the caller looks for the present holder
    of the partition.
    """

    def __init__(
        self, internal_token: InternalToken, believed: RenewedContext | None = None
    ) -> None:
        """`believed` has the authorities of certificates there; None: those of the machine."""
        self.internal_token = internal_token
        self._believed = believed
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self, url: str, target: Target, principal: Principal, headers: dict[str, str]
    ) -> Response:
        """Another worker's answer; raises `PeerUnreachable`."""
        given = {**headers, FORWARDED: self.internal_token.write(target, principal)}
        if (context := CURRENT.get()) is not None:
            carried = context.headers()
            given |= {name: (value or b"").decode("latin-1") for name, value in carried}
        address = url + target.path + (f"?{target.query}" if target.query else "")
        # The path is signed and looked up as it was written, so nothing may quote it anew.
        timeout = aiohttp.ClientTimeout(
            total=READ_S if target.method == "GET" else TOTAL_S, sock_connect=CONNECT_S
        )
        try:
            async with self._open().request(
                target.method,
                URL(address, encoded=True),
                data=target.body or None,
                headers=given,
                allow_redirects=False,
                timeout=timeout,
                # Connections are kept by whom they believe, so a new context gets new ones.
                ssl=self._believed.context() if self._believed else True,
            ) as answer:
                content = await answer.read()
                kept = {
                    name: answer.headers[name] for name in HANDED_BACK if name in answer.headers
                }
                if NOT_HELD in answer.headers:
                    kept[NOT_HELD] = answer.headers[NOT_HELD]
                return Response(content, answer.status, kept)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise PeerUnreachable(f"{url}: {named(error)}") from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=200, limit_per_host=100),
                auto_decompress=False,
            )
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            # Connections close in the next round of the loop.
            await asyncio.sleep(0)


def is_misdirected(answer: Response) -> bool:
    """Whether the other worker says that it does not hold the partition."""
    return answer.status_code == HTTPStatus.MISDIRECTED_REQUEST and NOT_HELD in answer.headers
