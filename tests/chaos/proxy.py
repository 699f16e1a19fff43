"""A hop between one worker and the brokers that can be cut, frozen or muted, frame by frame.

    worker ──request──► proxy ──request──► broker        cut      connections end, new ones too
    worker ◄──answer─── proxy ◄──answer─── broker        frozen   nothing moves, all stays open
                                                         muted    requests pass, answers do not

What was held back moves on when the hop is healed: a late EndTxn is one of the things to survive.
The hop reads Kafka's frames (size, api key, version, correlation id), so it can also hold the
answer to one EndTxn: the only way to see a commit that is sent and not answered (step S6).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread
from typing import Any, Final

HOST: Final = "127.0.0.1"
END_TXN: Final = 26
_SIZE: Final = struct.Struct(">i")
_REQUEST: Final = struct.Struct(">hhi")
_ANSWER: Final = struct.Struct(">i")


@dataclass(slots=True, eq=False)
class _Link:
    """One connection through the hop; `held` is the request whose answer is kept back."""

    near: asyncio.StreamWriter
    far: asyncio.StreamWriter
    held: int | None = None


class Proxy:
    """Listens on the ports of `ways`, each of which leads to a broker's port; runs in a thread."""

    def __init__(self, ways: Mapping[int, int]) -> None:
        self._ways = dict(ways)
        self._servers: list[asyncio.Server] = []
        self.struck = Event()
        self.stopped_frames = 0
        self.ended_links = 0
        self._links: set[_Link] = set()
        self._cut = False
        self._countdown = 0
        self._loop = asyncio.new_event_loop()
        self._requests_pass = asyncio.Event()
        self._answers_pass = asyncio.Event()
        self._released = asyncio.Event()
        self._thread = Thread(target=self._run, name="proxy", daemon=True)

    @property
    def addresses(self) -> str:
        """Where a worker finds the brokers behind the hop."""
        return ",".join(f"{HOST}:{port}" for port in self._ways)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()
        self._call(self._listen())

    def stop(self) -> None:
        """End every connection and the thread."""
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    # -- faults ----------------------------------------------------------------------------------

    def cut(self) -> None:
        """End all connections, and every new one, until healed."""
        self._call(self._set(cut=True))

    def freeze(self) -> None:
        """Let nothing pass in either direction, until healed."""
        self._call(self._set(requests=False, answers=False))

    def mute(self) -> None:
        """Let requests pass and keep the answers, until healed."""
        self._call(self._set(answers=False))

    def heal(self) -> None:
        """Let everything pass again; what was kept back goes first."""
        self._call(self._set())

    def hold_end_txn(self, count: int) -> None:
        """Keep back the answer to the EndTxn that comes as number `count`; then `struck` is set."""
        self.struck.clear()
        self._call(self._arm(count))

    def release(self) -> None:
        """Let the answer go that was kept back."""
        self._loop.call_soon_threadsafe(self._released.set)

    # -- in the thread ---------------------------------------------------------------------------

    def _call(self, what: Any) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    async def _listen(self) -> None:
        for port, target in self._ways.items():
            connected = partial(self._connected, target)
            self._servers.append(await asyncio.start_server(connected, HOST, port))
        await self._set()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        await self._set(cut=True)
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _set(self, *, cut: bool = False, requests: bool = True, answers: bool = True) -> None:
        self._cut = cut
        for event, passes in ((self._requests_pass, requests), (self._answers_pass, answers)):
            (event.set if passes else event.clear)()
        if cut:
            self.ended_links += len(self._links)
            for link in self._links:
                link.near.transport.abort()
                link.far.transport.abort()

    async def _arm(self, count: int) -> None:
        self._released.clear()
        self._countdown = count

    async def _connected(
        self, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._cut:
            self.ended_links += 1
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, target)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, far_writer)
        self._links.add(link)
        ways = [
            asyncio.ensure_future(self._requests(reader, link)),
            asyncio.ensure_future(self._answers(far_reader, link)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._links.discard(link)
            writer.transport.abort()
            far_writer.transport.abort()

    async def _requests(self, reader: asyncio.StreamReader, link: _Link) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(reader)
                if not self._requests_pass.is_set():
                    self.stopped_frames += 1
                    await self._requests_pass.wait()
                key, _, correlation = _REQUEST.unpack_from(frame, _SIZE.size)
                ends = key == END_TXN and self._counted()
                link.held = correlation if ends else link.held
                link.far.write(frame)
                await link.far.drain()
                if ends:
                    self.struck.set()

    def _counted(self) -> bool:
        self._countdown -= 1
        return self._countdown == 0

    async def _answers(self, reader: asyncio.StreamReader, link: _Link) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(reader)
                if link.held is not None and _ANSWER.unpack_from(frame, _SIZE.size)[0] == link.held:
                    await self._released.wait()
                    link.held = None
                if not self._answers_pass.is_set():
                    self.stopped_frames += 1
                    await self._answers_pass.wait()
                link.near.write(frame)
                await link.near.drain()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(_SIZE.size)
    return size + await reader.readexactly(_SIZE.unpack(size)[0])
