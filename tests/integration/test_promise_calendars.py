"""A worker is killed amid a change of a calendar: each schedule moves once, and fires by new days.

600 schedules, daily ──► the calendar changes ──┬─ kill -9 ─┬──► all follow, each told of once
one, each second     ──► today is off           └───────────┘    nothing fires any more
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.harness.http import Http
from tests.acceptance.harness.reading import lifecycle_of
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
TENANT: Final = "shop"
CALENDAR: Final = f"/v1/tenants/{TENANT}/calendars/de"
COUNT: Final = 600


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One worker."""
    home: Path = tmp_path_factory.mktemp("calendars")
    with Site(kafka, f"calendars-{now_ms()}", home) as site:
        site.worker().start()
        site.workers[0].wait_ready()
        yield site


def answered(http: Http, method: str, path: str, body: Any = None, *, wanted: int = 200) -> Any:
    """The JSON of an answer; a partition that is on its way is asked again."""

    def asked() -> Any:
        status, found, _ = http(method, path, body)
        assert status in (wanted, 503), (status, found)
        return found if status != 503 else None

    return wait_for(f"an answer to {method} {path}", asked, 60)


def told(site: Site) -> Counter[tuple[str, str]]:
    """What was told of the schedules that the calendar moved: id and outcome."""
    events = [lifecycle_of(record) for record in site.read(site.topic("lifecycle"))]
    return Counter(
        (event["schedule_id"], event["outcome"])
        for event in events
        if (event["reason"] or "").startswith("calendar de was changed")
    )


def test_a_change_moves_each_schedule_once_over_a_kill(site: Site) -> None:
    worker = site.workers[0]
    http = Http(worker)
    # No clock of this machine's zone: the days are those of UTC.
    today = datetime.now(UTC)
    days = [(today + timedelta(days=number)).date().isoformat() for number in range(4)]
    schedules = f"/v1/tenants/{TENANT}/schedules"
    daily = {"cron": f"0 {(today.hour + 22) % 24} * * *", "calendar": "de"}
    refused = answered(http, "POST", schedules, {"schedule_id": "x", **daily}, wanted=422)
    assert refused["code"] == "unknown_calendar"
    assert "It has none." in refused["detail"]
    assert answered(http, "PUT", CALENDAR, {"days": []}, wanted=201)["outcome"] == "ACCEPTED"
    for number in range(COUNT):
        site.ask_soon(TENANT, f"d/{number:03}", kind="CRON", **daily)
    site.ask_soon(TENANT, "tick", kind="CRON", cron="* * * * * *", calendar="de")
    site.producer.flush(60)
    wait_for("ticks", lambda: len(site.fired(TENANT)) >= 2, 30)
    first = answered(http, "GET", f"{schedules}/d%2F599")
    assert first["calendar"] == "de"

    changed = answered(http, "PUT", CALENDAR, {"days": days, "source": "kill"})
    assert changed["outcome"] == "UPDATED"
    worker.kill()
    worker.start()
    worker.wait_ready()
    wait_for("all to follow", lambda: not answered(http, "GET", CALENDAR)["following"], 120)

    events = told(site)
    assert set(events.values()) == {1}
    assert {name for name, _ in events} == {f"d/{number:03}" for number in range(COUNT)} | {"tick"}
    assert {outcome for _, outcome in events} == {"UPDATED"}
    found = answered(http, "GET", CALENDAR)
    assert (found["days"], found["source"]) == (days, "kill")
    # One that comes due before its turn is moved then, and is no part of the count.
    assert COUNT <= found["moved"] <= COUNT + 1
    moved = answered(http, "GET", f"{schedules}/d%2F000")
    assert moved["due_at"][:10] not in days
    # What was due after the change fired by no old day.
    last = max(record.header("belfry-scheduled-at") or b"" for record in site.fired(TENANT))
    assert last <= found["changed_at"].encode(), (last, found["changed_at"])
    preview = {"cron": "0 9 * * *", "calendar": "de", "tenant": TENANT, "count": 3}
    shown = answered(http, "POST", "/v1/preview", preview)
    assert not {each["scheduled_at"][:10] for each in shown["occurrences"]} & set(days)
