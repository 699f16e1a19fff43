"""Statistics over HTTP: fires at every level, and what several workers have counted."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from belfry.api.json.statistics_answers import summed
from belfry.history import counters
from belfry.history.layout import HOUR_MS
from belfry.schedules.outcomes import Outcome
from belfry.tenants.effective import Level
from belfry.wire.lifecycle import LifecycleEvent
from tests.unit.api.test_history import NOW_MS, Histories, app, client, kept, status_of

__all__ = ["app", "client", "kept"]

LEVELS = {"t": "ALL", "u": "OUTCOMES", "v": "FAILURES"}
HOUR = NOW_MS // HOUR_MS


def event(outcome: Outcome, tenant: str = "v", **more: Any) -> LifecycleEvent:
    told = LifecycleEvent(tenant=tenant, schedule_id="a", outcome=outcome, at=NOW_MS, due_at=NOW_MS)
    return replace(told, **more)


def begin(kept: Histories) -> None:
    assert kept.store is not None
    kept.store.fires.begin(NOW_MS)


@pytest.mark.parametrize("tenant", LEVELS)
def test_fires_and_their_shares_are_told_at_every_level(
    client: TestClient, kept: Histories, tenant: str
) -> None:
    """A missed occurrence is a record at every level, one that fired at ALL alone."""
    begin(kept)
    kept.keep(0, event(Outcome.MISSED, tenant))
    if tenant == "t":
        kept.keep(0, *[event(Outcome.FIRED, tenant)] * 3)
    kept.fire_hours.add({tenant: [0, 1_000, 1_001], "another": [0] * 9}, NOW_MS)
    told = client.get(f"/v1/tenants/{tenant}/statistics").json()
    assert (told["lifecycle"], told["fires_since"]) == (LEVELS[tenant], None)
    in_time = 3 if tenant == "t" else 2
    for counted in (told, told["hours"][0]):
        assert (counted["fires"], counted["within_1s"], counted["missed"]) == (3, in_time, 1)
        assert counted["success_rate"] == 0.75
        assert counted["share_within_1s"] == round(in_time / 3, 6)


def test_there_are_no_shares_of_hours_before_fires_were_counted(
    client: TestClient, kept: Histories
) -> None:
    """The store is of a release that counted none: the next full hour is the first one."""
    kept.keep(0, event(Outcome.MISSED, at=NOW_MS - HOUR_MS), event(Outcome.MISSED))
    assert kept.store is not None
    kept.store.fires.begin(NOW_MS - HOUR_MS)
    kept.store.fires.add({"v": {HOUR - 1: (1, 1), HOUR: (3, 3)}})
    told = client.get("/v1/tenants/v/statistics").json()
    first, second = told["hours"]
    assert (first["fires"], first["success_rate"], second["success_rate"]) == (1, None, 0.75)
    assert (told["fires"], told["success_rate"]) == (4, 0.75)
    assert told["fires_since"] == second["hour"]


def test_fires_at_rest_and_in_memory_add_up(client: TestClient, kept: Histories) -> None:
    begin(kept)
    for _ in range(2):
        kept.fire_hours.add({"v": [0, 2_000]}, NOW_MS)
        with kept.fire_hours.taken() as counted:
            assert kept.store is not None
            kept.store.fires.add(counted)
    kept.fire_hours.add({"v": [0]}, NOW_MS)
    (hour,) = client.get("/v1/tenants/v/statistics").json()["hours"]
    assert (hour["fires"], hour["within_1s"]) == (5, 3)


async def test_a_look_waits_while_fires_go_to_the_store(app: FastAPI, kept: Histories) -> None:
    begin(kept)
    with kept.fire_hours.taken():
        asked = asyncio.create_task(status_of(app, "/v1/tenants/v/statistics"))
        await asyncio.sleep(0.1)
        assert not asked.done()
    assert await asked == 200


def test_attempts_beyond_the_first_are_told_at_every_level(
    client: TestClient, kept: Histories
) -> None:
    for attempt in (3, 1, None):
        kept.keep(0, event(Outcome.FAILED, attempt=attempt, target="https://h.example/" * 20))
    kept.keep(1, event(Outcome.DELIVERED, attempt=2, reason="it answered 503", version=7))
    kept.keep(1, event(Outcome.DELIVERED, attempt=5, at=NOW_MS - HOUR_MS))
    told = client.get("/v1/tenants/v/statistics").json()
    assert [each["retries"] for each in told["hours"]] == [4, 3]
    assert told["retries"] == 7


def answer(worker: str, fires: int, **more: Any) -> dict[str, Any]:
    return {
        "hours": [(HOUR * HOUR_MS, [1, 1, 0, 0, 1, 0, 0, 0])],
        "fires": [(HOUR, fires, fires)],
        "fires_since": 0,
        "worker": worker,
        **more,
    }


def test_a_worker_that_answers_twice_has_fired_once() -> None:
    told = summed([answer("a", 5), answer("b", 4), answer("a", 5)], Level.FAILURES)
    assert (told["fires"], told["requests"], told["missed"]) == (9, 3, 3)
    assert told["success_rate"] == 0.75


def test_shares_begin_when_the_last_worker_counts() -> None:
    answers = [answer("a", 5), answer("b", 4, fires_since=HOUR + 1)]
    told = summed(answers, Level.FAILURES)
    assert (told["fires"], told["success_rate"]) == (9, None)
    assert told["fires_since"] is not None
    of_earlier_release = {"hours": [(HOUR * HOUR_MS, counters.empty())]}
    told = summed([answer("a", 5), of_earlier_release], Level.FAILURES)
    assert told["success_rate"] is None
    assert told["fires_since"] == "9999-12-31T23:00:00.000Z"


def test_the_larger_number_of_fires_counts() -> None:
    """Records since the level was raised, or a worker that has lost its disk."""
    records = [(HOUR * HOUR_MS, [0, 0, 6, 5, 2, 0, 0, 0])]
    for fires, expected in ((4, (6, 5)), (8, (8, 8))):
        told = summed([answer("a", fires, hours=records)], Level.ALL)
        assert (told["fires"], told["within_1s"]) == expected
