"""The HTTP port of one worker: the shipped application, on an event loop in the stage's time.

    bytes of a call ─► guard ─► express, or a route ─► Kafka, or rows ─► an answer that travels back
                                    └─► another worker's port, through the shipped peers

Connections are the simulator's.  A call that has come to a worker goes on though nobody hears its
answer, waits while the worker is paused, and is gone with its process.  Routes that belong to other
kinds of things are left out: to make them takes longer than a world does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import aiohttp
import structlog
from prometheus_client import CollectorRegistry

from belfry.api.auth.access import Gate
from belfry.api.routes import app as application
from belfry.api.routes import lookup
from belfry.api.routes.schedules import schedule_routes
from belfry.api.server import guard
from belfry.api.server.limits import PortLimits
from belfry.api.workers import peers, request_client, verdicts, writing
from belfry.api.workers.directory import Directory
from belfry.api.workers.holdings import Holdings
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.api.workers.request_client import RequestClient
from belfry.audit.trail import Trail
from belfry.host.background import END, Background
from belfry.telemetry.metrics import Metrics
from belfry.wire.worker_keys import Purpose
from tests.simulation import primitives
from tests.simulation.machine import Machine, machine
from tests.simulation.polled import PolledProducer
from tests.simulation.stage import here
from tests.simulation.webhooks import HookLoop

if TYPE_CHECKING:
    from belfry.partitions.opener import PartitionOpener
    from belfry.partitions.supervisor import Owners
    from tests.simulation.calling import Calling

# What a port that closes waits for calls that are under way.
GRACE_S: Final = 2.0
Back = Callable[["Answer"], None]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """What one call says; the path is as it was written."""

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(slots=True)
class Answer:
    """An answer; when it left its worker (epoch ms), and how many transactions were decided."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    decided: int = 0
    at_ms: int = 0


def doors() -> list[tuple[Any, str, Any]]:
    """What stands in for clients, time, chance and the network of the port."""
    session = SimpleNamespace(
        ClientSession=PeerSession,
        TCPConnector=lambda **_: None,
        ClientTimeout=aiohttp.ClientTimeout,
        ClientError=aiohttp.ClientError,
    )
    return [
        (request_client, "Producer", lambda _given: PolledProducer(_watched)),
        (request_client, "SimpleQueue", primitives.SimSimpleQueue),
        (verdicts, "monotonic", primitives.monotonic),
        (guard, "monotonic", primitives.monotonic),
        (lookup, "monotonic", primitives.monotonic),
        (writing, "uuid4", lambda: SimpleNamespace(hex=f"{here().random.getrandbits(128):032x}")),
        (peers, "aiohttp", session),
        (application, "_routers", _only_schedules),
    ]


def _watched(by: Machine, topic: str, value: Any, _key: Any, _headers: Any) -> Any:
    assert by.calling is not None, "somebody calls this worker"
    return by.calling.written(by, topic, value)


def _only_schedules(
    _view: Any, _metrics: Any, parts: Any, callers: Any, reads: Any
) -> Iterable[Any]:
    return (schedule_routes(parts, reads, callers),)


class Port:
    """The port of a process; it answers from `start` on."""

    def __init__(self, calling: Calling, opener: PartitionOpener, entry: Any, frames: Any) -> None:
        self._calling, self._machine = calling, machine()
        settings = opener.settings
        self._opener, name = opener, self._machine.name
        self._client = RequestClient(
            settings, (frames.request, frames.lifecycle), opener.tenants.secret_of
        )
        self._directory = Directory(entry, url_of(name))
        keys = settings.worker_keys(Purpose.FORWARD)
        self._parts = ApiDependencies(Gate(), keys, self._machine.wall_ms, Trail("none"))
        unseen: Any = None
        limits = PortLimits(hosts=frozenset({name}))
        metrics = Metrics(CollectorRegistry())
        self._app = application.create_app(unseen, metrics, (), self._parts, limits)
        self._loop = HookLoop()
        # In the order in which they came: a set's is another one in each run.
        self._calls: dict[asyncio.Task[None], None] = {}
        self._owners: Owners | None = None
        self._front = Background("front", self._open, log, "HTTP takes no requests yet")
        calling.ports[name] = self

    def committed(self, events: Any) -> None:
        """What a partition of this worker has committed."""
        self._client.committed(events)

    def start(self, owners: Owners) -> None:
        """Listen, and connect as soon as Kafka answers."""
        self._owners = owners
        here().spawn(f"{self._machine.name} http", self._loop.run_forever)
        self._front.start()

    def _open(self) -> object:
        self._client.start()
        opener, unseen = self._opener, None
        assert self._owners is not None
        holdings = Holdings(self._owners, opener.tenants, opener.partitions)
        nobody: Any = unseen
        self._parts.open(Open(self._client, holdings, self._directory, nobody, nobody))
        return END

    def stop(self) -> None:
        """Answer what is under way, for a while, and close."""
        closed = primitives.SimEvent()
        asking = asyncio.run_coroutine_threadsafe(self._close(), self._loop)
        asking.add_done_callback(lambda _: closed.set())
        closed.wait()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._front.stop()
        self._client.stop()

    async def _close(self) -> None:
        self._calling.ports.pop(self._machine.name, None)
        if self._calls:
            await asyncio.wait(self._calls, timeout=GRACE_S)
        for call in list(self._calls):
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls)

    # -- calls -------------------------------------------------------------------------------------

    @property
    def listens(self) -> bool:
        """Whether a connection is taken."""
        return not self._machine.dead and self._calling.ports.get(self._machine.name) is self

    def take(self, asked: Asked, back: Back) -> None:
        """A call has come in; its answer is given `back`, when it leaves."""
        self._loop.call_soon_threadsafe(self._begin, asked, back)

    def _begin(self, asked: Asked, back: Back) -> None:
        call = self._loop.create_task(self._serve(asked, back))
        self._calls[call] = None
        call.add_done_callback(self._ended)

    def _ended(self, call: asyncio.Task[None]) -> None:
        self._calls.pop(call, None)
        if not call.cancelled() and (error := call.exception()) is not None:
            self._calling.problems.append(f"I20 a call ended: {type(error).__name__}: {error}")

    async def _serve(self, asked: Asked, back: Back) -> None:
        answer, bodies = Answer(0), [asked.body]

        async def receive() -> Any:
            if bodies:
                return {"type": "http.request", "body": bodies.pop(), "more_body": False}
            return await self._loop.create_future()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                listed = message.get("headers", ())
                answer.headers = {name.decode(): value.decode() for name, value in listed}
                return
            answer.body += message.get("body", b"")
            if not message.get("more_body"):
                here().check()
                broker = self._machine.broker
                answer.decided, answer.at_ms = broker.decided, broker.now_ms()
                back(answer)

        await self._app(self._scope(asked), receive, send)

    def _scope(self, asked: Asked) -> dict[str, Any]:
        given = (*asked.headers, ("host", self._machine.name))
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": asked.method,
            "path": unquote(asked.path),
            "raw_path": asked.path.encode(),
            "query_string": asked.query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in given],
            "client": ("192.0.2.7", 7),
            "server": (self._machine.name, 8700),
        }


def url_of(name: str) -> str:
    """Under which address others reach a worker."""
    return f"http://{name}:8700"


class PeerSession:
    """`aiohttp.ClientSession` of a worker that asks another one."""

    def __init__(self, **_: Any) -> None:
        self._machine = machine()

    @asynccontextmanager
    async def request(
        self, method: str, url: Any, *, data: Any, headers: dict[str, str], **more: Any
    ) -> AsyncIterator[Any]:
        """Ask, and wait for the answer; raises `ClientError` and TimeoutError."""
        calling = self._machine.calling
        assert calling is not None, "somebody calls this worker"
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[Answer | None] = loop.create_future()

        def settle(answer: Answer | None) -> None:
            if not heard.done():
                heard.set_result(answer)

        def back(answer: Answer | None) -> None:
            if not self._machine.dead:
                loop.call_soon_threadsafe(settle, answer)

        listed = tuple(headers.items())
        asked = Asked(method, url.raw_path, url.raw_query_string, listed, data or b"")
        calling.struck.append("call passed on")
        calling.carry(self._machine, url.host, asked, back)
        async with asyncio.timeout(more["timeout"].total):
            answer = await heard
        if answer is None:
            raise aiohttp.ClientConnectionError(f"{url.host} takes no connection")
        body = answer.body

        async def read() -> bytes:
            return body

        yield SimpleNamespace(status=answer.status, headers=answer.headers, read=read)

    async def close(self) -> None:
        """Nothing is kept open."""
