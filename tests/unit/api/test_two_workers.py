"""Two workers, each of which holds one partition: whoever is asked, the right one answers.

A tenant was spread otherwise before, so its schedules may live at a home (1) or a former home (0).
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.responses import Response
from starlette.testclient import TestClient

from belfry.api.access import Gate, Principal
from belfry.api.app import create_app
from belfry.api.cursors import question, write_cursor
from belfry.api.desk import NotWritten
from belfry.api.holdings import NotHeld
from belfry.api.parts import Open, Parts
from belfry.api.peers import FORWARDED, Target
from belfry.schedules.tenant import Delivery, Level, Tenants
from belfry.store.lookup import Wanted
from belfry.store.ordered_map import MemoryMap
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker
from tests.unit.store.test_lookup import NOW_MS, Shelf

HOME = "/v1/tenants/moved/schedules"


class Holdings:
    """One partition of two."""

    def __init__(self, mine: int, rows: MemoryMap) -> None:
        self._mine = mine
        self._rows = rows
        self._tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)

    def home_of(self, _tenant: str, _schedule_id: str) -> int:
        return 1

    def former_homes_of(self, _tenant: str, _schedule_id: str) -> list[int]:
        return [0]

    def homes_of(self, _tenant: str) -> list[int]:
        return [0, 1]

    def tenant(self, tenant: str) -> Any:
        return self._tenants.of(tenant)

    def position(self, partition: int) -> int:
        self._check(partition)
        return 10

    def read(self, partition: int, look: Callable[[Any], Any]) -> Any:
        self._check(partition)
        return look(self._rows)

    def _check(self, partition: int) -> None:
        if partition != self._mine:
            raise NotHeld(partition)


class Desk:
    """Writes nothing, and says so."""

    def copy(self, *_: Any) -> None:
        raise NotWritten("this one never writes")


@pytest.fixture
def workers() -> list[FastAPI]:
    """Workers of partitions 0 and 1; `old` is in 0, `new` in 1."""
    shelves = [Shelf(), Shelf()]
    shelves[0].add("moved", "old", NOW_MS + 60_000)
    shelves[1].add("moved", "new", NOW_MS + 60_000)
    apps: list[FastAPI] = []
    for number, shelf in enumerate(shelves):
        parts = Parts(Gate(), None, lambda: float(NOW_MS))
        directory = SimpleNamespace(mine=f"http://{number}", holder=lambda p: f"http://{p}")
        opened: Any = (Desk(), Holdings(number, shelf.rows), directory, None, None)
        parts.open(Open(*opened))
        parts.peers.ask = _asker(apps, parts)  # type: ignore[method-assign]
        apps.append(create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts))
    return apps


def _asker(apps: list[FastAPI], parts: Parts) -> Any:
    async def ask(url: str, target: Target, who: Principal, headers: dict[str, str]) -> Response:
        given = {**headers, FORWARDED: parts.passport.write(target, who)}
        found = _client(apps[int(url[-1])]).request(target.method, target.path, headers=given)
        return Response(found.content, found.status_code, dict(found.headers))

    return ask


def _client(app: FastAPI) -> TestClient:
    return TestClient(app, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)


@pytest.mark.parametrize("asked", [0, 1])
@pytest.mark.parametrize(("name", "status"), [("old", 200), ("new", 200), ("none", 404)])
def test_a_schedule_is_found_wherever_it_lives(
    workers: list[FastAPI], asked: int, name: str, status: int
) -> None:
    assert _client(workers[asked]).get(f"{HOME}/{name}").status_code == status


@pytest.mark.parametrize("asked", [0, 1])
@pytest.mark.parametrize(
    ("name", "code"), [("old", "not_written"), ("new", "not_written"), ("none", "not_found")]
)
def test_a_dry_run_finds_it_too(workers: list[FastAPI], asked: int, name: str, code: str) -> None:
    assert _client(workers[asked]).post(f"{HOME}/{name}/dry-run").json()["code"] == code


@pytest.mark.parametrize("partition", [2, 65_535])
def test_a_cursor_of_a_partition_that_the_tenant_has_nothing_in(
    workers: list[FastAPI], partition: int
) -> None:
    cursor = write_cursor(question(HOME, Wanted(b"moved")), partition, b"")
    answer = _client(workers[0]).get(HOME, params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_cursor")
