"""A worker that is frozen holds up what is asked of it no longer than a read may take."""

from __future__ import annotations

import asyncio

import pytest

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import ANYBODY
from belfry.api.workers import peers
from belfry.api.workers.internal_token import InternalToken, Target
from belfry.api.workers.peers import Peers, PeerUnreachable


async def test_a_read_of_a_worker_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "READ_S", 0.1)
    asked, over, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def never(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await over.wait()
        writer.close()
        ended.set()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    asking = Peers(InternalToken((), Gate(), lambda: 0.0))
    async with asyncio.timeout(15):
        with pytest.raises(PeerUnreachable):
            await asking.ask(url, Target("GET", "/v1/tenants/a/schedules/b", ""), ANYBODY, {})
    assert asked.is_set()
    await asking.close()
    over.set()
    await ended.wait()
    server.close()
    await server.wait_closed()
