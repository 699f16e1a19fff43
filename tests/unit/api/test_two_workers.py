"""Two workers, each of which holds one partition: whoever is asked, the right one answers.

A tenant was spread otherwise before, so its schedules may live at a home (1) or a former home (0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.responses import Response
from starlette.testclient import TestClient

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import ANYBODY, Principal
from belfry.api.json.cursors import question, write_cursor
from belfry.api.routes.app import create_app
from belfry.api.workers.acknowledgements import NotWritten
from belfry.api.workers.holdings import NotHeld
from belfry.api.workers.internal_token import FORWARDED, Target
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.api.workers.peers import AFTER, AT, PeerUnreachable
from belfry.engine.drained import Drained
from belfry.store.layout.records import LOCKS_GROUP, LOCKS_OWN
from belfry.store.lookup import Wanted
from belfry.store.ordered_map import MemoryMap
from belfry.telemetry.metrics import Metrics
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from tests.unit.api.conftest import FakeWorker, Leased
from tests.unit.store.test_due_lookup import DueShelf
from tests.unit.store.test_lookup import NOW_MS, Shelf

HOME = "/v1/tenants/moved/schedules"
FROZEN = "http://frozen"


class Holdings(Leased):
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

    def drained(self, partition: int) -> tuple[Drained, ...]:
        self._check(partition)
        return ()

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
    shelves = [DueShelf(), DueShelf()]
    shelves[0].lock("moved", "f0", LOCKS_GROUP)
    shelves[1].lock("moved", "f1", LOCKS_OWN)
    shelves[0].add("moved", "old", NOW_MS + 60_000)
    shelves[1].add("moved", "new", NOW_MS + 60_000)
    apps: list[FastAPI] = []
    for number, shelf in enumerate(shelves):
        parts = ApiDependencies(Gate(), (), lambda: float(NOW_MS))
        directory = SimpleNamespace(
            mine=f"http://{number}",
            holder=lambda partition: f"http://{partition}",
            standbys=lambda _partition: [],
        )
        opened: Any = (Desk(), Holdings(number, shelf.rows), directory, None, None)
        parts.open(Open(*opened))
        parts.peers.ask = _asker(apps, parts)  # type: ignore[method-assign]
        apps.append(create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts))
        apps[-1].state.parts = parts
    return apps


def _asker(apps: list[FastAPI], parts: ApiDependencies) -> Any:
    async def ask(url: str, target: Target, who: Principal, headers: dict[str, str]) -> Response:
        if url == FROZEN:
            raise PeerUnreachable(f"{url}: TimeoutError")
        given = {**headers, FORWARDED: parts.internal_token.write(target, who)}
        found = _client(apps[int(url[-1])]).request(
            target.method, f"{target.path}?{target.query}", content=target.body, headers=given
        )
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


def test_locks_of_all_homes_are_listed_with_what_to_acknowledge(workers: list[FastAPI]) -> None:
    found, cursor = [], None
    while True:
        given = {"limit": 1} if cursor is None else {"limit": 1, "cursor": cursor}
        page = _client(workers[0]).get("/v1/tenants/moved/locks", params=given).json()
        found += [(lock["fire_id"], lock["locks"], lock["group"]) for lock in page["locks"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == [("f0", ["group"], "g"), ("f1", ["schedule"], "g")]


@pytest.mark.parametrize("what", ["schedules", "counts"])
def test_a_page_by_due_instant_tells_nothing_of_others(workers: list[FastAPI], what: str) -> None:
    for _ in range(3):
        answer = _client(workers[0]).get(f"/v1/tenants/nobody/{what}", params={"due_from": 0})
        assert answer.json()["examined"] == 0


@pytest.mark.parametrize("partition", [2, 65_535])
def test_a_cursor_of_a_partition_that_the_tenant_has_nothing_in(
    workers: list[FastAPI], partition: int
) -> None:
    cursor = write_cursor(question(HOME, Wanted(b"moved")), partition, b"")
    answer = _client(workers[0]).get(HOME, params={"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_cursor")


def test_where_the_holder_is_frozen_the_standby_that_took_over_is_asked(
    workers: list[FastAPI],
) -> None:
    """The group's word comes later."""
    directory: Any = workers[0].state.parts.ready.directory
    directory.holder = lambda _partition: FROZEN
    directory.standbys = lambda _partition: ["http://0", "http://1"]
    assert _client(workers[0]).get(f"{HOME}/new").status_code == 200


class Both(Holdings):
    """Both partitions."""

    def _check(self, partition: int) -> None:
        assert partition in (0, 1)


class Doubted:
    """Holdings of which it is not known at once whether they are still held."""

    def __init__(self, holdings: Any, answers: list[bool | None]) -> None:
        self._holdings = holdings
        self.answers = answers

    def proven(self, partition: int, _lease: Any, _read_ms: float) -> bool:
        answer = self.answers.pop(0)
        if answer is None:
            raise NotHeld(partition)
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._holdings, name)


@pytest.fixture
def doubted(workers: list[FastAPI]) -> Callable[..., Doubted]:
    """Partition 1 of its holder, who has to ask before it knows."""

    def doubt(*answers: bool | None) -> Doubted:
        parts = workers[1].state.parts
        found = Doubted(parts.ready.holdings, list(answers))
        parts.open(replace(parts.ready, holdings=found))
        return found

    return doubt


def test_what_was_read_is_answered_once_it_is_proven(
    workers: list[FastAPI], doubted: Callable[..., Doubted]
) -> None:
    found = doubted(False, False, True)
    assert _client(workers[1]).get(f"{HOME}/new").status_code == 200
    assert not found.answers


def test_a_holder_that_proves_nothing_in_time_does_not_claim_a_move(
    workers: list[FastAPI], doubted: Callable[..., Doubted]
) -> None:
    """Brokers that are slow or away keep it from a proof, and nothing is on its way then."""
    doubted(*[False] * 10_000)
    answer = _client(workers[1]).get(f"{HOME}/new")
    assert (answer.status_code, answer.json()["code"]) == (503, "moving")
    assert "may be on its way to another worker" in answer.json()["detail"]
    assert "the brokers are slow, or do not answer" in answer.json()["detail"]


def test_what_cannot_be_proven_is_asked_of_the_successor(
    workers: list[FastAPI], doubted: Callable[..., Doubted]
) -> None:
    """This worker still finds the schedule; the successor has cancelled it."""
    doubted(False, None, None)
    parts = workers[1].state.parts
    parts.ready.directory.holder = lambda _partition: "http://0"
    successor: Any = workers[0].state.parts
    successor.open(replace(successor.ready, holdings=Both(0, Shelf().rows)))
    assert _client(workers[1]).get(f"{HOME}/new").status_code == 404


def test_a_dry_run_of_what_cannot_be_proven_writes_no_copy(
    workers: list[FastAPI], doubted: Callable[..., Doubted]
) -> None:
    doubted(None, None)
    workers[1].state.parts.ready.directory.holder = lambda _partition: "http://0"
    successor: Any = workers[0].state.parts
    successor.open(replace(successor.ready, holdings=Both(0, Shelf().rows)))
    assert _client(workers[1]).post(f"{HOME}/new/dry-run").json()["code"] == "not_found"


@pytest.mark.parametrize("header", [AT, AFTER])
@pytest.mark.parametrize("given", ["9" * 5_000, "-1", "1e9", ""])
def test_a_header_of_workers_that_holds_no_number_is_refused(
    workers: list[FastAPI], header: str, given: str
) -> None:
    """Python refuses to read thousands of digits, which was answered 500 where nobody signs."""
    parts = workers[0].state.parts
    told = {FORWARDED: parts.internal_token.write(Target("GET", f"{HOME}/old", ""), ANYBODY)}
    headers = {**told, header: given}
    answer = _client(workers[0]).get(f"{HOME}/old", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_header")
    assert f"{len(given)} characters" in answer.json()["detail"]
    # From a caller they mean nothing.
    assert _client(workers[0]).get(f"{HOME}/old", headers={header: given}).is_success
