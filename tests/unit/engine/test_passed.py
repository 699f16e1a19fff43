"""What a changed calendar counts as passed, to the millisecond: nothing twice, nothing left out."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.triggers.moving import MovingTrigger
from tests.unit.engine.driver import HOUR, Driver
from tests.unit.engine.test_calendars import NINE, NOW, at, begun, days, due, finish, set_calendar

NINE_MS = at("2026-12-22T09")
# A rhythm that fires at nine o'clock, and another one that would do so as well.
RHYTHMS: dict[str, list[dict[str, Any]]] = {
    "CRON": [{"cron": "0 9 * * *"}, {"cron": "*/30 9 * * *"}],
    "EVERY": [{"interval_ms": each, "start_at": NINE_MS} for each in (HOUR, HOUR // 2)],
}


def change(driver: Driver, arrives_ms: int, *dates: str, now_ms: int) -> None:
    """Let other days arrive at one instant, and be read and followed at another one."""
    driver.ask(arrives_ms, action="CALENDAR", schedule_id="de", days_off=days(*dates))
    driver.step(now_ms, fire=False)
    finish(driver, now_ms)


@pytest.mark.parametrize(
    ("arrives_ms", "fired", "follows"),
    [
        (NINE_MS - 1, [], "2026-12-23T09"),
        (NINE_MS, ["a"], "2026-12-23T09"),
        (NINE_MS + 1, ["a"], "2026-12-23T09"),
    ],
    ids=["before", "at the instant", "behind"],
)
def test_an_instant_up_to_the_arrival_of_a_change_stays(
    arrives_ms: int, fired: list[str], follows: str
) -> None:
    driver = begun("a")
    change(driver, arrives_ms, "2026-12-22", now_ms=NINE_MS + 5)
    assert driver.run(NINE_MS + HOUR) == fired
    assert due(driver) == follows


@pytest.mark.parametrize(
    ("start_ms", "wanted"),
    [
        (at("2026-12-23T09") - 1, "2026-12-23T09"),
        (at("2026-12-23T09"), "2026-12-23T09"),
        (at("2026-12-23T09") + 1, "2026-12-24T09"),
    ],
    ids=["before", "at the instant", "behind"],
)
def test_a_freed_day_brings_no_instant_before_the_start(start_ms: int, wanted: str) -> None:
    driver = Driver()
    set_calendar(driver, "2026-12-23")
    driver.ask(NOW, schedule_id="a", start_at=start_ms, **NINE)
    driver.step(NOW, fire=False)
    finish(driver, NOW)
    assert due(driver) == "2026-12-24T09"
    change(driver, NOW + 1, now_ms=NOW + 1)
    assert due(driver) == wanted


@pytest.mark.parametrize("read_ms", [NINE_MS - 1, NINE_MS, NINE_MS + HOUR])
def test_a_day_that_was_taken_and_freed_while_nothing_fired_loses_no_instant(read_ms: int) -> None:
    """Both changes arrive before the instant and are read about it, but it has not fired."""
    driver = begun("a")
    for arrives_ms, taken in ((NINE_MS - 20, ["2026-12-22"]), (NINE_MS - 10, [])):
        change(driver, arrives_ms, *taken, now_ms=read_ms)
    assert driver.run(NINE_MS + HOUR) == ["a"][: read_ms < NINE_MS]


@pytest.mark.parametrize("read_ms", [NINE_MS - 1, NINE_MS, NINE_MS + HOUR])
def test_a_change_of_another_day_leaves_what_is_pending_though_it_is_read_late(
    read_ms: int,
) -> None:
    driver = begun("a")
    change(driver, NINE_MS - 20, "2026-12-25", "2026-12-30", now_ms=read_ms)
    assert driver.run(NINE_MS + HOUR) == ["a"]
    assert due(driver) == "2026-12-23T09"


def test_a_day_that_is_freed_brings_nothing_back_that_was_over_by_the_brokers_clock() -> None:
    """The change arrives behind nine o'clock, and the worker that reads it is a little behind."""
    driver = begun("a")
    change(driver, NOW + 1, "2026-12-22", now_ms=NOW + 1)
    change(driver, NINE_MS + 1, now_ms=NINE_MS - 1)
    assert due(driver) == "2026-12-23T09"


def test_a_day_that_was_taken_and_freed_brings_no_fire_back_where_the_clock_went_back() -> None:
    driver = begun("a")
    assert driver.step(NINE_MS + 5, take=0).ids == ["a"]
    for arrives_ms, taken in ((NINE_MS - 20, ["2026-12-22", "2026-12-23"]), (NINE_MS - 10, [])):
        change(driver, arrives_ms, *taken, now_ms=NINE_MS - 5)
    assert due(driver) == "2026-12-23T09"


def test_an_interval_goes_on_at_its_own_time_of_day_when_days_change() -> None:
    driver = Driver()
    set_calendar(driver)
    daily: dict[str, Any] = {"kind": "EVERY", "interval_ms": 24 * HOUR, "start_at": NINE_MS}
    driver.ask(NOW, calendar="de", **daily)
    driver.step(NOW, fire=False)
    change(driver, NOW + 1, "2026-12-22", "2026-12-23", now_ms=NOW + 1)
    assert due(driver) == "2026-12-24T09"
    standing = {"next_at": NINE_MS + 24 * HOUR, "occurrence": 3, "version": 2, "paused": False}
    driver.ask(NOW + 2, schedule_id="b", calendar="de", standing=standing, **daily)
    assert driver.step(NOW + 2, fire=False).outcomes == ["ACCEPTED"]
    assert due(driver, "b") == "2026-12-24T09"


@pytest.mark.parametrize(
    ("next_ms", "arrives_ms", "wanted"),
    [
        (NINE_MS, NINE_MS - 1, "2026-12-23T09"),
        (NINE_MS, NINE_MS, "2026-12-22T09"),
        (NINE_MS + 1, NOW, "2026-12-23T09"),
        (NINE_MS + 24 * HOUR, NOW, "2026-12-23T09"),
        (NINE_MS + 24 * HOUR + 1, NOW, "2026-12-24T09"),
    ],
)
def test_what_is_imported_goes_on_at_the_first_instant_from_there_on(
    next_ms: int, arrives_ms: int, wanted: str
) -> None:
    driver = begun()
    set_calendar(driver, "2026-12-22")
    standing = {"next_at": next_ms, "occurrence": 3, "version": 2, "paused": False}
    driver.ask(arrives_ms, schedule_id="a", standing=standing, **NINE)
    assert driver.step(arrives_ms, fire=False).outcomes == ["ACCEPTED"]
    assert due(driver) == wanted


def test_what_is_imported_behind_the_end_of_its_rule_fires_once_more() -> None:
    """Its calendar leaves nothing from there on, so it keeps the instant that it came with."""
    driver = begun()
    last_ms = at("2026-12-25T09")
    standing = {"next_at": last_ms, "occurrence": 3, "version": 2, "paused": False}
    driver.ask(NOW, schedule_id="a", standing=standing, end_at=last_ms, **NINE)
    assert driver.step(NOW, fire=False).outcomes == ["ACCEPTED"]
    assert due(driver) == "2026-12-25T09"


@pytest.mark.parametrize("arrives_ms", [NOW, NINE_MS - 1, NINE_MS, NINE_MS + 1])
@pytest.mark.parametrize("kind", ["EVERY", "CRON"])
def test_another_rhythm_begins_behind_what_has_fired(kind: str, arrives_ms: int) -> None:
    """The request may arrive before the fire of nine o'clock, and is read after it."""
    driver = Driver()
    before, after = RHYTHMS[kind]
    driver.ask(NOW, kind=kind, **before)
    driver.step(NOW, fire=False)
    assert driver.run(NINE_MS + 5) == ["a"]
    driver.ask(arrives_ms, kind=kind, **after)
    assert driver.step(NINE_MS + 5, fire=False).outcomes == ["UPDATED"]
    assert driver.engine.next_due_ms() == NINE_MS + HOUR // 2


@pytest.mark.parametrize("arrives_ms", [NOW, NINE_MS - 1, NINE_MS])
@pytest.mark.parametrize("kind", ["EVERY", "CRON"])
def test_another_rhythm_with_nothing_behind_what_has_fired_is_refused(
    kind: str, arrives_ms: int
) -> None:
    """It had an instant when it arrived, but that one has fired before the request was read."""
    driver = Driver()
    before, after = RHYTHMS[kind]
    driver.ask(NOW, kind=kind, **before)
    driver.step(NOW, fire=False)
    assert driver.run(NINE_MS + 5) == ["a"]
    following_ms = driver.engine.next_due_ms()
    driver.ask(arrives_ms, kind=kind, end_at=NINE_MS, **after)
    step = driver.step(NINE_MS + 5, fire=False)
    assert (step.outcomes, step.codes) == (["REJECTED"], ["never_fires"])
    assert driver.engine.next_due_ms() == following_ms
    assert driver.run(NINE_MS + HOUR - 1) == []


def test_another_rhythm_may_begin_at_the_instant_that_is_pending() -> None:
    driver = Driver()
    driver.ask(NOW, kind="EVERY", start_at=NINE_MS, interval_ms=HOUR)
    driver.step(NOW, fire=False)
    assert driver.run(NINE_MS) == ["a"]
    driver.ask(NOW, kind="EVERY", start_at=NINE_MS + HOUR, interval_ms=2 * HOUR)
    driver.step(NINE_MS + 5, fire=False)
    assert driver.engine.next_due_ms() == NINE_MS + HOUR


def test_another_rhythm_begins_behind_what_was_given_up_as_well() -> None:
    driver = Driver()
    skips: dict[str, Any] = {"misfire": "SKIP", "max_lateness_ms": 0}
    before, after = RHYTHMS["EVERY"]
    driver.ask(NOW, kind="EVERY", **before, **skips)
    driver.step(NOW, fire=False)
    assert driver.step(NINE_MS + 5, take=0).outcomes == ["MISSED"]
    driver.ask(NOW, kind="EVERY", **after, **skips)
    driver.step(NINE_MS + 5, fire=False)
    assert driver.engine.next_due_ms() == NINE_MS + HOUR // 2


@pytest.mark.parametrize("source", ["NEXT_BUSINESS_DAY", "PREVIOUS_BUSINESS_DAY"])
def test_another_rhythm_begins_before_an_instant_to_come_that_an_older_release_left_out(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It left out the instant at `start_at` where a schedule moves from days off."""
    driver = Driver()
    set_calendar(driver, "2027-01-01")
    with monkeypatch.context() as older:
        older.setattr(MovingTrigger, "first_ms", lambda trigger, _: trigger.after_ms(NINE_MS))
        driver.ask(NOW, start_at=NINE_MS, **NINE | {"on_holiday": source})
        driver.step(NOW, fire=False)
    assert due(driver) == "2026-12-23T09"
    driver.ask(NOW + 1, kind="EVERY", start_at=NOW + HOUR, interval_ms=HOUR)
    assert driver.step(NOW + 1, fire=False).outcomes == ["UPDATED"]
    assert driver.engine.next_due_ms() == NOW + HOUR
