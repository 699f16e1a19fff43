"""What is told of the occurrences to come is what the engine then fires."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.instants import parse_instant
from belfry.store.layout.keys import schedule_key
from belfry.store.lookup import standing_of
from belfry.store.upcoming import Upcoming, upcoming
from tests.unit.engine.driver import HOUR, T0, Driver

DAILY: dict[str, Any] = {"kind": "CRON", "cron": "30 2 * * *", "timezone": "Europe/Berlin"}


def told(driver: Driver, count: int = 10) -> list[Upcoming]:
    found = standing_of(driver.rows, schedule_key("demo", "a"), T0)
    assert found is not None
    assert found.pending is not None
    return upcoming(found.pending, count, lambda: True)


@pytest.mark.parametrize(
    "asked",
    [
        {"at": T0 + HOUR},
        {"at": T0 + HOUR, "jitter_ms": 60_000},
        {"kind": "EVERY", "interval_ms": HOUR, "max_fires": 4},
        {"kind": "EVERY", "interval_ms": HOUR, "max_fires": 4, "jitter_ms": 600_000},
        {"kind": "EVERY", "interval_ms": HOUR, "end_at": T0 + 3 * HOUR},
        {**DAILY, "max_fires": 3, "jitter_ms": 5_000},
    ],
)
def test_each_fires_when_it_was_said(asked: dict[str, Any]) -> None:
    driver = Driver()
    driver.ask(misfire="FIRE_ALL", **asked)
    assert driver.step(T0).outcomes == ["ACCEPTED"]
    all_of_them = told(driver)
    assert all_of_them
    for place, each in enumerate(all_of_them):
        assert told(driver) == all_of_them[place:]
        assert driver.engine.next_due_ms() == each.due_ms
        (shot,) = driver.step(each.due_ms).shots
        assert shot.header("belfry-occurrence") == b"%d" % each.number
        scheduled = shot.header("belfry-scheduled-at") or b""
        assert parse_instant(scheduled.decode()) == each.scheduled_ms
    assert driver.engine.next_due_ms() is None


def test_it_ends_at_the_number_that_was_asked_for_and_when_the_time_is_up() -> None:
    driver = Driver()
    driver.ask(**DAILY)
    driver.step(T0)
    assert [each.number for each in told(driver, 3)] == [0, 1, 2]
    found = standing_of(driver.rows, schedule_key("demo", "a"), T0)
    assert found is not None
    assert found.pending is not None
    assert len(upcoming(found.pending, 10, lambda: False)) == 1
