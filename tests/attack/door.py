"""The HTTP application as a caller meets it: no socket, and no client that tidies up.

    Door(keys)("GET", "/v1/tenants/orders/schedules/a", {"authorization": "Bearer …"})

Paths go in as bytes of the request line, so that no client normalizes them.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple
from urllib.parse import unquote

from prometheus_client import CollectorRegistry

from belfry.api.auth.access import Gate
from belfry.api.auth.keys import ApiKeys, digest
from belfry.api.routes.app import create_app
from belfry.api.server.limits import PortLimits
from belfry.api.workers.checkpoint_door import CheckpointDoor
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker, Leased
from tests.unit.store.test_lookup import NOW_MS, Shelf

OWN, OTHER = "orders", "others"


class Answer(NamedTuple):
    """Status, headers with names in lower case, and body."""

    status: int
    headers: dict[str, str]
    body: bytes


class Holdings(Leased):
    """One partition, with a schedule of both tenants; remembers whom it was asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.shelf = Shelf()
        for tenant in (OWN, OTHER):
            self.shelf.add(tenant, "a", NOW_MS + 60_000)

    def home_of(self, tenant: str, _schedule_id: str) -> int:
        """Everything lives here."""
        self.asked.add(tenant)
        return 0

    def homes_of(self, tenant: str) -> list[int]:
        """Everything lives here."""
        self.asked.add(tenant)
        return [0]

    def former_homes_of(self, _tenant: str, _schedule_id: str) -> list[int]:
        """Nothing has moved."""
        return []

    def payload_keys(self, _tenant: str) -> None:
        """Nothing is encrypted."""

    def position(self, _partition: int) -> int:
        """Any."""
        return 10

    def read(self, _partition: int, look: Any) -> Any:
        """All rows."""
        return look(self.shelf.rows)


class Desk:
    """Accepts everything; remembers for whom."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    async def ask(self, fields: dict[str, Any], home: int, _timeout_s: float) -> Verdict:
        """A verdict at once."""
        self.asked.add(fields["tenant"])
        names = (fields["tenant"], fields["schedule_id"], Outcome.ACCEPTED, fields["request_id"])
        return Verdict(*names, version=1, source_partition=home, source_offset=3)


class Door:
    """The application behind its guard; `opened` says whether the worker is connected."""

    def __init__(
        self,
        keys: list[dict[str, Any]],
        *,
        opened: bool,
        checkpoints: CheckpointDoor | None = None,
    ) -> None:
        entries = [{**each, "sha256": digest(each["sha256"])} for each in keys]
        known = [ApiKeys(json.dumps(entries), None, lambda: float(NOW_MS))] if keys else []
        parts = ApiDependencies(Gate(known), (), lambda: float(NOW_MS))
        self.holdings, self.desk = Holdings(), Desk()
        self.trail = parts.trail
        if opened:
            fakes: Any = (self.desk, self.holdings, None, None, None, None, checkpoints)
            parts.open(Open(*fakes))
        metrics = Metrics(CollectorRegistry())
        # Who attacks as often as a table has rows is not slowed down here.
        limits = PortLimits(per_second=1e9, failures_per_second=1e9)
        self._app = create_app(FakeWorker(), metrics, (), parts, limits)
        self.routers = self._app.state.routers
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        """Give the loop back."""
        self._loop.close()

    @property
    def reached(self) -> set[str]:
        """Tenants that anything was looked up or asked for since the last time."""
        found = self.holdings.asked | self.desk.asked
        self.holdings.asked, self.desk.asked = set(), set()
        return found

    def __call__(
        self,
        method: str,
        target: str,
        headers: dict[str, str] | list[tuple[str, str]] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Ask, and take the answer."""
        return self._loop.run_until_complete(self._ask(method, target, headers or {}, body))

    async def _ask(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        raw, _, query = target.partition("?")
        pairs = list(headers.items() if isinstance(headers, dict) else headers)
        if not any(name == "host" for name, _ in pairs):
            pairs.append(("host", "127.0.0.1:8700"))
        if body or method in ("POST", "PUT"):
            pairs.append(("content-length", str(len(body))))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw),
            "raw_path": raw.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "headers": [(n.encode("latin-1"), v.encode("latin-1")) for n, v in pairs],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8700),
        }
        told: list[Any] = []

        bodies = [body]

        async def receive() -> dict[str, Any]:
            if not bodies:
                await asyncio.Event().wait()  # The caller stays until it has its answer.
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}

        async def send(message: Any) -> None:
            told.append(message)

        try:
            await self._app(scope, receive, send)
        except RuntimeError:
            # Starlette raises what it has answered with 500 once more, for the server's log.
            if not told:
                raise
        start = told[0]
        found = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], found, b"".join(each.get("body", b"") for each in told[1:]))
