"""`/internal/checkpoints`: checkpoints of this worker's partitions, for other workers alone.

    GET /internal/checkpoints/3                     the index of the newest one of partition 3
    GET /internal/checkpoints/3/<SHA-256>?from=N    up to 4 MiB of one of its files, from N on

Payloads of all tenants are in there, so no key and no token of a caller opens them: only a question
that is signed by a worker is answered.  A file is asked for by its digest and looked up among those
of the index; no text of a request becomes a path.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from belfry.api.problems import Problem
from belfry.api.server.threads import Threads
from belfry.api.workers.checkpoint_door import MOST_AT_ONCE, CheckpointDoor
from belfry.api.workers.parts import ApiDependencies
from belfry.recovery.checkpoint_peers import PATH, PIECE_BYTES

_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
# So much is given to a connection at once, which waits until it has been sent.
SLICE_BYTES: Final = 256 * 1024


def checkpoint_routes(parts: ApiDependencies) -> APIRouter:
    """Routes that no document of the API has."""
    routes = APIRouter(include_in_schema=False)
    threads = Threads("checkpoint reads", MOST_AT_ONCE)

    @routes.get(PATH + "/{partition}")
    async def index(request: Request, partition: str) -> Response:
        """The index of the newest checkpoint of a partition."""
        door = _door(parts, request)
        found = door.served.index(_number(partition))
        if found is None:
            raise _not_here()
        return Response(found, media_type="application/octet-stream")

    @routes.get(PATH + "/{partition}/{sha256}")
    async def piece(request: Request, partition: str, sha256: str) -> Response:
        """A piece of a file of that checkpoint."""
        door = _door(parts, request)
        number, start = _number(partition), _number(request.query_params.get("from", "0"))
        if not _SHA256.fullmatch(sha256):
            raise _not_here()
        entered = door.enter()
        try:
            await asyncio.sleep(door.wait_s(PIECE_BYTES))
            read = door.served.piece
            found = await threads.run(lambda: read(number, sha256, start, PIECE_BYTES))
            door.unused(PIECE_BYTES - len(found or b""))
            if found is None:
                raise _not_here()
        except BaseException:
            door.leave(entered)
            raise
        return _Piece(found, partial(door.leave, entered))

    return routes


class _Piece(Response):
    """Bytes that are sent slice by slice, so that one that is not taken stays small."""

    def __init__(self, content: bytes, ended: Callable[[], object]) -> None:
        super().__init__(content, media_type="application/octet-stream")
        self._ended = ended

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it, and tell when it is over, however it ends."""
        try:
            head = {"type": "http.response.start", "status": self.status_code}
            await send({**head, "headers": self.raw_headers})
            content = memoryview(self.body)
            for at in range(0, len(content), SLICE_BYTES):
                part = bytes(content[at : at + SLICE_BYTES])
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._ended()


def _door(parts: ApiDependencies, request: Request) -> CheckpointDoor:
    """The part that serves checkpoints, for a worker; raises `Problem`."""
    door = parts.checkpoints
    if door is None:
        raise _not_here()
    door.admit(request)
    return door


def _number(given: str) -> int:
    if not _NUMBER.fullmatch(given):
        raise _not_here()
    return int(given)


def _not_here() -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, "There is no such checkpoint here.", "not_found")
