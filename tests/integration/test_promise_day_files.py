"""docs/day-files.md: payloads leave Kafka for day files and come back, through kills, outages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from belfry.store.layout.pending_bytes import away, is_pending
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker
from tests.integration.test_promise_tenants_seen import series

pytestmark = pytest.mark.slow

DAY_MS: Final = 86_400_000
NUMBER: Final = 12
FAR_MS: Final = 5 * DAY_MS
# From their move until they are due, in a test of two workers: their payloads come back meanwhile.
LATER_MS: Final = 30_000


def payload(number: int) -> bytes:
    """A payload of 10 kB."""
    return b"%05d" % number * 2_000


PAYLOADS: Final = {f"s{number}": payload(number) for number in range(NUMBER)}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The folder of day files."""
    folder = tmp_path / "days"
    folder.mkdir()
    return folder


@pytest.fixture
def site(kafka: str, tmp_path: Path, store: Path, unique: Callable[[str], str]) -> Iterator[Site]:
    """A belfry that keeps day files in that folder; nothing is started."""
    given = {"DAY_STORE": f"file://{store}", "DAY_STORE_AFTER_DAYS": "2"}
    with Site(kafka, unique("days"), tmp_path, **given) as site:
        site.schedules_topic()
        yield site


def files(store: Path) -> list[Path]:
    """What lies in the store."""
    return sorted(each for each in store.rglob("*") if each.is_file())


def rows(site: Site) -> dict[str, bytes]:
    """The last record of each schedule that waits, by its id."""
    found: dict[str, bytes | None] = {}
    for each in site.read(site.topic("changelog")):
        key = (each.key or b"").decode(errors="replace")
        if key.startswith("shop/"):
            found[key.removeprefix("shop/")] = each.value
    return {key: row for key, row in found.items() if row is not None and is_pending(row)}


def away_in(site: Site) -> list[str]:
    """Ids of schedules whose payloads lie in files."""
    return sorted(each for each, row in rows(site).items() if away(row))


def filled(site: Site) -> dict[str, int]:
    """Let so many schedules wait, all due on one day, in some days; when each of them is due."""
    worker = site.worker().start().wait_ready()
    due = {name: now_ms() + FAR_MS for name in PAYLOADS}
    for name, given in PAYLOADS.items():
        site.ask("shop", name, at=due[name], payload=given, request_id=name)
    for name in PAYLOADS:
        assert site.outcome(name)["outcome"] == "ACCEPTED"
    assert worker.stop() == 0
    return due


def moved_near(site: Site, move_ms: int = -FAR_MS) -> None:
    """Let all of them be due so much later, by default at once, wherever their payloads lie."""
    job = json.dumps({"action": "MOVE", "move_ms": move_ms, "per_second": 1_000})
    site.ask("shop", "near", action="BULK", bulk=job, request_id="near")
    site.outcome("near")


def fired_payloads(site: Site) -> dict[str, bytes]:
    """What has fired, by id; no id twice."""
    records: list[Any] = site.wait_fired("shop", NUMBER, 150)
    ids = [each.header("belfry-schedule-id").decode() for each in records]
    assert len(ids) == len(set(ids))
    return {name: each.value or b"" for name, each in zip(ids, records, strict=True)}


@pytest.mark.parametrize("failpoint", ["D1:kill", "D2:kill"])
def test_a_kill_between_file_and_rows_loses_nothing(
    site: Site, store: Path, failpoint: str
) -> None:
    filled(site)
    worker = site.worker().start(failpoint)
    assert worker.wait_end(60) != 0
    assert files(store), "the file was there before any row referred to it"
    assert away_in(site) == []
    worker.start().wait_ready()
    wait_for("payloads in files", lambda: away_in(site) == sorted(PAYLOADS), 60)
    for name, row in rows(site).items():
        assert PAYLOADS[name] not in row
    # A cancel and an update reach what is away.
    site.ask("shop", "s0", action="CANCEL", request_id="cancel")
    assert site.outcome("cancel")["outcome"] == "CANCELLED"
    site.ask("shop", "s1", at=now_ms(), payload=b"another", request_id="update")
    assert site.outcome("update")["outcome"] == "UPDATED"
    site.ask("shop", "s0", at=now_ms(), payload=b"anew", request_id="anew")
    assert site.outcome("anew")["outcome"] == "ACCEPTED"
    moved_near(site)
    assert fired_payloads(site) == {**PAYLOADS, "s0": b"anew", "s1": b"another"}
    assert worker.stop() == 0


def test_what_cannot_be_read_fires_once_it_can_and_holds_up_nobody(site: Site, store: Path) -> None:
    filled(site)
    worker = site.worker().start().wait_ready()
    wait_for("payloads in files", lambda: away_in(site) == sorted(PAYLOADS), 60)
    elsewhere = store.rename(store.with_name("away"))
    moved_near(site)
    wait_for(
        "rows that are due",
        lambda: "a day file cannot be read back" in worker.log.read_text(),
        60,
    )
    site.ask("shop", "other", at=now_ms(), payload=b"other", request_id="other")
    (first,) = site.wait_fired("shop", 1)
    assert first.value == b"other"
    # A kill while they are held: the next owner holds them as well.
    worker.kill()
    worker.start().wait_ready()
    assert len(site.fired("shop")) == 1
    elsewhere.rename(store)
    records: list[Any] = site.wait_fired("shop", NUMBER + 1, 60)
    found = {each.header("belfry-schedule-id").decode(): each.value for each in records}
    assert found == {**PAYLOADS, "other": b"other"}
    assert len(records) == NUMBER + 1
    assert worker.stop() == 0


def counted_back(worker: Worker) -> float:
    """How many payloads a worker has put back into their rows."""
    page = worker.get("/metrics")[1]
    return series(page, "belfry_day_file_payloads_total", way="back") or 0.0


@pytest.mark.timeout(300)
def test_who_takes_over_brings_back_what_another_put_aside(site: Site, store: Path) -> None:
    """The owner that wrote the files is killed; whoever follows fires each once, and not early."""
    site.fired_topics(["shop"])
    due = filled(site)
    first = site.worker().start().wait_ready()
    wait_for("payloads in files", lambda: away_in(site) == sorted(PAYLOADS), 60)
    second = site.worker().start()
    wait_for("a second worker", lambda: second.get("/healthz/live")[0] == 200, 60)
    first.kill()
    second.wait_ready()
    assert away_in(site) == sorted(PAYLOADS)
    # A look goes to the store from here as well.
    status, body = second.get("/v1/tenants/shop/schedules/s3")
    assert (status, json.loads(body)["payload_text"]) == (200, PAYLOADS["s3"].decode())
    move_ms = now_ms() + LATER_MS - min(due.values())
    moved_near(site, move_ms)
    wait_for("payloads in rows", lambda: not away_in(site), 60)
    assert site.fired("shop") == [], "nothing is due yet"
    wait_for("the count of them", lambda: counted_back(second) == NUMBER)
    assert fired_payloads(site) == PAYLOADS
    for each in site.fired("shop"):
        name = (each.header("belfry-schedule-id") or b"").decode()
        assert each.timestamp_ms >= due[name] + move_ms, f"{name} is early"
    assert len(site.fired("shop")) == NUMBER
    assert second.stop() == 0
