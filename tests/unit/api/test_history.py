"""Histories and statistics over HTTP: what one look costs, how pages go on, who is asked."""

from __future__ import annotations

import asyncio
import struct
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient
from starlette.types import Message

from belfry.api.auth.access import Gate
from belfry.api.json.cursors import write_cursor
from belfry.api.routes.app import create_app
from belfry.api.routes.history import _merged
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.history import history_store as shelf
from belfry.history.fire_hours import FireHours
from belfry.history.history_store import HistoryEntry, HistoryStore
from belfry.history.layout import DAY_MS, HOUR_MS
from belfry.schedules.identity import partition_of
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.keys import schedule_key
from belfry.store.ordered_map import MemoryMap
from belfry.telemetry.metrics import Metrics
from belfry.tenants.effective import Level
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle
from belfry.wire.lifecycle_heads import headline
from tests.unit.api.conftest import FakeWorker

NOW_MS = 1_800_000_000_000
HERE = "http://127.0.0.1:8700"
A = "/v1/tenants/t/schedules/a/history"
ALL = "/v1/tenants/t/history"
SUMS = "/v1/tenants/t/statistics"


class Counting(MemoryMap):
    """Counts scans, and the rows that are taken from them."""

    scans = rows = 0

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        self.scans += 1
        for pair in super().scan(start, end):
            self.rows += 1
            yield pair


class Histories:
    """Two partitions of the topic, followed here; a week is kept."""

    partitions = 2
    keep_ms = 7 * DAY_MS

    def __init__(self) -> None:
        self.rows = Counting()
        self.store: HistoryStore | None = HistoryStore(self.rows)
        self.fire_hours = FireHours(lambda: float(NOW_MS))
        self.followed = frozenset({0, 1})
        self.home = partition_of(schedule_key("t", "a"), self.partitions)

    def home_of(self, partition: int) -> int:
        return partition

    def reach_ms(self, _tenant: bytes) -> tuple[int, int]:
        return max(0, NOW_MS - self.keep_ms), NOW_MS + HOUR_MS

    def add(self, schedule_id: str, *instants: int, partition: int | None = None) -> None:
        """Records of a schedule; offsets go on by themselves."""
        partition = self.home if partition is None else partition
        self.keep(partition, *(_event(schedule_id, at_ms) for at_ms in instants))

    def keep(self, partition: int, *events: LifecycleEvent) -> None:
        """Events in a partition; offsets go on by themselves."""
        assert self.store is not None
        begin = self.store.position(partition) or 0
        bodies = [encode_lifecycle(event) for event in events]
        notes = [HistoryEntry(begin + n, headline(body), body) for n, body in enumerate(bodies)]
        self.store.add(partition, notes, begin + len(notes))


def _event(
    schedule_id: str, at_ms: int, outcome: Outcome = Outcome.ACCEPTED, tenant: str = "t"
) -> LifecycleEvent:
    return LifecycleEvent(
        tenant=tenant, schedule_id=schedule_id, outcome=outcome, at=at_ms, due_at=at_ms
    )


class Elsewhere:
    """Nobody else is there; every partition is held here."""

    mine = HERE

    def holder(self, _partition: int) -> str | None:
        return self.mine

    settled = True

    def standbys(self, _partition: int) -> list[str]:
        return []

    def position(self, _partition: int) -> int:
        return 10

    def lease(self, _partition: int) -> Elsewhere:
        return self

    def proven(self, *_: Any) -> bool:
        return True

    def level(self, tenant: str) -> Level:
        return {"t": Level.ALL, "u": Level.OUTCOMES}.get(tenant, Level.FAILURES)


@pytest.fixture
def kept() -> Histories:
    return Histories()


@pytest.fixture
def app(kept: Histories) -> FastAPI:
    parts = ApiDependencies(Gate(), (), lambda: float(NOW_MS))
    opened: Any = (None, Elsewhere(), Elsewhere(), kept, None)
    parts.open(Open(*opened))
    return create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts)


@pytest.fixture
def client(app: FastAPI) -> TestClient:
    return TestClient(app, base_url=HERE, raise_server_exceptions=False)


def every_page(client: TestClient, path: str, **query: Any) -> tuple[list[str], int]:
    """The instants of all events, page by page, and the number of pages."""
    found, pages = [], 0
    while True:
        told = client.get(path, params=query).json()
        pages += 1
        found += [event["at"] for event in told["events"]]
        if told["cursor"] is None:
            return found, pages
        query["cursor"] = told["cursor"]


def cursor_of(client: TestClient, path: str, **query: Any) -> str:
    """The cursor of a first page of one event."""
    cursor: str = client.get(path, params={"limit": 1, **query}).json()["cursor"]
    return cursor


def is_refused(client: TestClient, path: str, cursor: str, **query: Any) -> bool:
    answer = client.get(path, params={"cursor": cursor, **query})
    return (answer.status_code, answer.json().get("code")) == (422, "bad_cursor")


@pytest.mark.parametrize("path", [A, ALL])
@pytest.mark.parametrize(
    "cursor", ["AAAAAAAAAAAAAP__________", "AAAAAAAAAAAAAA", "", "x", "é", "%%%", "A" * 99]
)
def test_what_is_no_cursor_is_refused(client: TestClient, path: str, cursor: str) -> None:
    assert is_refused(client, path, cursor)


@pytest.mark.parametrize("path", [A, ALL])
@pytest.mark.parametrize(
    ("at_ms", "offset"),
    [(0, 2**64 - 1), (0, 2**63), (-1, 0), (-(2**63), 0), (2**63 - 1, 0), (253_402_300_800_000, 0)],
)
def test_a_cursor_to_where_nothing_can_be_is_refused(
    client: TestClient, kept: Histories, path: str, at_ms: int, offset: int
) -> None:
    kept.add("a", NOW_MS - 1, NOW_MS)
    digest = urlsafe_b64decode(cursor_of(client, path) + "==")[:6]
    for key in (struct.pack(">qQ", at_ms, offset), struct.pack(">qQx", 0, 0), b""):
        assert is_refused(client, path, write_cursor(digest, 0, key))
    some = write_cursor(digest, 0xFFFF, struct.pack(">qQ", 253_402_300_799_999, 2**63 - 1))
    assert client.get(path, params={"cursor": some}).json() == {"events": [], "cursor": None}


def test_a_cursor_of_another_question_is_refused(client: TestClient, kept: Histories) -> None:
    kept.add("a", NOW_MS - 1, NOW_MS)
    cursor = cursor_of(client, ALL)
    assert client.get(ALL, params={"cursor": cursor, "limit": 5}).status_code == 200
    assert is_refused(client, A, cursor)
    assert is_refused(client, "/v1/tenants/u/history", cursor)
    assert is_refused(client, ALL, cursor, **{"from": 1})
    assert is_refused(client, ALL, cursor, until=NOW_MS)
    assert is_refused(client, "/v1/tenants/t/schedules/b/history", cursor_of(client, A))


@pytest.mark.parametrize("keep_ms", [7 * DAY_MS, 10**15])
def test_a_history_without_bounds_costs_a_scan_a_day_that_is_kept(
    client: TestClient, kept: Histories, keep_ms: int
) -> None:
    assert client.get(A).json() == {"events": [], "cursor": None}
    kept.keep_ms = keep_ms
    kept.add("a", NOW_MS - DAY_MS, NOW_MS)
    kept.rows.scans = 0
    assert len(client.get(A).json()["events"]) == 2
    assert kept.rows.scans <= 4


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_a_schedules_newest_events_come_first_where_that_is_asked_for(
    client: TestClient, kept: Histories, limit: int
) -> None:
    kept.add("a", *(NOW_MS - n * DAY_MS // 2 for n in range(7)))
    oldest_first, _ = every_page(client, A)
    newest_first, pages = every_page(client, A, order="newest", limit=limit)
    assert newest_first == oldest_first[::-1]
    assert pages == -(-7 // limit)
    within = {"from": NOW_MS - DAY_MS, "until": NOW_MS}
    assert every_page(client, A, order="newest", **within)[0] == newest_first[1:3]


@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_only_events_of_some_outcomes_are_told_where_these_are_named(
    client: TestClient, kept: Histories, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(shelf.page, "__defaults__", (10,))
    outcomes = [Outcome.ACCEPTED, *[Outcome.NOT_FOUND] * 30, Outcome.CANCELLED]
    events = [_event("a", NOW_MS - 99 + n, each) for n, each in enumerate(outcomes)]
    kept.keep(kept.home, *events, *[_event("a", NOW_MS, Outcome.REJECTED)] * 30)
    wanted = {"order": order, "outcome": ["CANCELLED", "ACCEPTED"], "limit": 1}
    found, pages = every_page(client, A, **wanted)
    assert found == sorted(found, reverse=order == "newest")
    assert len(found) == 2
    assert pages >= 6, "a page looks at ten rows at most"
    cursor = cursor_of(client, A, order=order, outcome="ACCEPTED")
    assert is_refused(client, A, cursor, order=order, outcome="CANCELLED")
    assert client.get(A, params={"outcome": "GONE"}).status_code == 422


def test_a_cursor_is_of_one_order(client: TestClient, kept: Histories) -> None:
    kept.add("a", NOW_MS - 1, NOW_MS)
    assert is_refused(client, A, cursor_of(client, A), order="newest")
    assert is_refused(client, A, cursor_of(client, A, order="newest"))
    assert client.get(A, params={"order": "sideways"}).status_code == 422
    assert client.get(ALL, params={"order": "newest"}).status_code == 422


def test_an_event_tells_where_its_own_record_lies(client: TestClient, kept: Histories) -> None:
    kept.add("a", NOW_MS - 1, NOW_MS)
    for path in (A, ALL):
        events = client.get(path).json()["events"]
        told = [(each["told_partition"], each["told_offset"]) for each in events]
        assert told == [(kept.home, 0), (kept.home, 1)]


def test_what_is_older_than_the_tenant_wants_is_not_told(
    client: TestClient, kept: Histories
) -> None:
    kept.add("a", NOW_MS - 8 * DAY_MS, NOW_MS)
    for path in (A, ALL):
        assert every_page(client, path, **{"from": 0}) == (["2027-01-15T08:00:00.000Z"], 1)
    assert client.get(SUMS).json()["requests"] == 1


def test_a_page_looks_at_a_bounded_number_of_rows(client: TestClient, kept: Histories) -> None:
    """All but the last are followed by another worker now."""
    kept.add("b", *range(NOW_MS - 20_999, NOW_MS - 999), partition=1)
    kept.add("b", NOW_MS, partition=0)
    kept.add("b", *range(NOW_MS + 1, NOW_MS + 1_000), partition=1)
    kept.partitions, kept.followed = 1, frozenset({0})
    first = client.get(ALL).json()
    assert (first["events"], first["cursor"] is None) == ([], False)
    assert kept.rows.rows <= shelf.EXAMINE + 1
    assert every_page(client, ALL) == (["2027-01-15T08:00:00.000Z"], 3)


def test_pages_give_every_event_once(client: TestClient, kept: Histories) -> None:
    kept.add("a", *(NOW_MS - n * HOUR_MS for n in range(30, 0, -1)), partition=0)
    kept.add("a", *(NOW_MS - n * HOUR_MS for n in range(30, 0, -2)), partition=1)
    whole = client.get(ALL).json()["events"]
    assert len(whole) == 45
    assert every_page(client, ALL, limit=7) == ([event["at"] for event in whole], 7)
    assert every_page(client, A, limit=7) == ([event["at"] for event in whole], 7)


def test_a_page_of_several_workers_ends_where_one_of_them_stopped() -> None:
    some = {"events": [[[1, 0, 0], "a"], [[5, 0, 1], "b"]], "rest": None}
    others = {"events": [[[2, 1, 0], "c"]], "rest": [4, 1, 0]}
    told = _merged([some, others], 10, b"")
    assert told["events"] == ["a", "c"]
    assert told["cursor"] is not None
    assert _merged([some, {**others, "rest": None}], 2, b"")["events"] == ["a", "c"]
    assert _merged([some, {**others, "rest": None}], 3, b"")["cursor"] is None


async def status_of(app: FastAPI, path: str) -> int:
    """The status of an answer, in this event loop."""
    statuses: list[int] = []
    headers = [(b"host", b"127.0.0.1:8700")]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode()}
    scope |= {"query_string": b"", "headers": headers, "client": ("127.0.0.1", 1)}

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        statuses.append(message.get("status", 0))

    await app({"http_version": "1.1", "scheme": "http", **scope}, receive, send)
    return max(statuses)


async def test_statistics_let_others_run_between_two_chunks(
    app: FastAPI, kept: Histories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "COUNT_ROWS", 10)
    kept.add("a", *(NOW_MS - n * HOUR_MS for n in range(100)))
    asked = asyncio.create_task(status_of(app, SUMS))
    begun = 0
    while not asked.done():
        before = kept.rows.rows
        await asyncio.sleep(0)
        begun += kept.rows.rows > before
        assert kept.rows.rows - before <= 12
    assert await asked == 200
    assert begun >= 10


def test_statistics_in_chunks_are_whole(
    client: TestClient, kept: Histories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "COUNT_ROWS", 7)
    for partition in range(2):
        instants = (NOW_MS - n * HOUR_MS // 2 for n in range(100))
        kept.add("a", *instants, partition=partition)
    told = client.get(SUMS).json()
    assert (told["requests"], len(told["hours"])) == (200, 51)
    assert sum(hour["requests"] for hour in told["hours"]) == 200


def test_statistics_of_a_partition_that_goes_meanwhile_are_not_told(
    client: TestClient, kept: Histories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belfry.api.workers.scatter_gather.TIMEOUT_S", 0.0)
    assert kept.store is not None
    statistics = kept.store.statistics

    def going(*given: Any) -> Any:
        kept.followed = frozenset({0})
        return statistics(*given)

    monkeypatch.setattr(kept.store, "statistics", going)
    answer = client.get(SUMS)
    assert (answer.status_code, answer.json()["code"]) == (503, "moving")
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("path", [A, ALL, SUMS])
def test_who_asks_before_all_is_read_is_to_ask_again(
    client: TestClient, kept: Histories, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("belfry.api.workers.scatter_gather.TIMEOUT_S", 0.0)
    monkeypatch.setattr("belfry.api.workers.reading.TIMEOUT_S", 0.0)
    kept.followed = frozenset({1 - kept.home})
    answer = client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (503, "moving")
    assert answer.headers["retry-after"] == "1"


def test_a_target_is_shown_without_what_may_be_a_token(kept: Histories, client: TestClient) -> None:
    told = replace(_event("a", NOW_MS - 1, Outcome.DELIVERED), target="https://h.example/p?token=x")
    kept.keep(kept.home, told)
    (event,) = client.get("/v1/tenants/t/history").json()["events"]
    assert event["target"] == "https://h.example/p?***"
