"""Calendars that change while schedules are late, made up for, or held: nothing fires twice."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.engine.job_counts import Budget
from belfry.schedules.bulk import BulkSpec
from belfry.schedules.instants import parse_instant
from tests.unit.engine.acknowledging import ack, serial
from tests.unit.engine.driver import HOUR, Driver
from tests.unit.engine.test_calendars import (
    NINE,
    NOW,
    advance,
    at,
    begun,
    days,
    due,
    finish,
    set_calendar,
)

MINUTE: Final = 60_000
MADE_UP: Final[dict[str, Any]] = {"misfire": "FIRE_ALL", "max_lateness_ms": MINUTE}


@pytest.mark.parametrize("amid", [None, "RESUME", "steps"])
def test_a_day_that_was_taken_and_freed_before_its_fire_was_known_does_not_fire_again(
    amid: str | None,
) -> None:
    """Both changes arrived before the fire, and are read after it."""
    driver = begun("a")
    now_ms = at("2026-12-22T09") + 5_000
    assert driver.step(now_ms, take=0).ids == ["a"]
    driver.ask(parse_instant("2026-12-22T08:30:00Z"), action="CALENDAR", schedule_id="de",
               days_off=days("2026-12-22", "2026-12-23"))  # fmt: skip
    if amid == "steps":
        driver.step(now_ms, fire=False)
        finish(driver, now_ms)
    elif amid:
        driver.ask(parse_instant("2026-12-22T08:40:00Z"), action=amid)
    driver.ask(parse_instant("2026-12-22T08:45:00Z"), action="CALENDAR", schedule_id="de",
               days_off=days())  # fmt: skip
    driver.step(now_ms, fire=False)
    finish(driver, now_ms)
    assert due(driver) == "2026-12-23T09"
    assert driver.run(now_ms + 1_000) == []


@pytest.mark.parametrize("removed", [False, True])
def test_a_schedule_that_drops_its_calendar_does_not_fire_again(removed: bool) -> None:
    driver = begun("a")
    now_ms = at("2026-12-22T09") + 5_000
    assert driver.step(now_ms, take=0).ids == ["a"]
    driver.ask(parse_instant("2026-12-22T08:30:00Z"), action="CALENDAR", schedule_id="de",
               days_off=days("2026-12-22"))  # fmt: skip
    if removed:
        driver.step(now_ms, fire=False)
        finish(driver, now_ms)
        driver.ask(NOW, action="CALENDAR_REMOVE", schedule_id="de")
    driver.ask(parse_instant("2026-12-22T08:40:00Z"), kind="CRON", cron="0 9 * * *", payload=b"x")
    driver.step(now_ms, fire=False)
    finish(driver, now_ms)
    assert due(driver) == "2026-12-23T09"


def test_a_change_of_another_day_leaves_the_order_of_a_group() -> None:
    driver = begun("a", group="g")
    driver.ask(NOW, schedule_id="b", kind="AT", at=at("2026-12-22T09") + 1_000, group="g")
    driver.step(NOW, fire=False)
    set_calendar(driver, "2026-12-25", "2027-03-01", now_ms=at("2026-12-22T09") - 10)
    assert driver.step(at("2026-12-22T09") + 5_000, take=0).ids == ["a", "b"]
    assert due(driver) == "2026-12-23T09"


def test_what_a_change_moves_to_before_now_keeps_its_place_in_its_group() -> None:
    driver = begun("a", group="g", cron="0,30 9 * * *", on_holiday="NEXT_BUSINESS_DAY")
    driver.ask(NOW, schedule_id="b", kind="AT", at=at("2026-12-23T10"), group="g")
    driver.step(NOW, fire=False)
    set_calendar(driver, "2026-12-22")
    late_ms = at("2026-12-23T11")
    assert driver.run(late_ms) == ["a", "b"]


@pytest.mark.parametrize("walked", [False, True])
def test_what_is_made_up_for_leaves_out_the_days_that_are_off_since(walked: bool) -> None:
    driver = begun("a", cron="* * * * *", **MADE_UP)
    now_ms = at("2026-12-22T13")
    driver.step(now_ms, at_most=20, take=0)
    assert driver.engine._parts.waiting.catch_up == {b"demo": 1}
    driver.ask(parse_instant("2026-12-22T08:30:00Z"), action="CALENDAR", schedule_id="de",
               days_off=days("2026-12-22"))  # fmt: skip
    driver.step(now_ms, fire=False)
    if walked:
        finish(driver, now_ms)
    fired: list[str] = []
    for second in range(60):
        shots = driver.step(now_ms + second * 1_000, at_most=20, take=0).shots
        fired += [(shot.header("belfry-scheduled-at") or b"").decode()[8:13] for shot in shots]
    # The instant that was pending when the change came stays as it was.
    assert fired == ["22T08"]
    finish(driver, now_ms)
    assert due(driver) == "2026-12-23T00"


def test_what_is_made_up_for_fires_on_the_days_that_were_freed_since() -> None:
    driver = Driver()
    set_calendar(driver, "2026-12-23")
    driver.ask(NOW, **{**NINE, "cron": "*/30 9-10 * * *"}, **MADE_UP)
    driver.step(NOW, fire=False)
    finish(driver, NOW)
    now_ms = at("2026-12-22T12")
    driver.step(now_ms, at_most=1, take=0)
    set_calendar(driver, now_ms=now_ms)
    finish(driver, now_ms)
    for second in range(20):
        driver.step(now_ms + second * 1_000, take=0)
    assert due(driver) == "2026-12-23T09"


def test_an_update_of_what_is_made_up_for_moves_from_a_day_off() -> None:
    driver = begun("a", **MADE_UP)
    now_ms = at("2026-12-22T12")
    driver.step(now_ms, at_most=1, take=0)
    set_calendar(driver, "2026-12-23", now_ms=now_ms)
    finish(driver, now_ms)
    for second in (1, 2):
        driver.step(now_ms + second * 1_000, take=0)
    driver.ask(now_ms + 3_000, payload=b"new", **MADE_UP, **NINE)
    assert driver.step(now_ms + 3_000, fire=False).outcomes == ["UPDATED"]
    assert due(driver) == "2026-12-24T09"


@pytest.mark.parametrize("update", [False, True])
def test_what_is_held_behind_a_lock_follows_too(update: bool) -> None:
    driver = begun("a", group="g")
    nine_ms = at("2026-12-22T09")
    serial(driver, "s1", nine_ms - MINUTE, ack_timeout_ms=HOUR)
    driver.step(NOW, fire=False)
    shot = driver.step(nine_ms - MINUTE, take=0).shots[0]
    assert driver.step(nine_ms + 10, take=0).ids == []
    driver.ask(nine_ms - 100, action="CALENDAR", schedule_id="de", days_off=days("2026-12-22"))
    driver.step(nine_ms + 20, fire=False)
    finish(driver, nine_ms + 20)
    assert due(driver) == "2026-12-23T09"
    if update:
        driver.ask(nine_ms + 30, payload=b"new", group="g", **NINE)
        driver.step(nine_ms + 30, fire=False)
    ack(driver, shot, nine_ms + 1_000)
    assert driver.run(nine_ms + 2_000) == []
    assert due(driver) == "2026-12-23T09"


def test_a_calendar_that_changes_all_the_time_keeps_nobody_else_from_following() -> None:
    driver = Driver()
    for tenant, number in (("aa", 60), ("zz", 1)):
        driver.ask(NOW, tenant=tenant, action="CALENDAR", schedule_id="de", days_off=days())
        for each in range(number):
            driver.ask(NOW, tenant=tenant, schedule_id=f"s{each:02}", **NINE)
    driver.ask(NOW, tenant="bb", schedule_id="b", kind="AT", at=at("2026-12-24T09"))
    driver.step(NOW, fire=False)
    finish(driver, NOW)
    driver.ask(NOW, tenant="zz", action="CALENDAR", schedule_id="de", days_off=days("2026-12-22"))
    cancel = BulkSpec(action="CANCEL").text()
    driver.ask(NOW, tenant="bb", action="BULK", schedule_id="j", bulk=cancel)
    told: list[str] = []
    for second in range(6):
        now_ms = NOW + second * 1_000
        other = days(f"2027-01-{second + 10}")
        driver.ask(now_ms, tenant="aa", action="CALENDAR", schedule_id="de", days_off=other)
        driver.step(now_ms, fire=False)
        told += advance(driver, now_ms + 1, Budget(20, 20))
    assert [each.split()[:2] for each in told if each.split()[1] in ("b", "s00")] == [
        ["CANCELLED", "b"],
        ["UPDATED", "s00"],
    ]
