"""What recurs and has not fired though its rule says so is found by its row, given up or not."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.options import EngineOptions
from belfry.engine.stale import (
    COSTLY,
    EVERY_MS,
    LOOKS,
    NONE_STALE,
    STALE_AFTER_MS,
    StaleSchedules,
    unfired_since_ms,
)
from belfry.store.layout.pending import decode_pending
from belfry.tenants.canary import CANARY
from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import HOUR, T0, Driver

MINUTE = 60_000
NAME = "demo/a"


def hourly(**fields: Any) -> Driver:
    """A schedule of each hour that leaves late occurrences out."""
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=HOUR, misfire="SKIP", **fields)
    driver.step(T0)
    return driver


def missed(driver: Driver, hour: int) -> None:
    """Half an hour after an instant of the rule it is given up."""
    assert driver.step(T0 + hour * HOUR + 30 * MINUTE).ids == []


def look(driver: Driver, now_ms: int) -> StaleSchedules:
    driver.sweep(now_ms)
    return driver.engine.stale.found


def test_what_was_given_up_is_stale_since_the_first_of_it() -> None:
    # T0    1h     2h     3h            4h
    #       fires  missed missed        fires
    driver = hourly()
    assert driver.step(T0 + HOUR).ids == ["a"]
    assert look(driver, T0 + HOUR) == NONE_STALE
    missed(driver, 2)
    missed(driver, 3)
    assert look(driver, T0 + 3 * HOUR + 31 * MINUTE) == StaleSchedules(1, T0 + 2 * HOUR, NAME)
    assert driver.step(T0 + 4 * HOUR).ids == ["a"]
    assert look(driver, T0 + 4 * HOUR + MINUTE) == NONE_STALE


def test_what_never_fired_is_stale_since_its_first_instant() -> None:
    driver = hourly()
    missed(driver, 1)
    assert look(driver, T0 + HOUR + 31 * MINUTE) == StaleSchedules(1, T0 + HOUR, NAME)


def test_what_is_overdue_is_stale_after_some_minutes() -> None:
    driver = hourly()
    due_ms = T0 + HOUR
    assert look(driver, due_ms + STALE_AFTER_MS - 1) == NONE_STALE
    assert look(driver, due_ms + STALE_AFTER_MS + EVERY_MS) == StaleSchedules(1, due_ms, NAME)


def test_what_its_jitter_delays_is_in_time() -> None:
    driver = hourly(jitter_ms=20 * MINUTE)
    missed(driver, 1)
    assert look(driver, T0 + HOUR + 20 * MINUTE + STALE_AFTER_MS - 1) == NONE_STALE
    assert look(driver, T0 + HOUR + 20 * MINUTE + STALE_AFTER_MS + EVERY_MS).number == 1


def test_what_was_changed_counts_from_its_change() -> None:
    driver = hourly()
    assert driver.step(T0 + HOUR).ids == ["a"]
    changed_ms = T0 + 5 * HOUR + 30 * MINUTE
    driver.ask(changed_ms, kind="EVERY", interval_ms=2 * HOUR, misfire="SKIP")
    driver.step(changed_ms)
    assert look(driver, changed_ms + HOUR) == NONE_STALE
    assert look(driver, changed_ms + 3 * HOUR).since_ms == changed_ms + 2 * HOUR


def test_a_new_payload_changes_nothing() -> None:
    driver = hourly()
    assert driver.step(T0 + HOUR).ids == ["a"]
    missed(driver, 2)
    now_ms = T0 + 2 * HOUR + 40 * MINUTE
    driver.ask(now_ms, kind="EVERY", interval_ms=HOUR, misfire="SKIP", payload=b"p")
    assert driver.step(now_ms).outcomes == ["UPDATED"]
    assert look(driver, now_ms) == StaleSchedules(1, T0 + 2 * HOUR, NAME)


def test_a_new_owner_finds_it_as_well() -> None:
    driver = hourly()
    missed(driver, 1)
    rebuilt(driver, T0 + HOUR + 31 * MINUTE)
    assert look(driver, T0 + HOUR + 31 * MINUTE) == StaleSchedules(1, T0 + HOUR, NAME)


def test_without_kept_fires_what_waits_is_all_that_is_known() -> None:
    driver = Driver()
    driver.options = EngineOptions(last_fires=False)
    driver.start(driver.rows)
    driver.ask(kind="EVERY", interval_ms=HOUR, misfire="SKIP")
    driver.step(T0)
    assert driver.step(T0 + HOUR).ids == ["a"]
    missed(driver, 2)
    assert look(driver, T0 + 2 * HOUR + 31 * MINUTE) == NONE_STALE
    assert look(driver, T0 + 3 * HOUR + 6 * MINUTE).since_ms == T0 + 3 * HOUR


@pytest.mark.parametrize("why", ["paused", "once", "blocked", "canary", "over"])
def test_what_somebody_wanted_or_tells_elsewhere_is_left_out(why: str) -> None:
    driver = Driver()
    tenant = CANARY if why == "canary" else "demo"
    recurs: dict[str, Any] = {"kind": "EVERY", "interval_ms": HOUR, "misfire": "SKIP"}
    once: dict[str, Any] = {"at": T0 + HOUR, "max_lateness_ms": 1, "misfire": "FIRE_ONCE"}
    over = {"end_at": T0 + HOUR} if why == "over" else {}
    driver.ask(tenant=tenant, **(once if why == "once" else recurs | over))
    driver.step(T0)
    if why == "paused":
        driver.ask(action="PAUSE")
        driver.step(T0 + 1)
    if why == "blocked":
        driver.note(held="its topic is missing")
    if why in ("canary", "over"):
        missed(driver, 1)
    assert look(driver, T0 + HOUR + 31 * MINUTE) == NONE_STALE


def test_a_look_is_bounded_and_a_round_tells_of_all() -> None:
    driver = Driver()
    many = LOOKS + LOOKS // 2
    for number in range(many):
        driver.ask(schedule_id=f"a{number:03}", kind="EVERY", interval_ms=HOUR + number)
    driver.step(T0)
    late_ms = T0 + 2 * HOUR
    assert look(driver, late_ms) == NONE_STALE
    assert look(driver, late_ms + EVERY_MS - 1) == NONE_STALE, "it looks once a second"
    assert look(driver, late_ms + EVERY_MS) == StaleSchedules(many, T0 + HOUR, "demo/a000")


def test_what_the_step_has_just_taken_is_no_hole() -> None:
    driver = hourly()
    driver.engine.fire_due(T0 + HOUR, 10)
    assert look(driver, T0 + HOUR) == NONE_STALE


def test_an_imported_schedule_counts_from_the_instant_that_it_came_with() -> None:
    driver = hourly()
    record = dict(driver.changelog)[b"demo/a"] or b""
    row = decode_pending(record)
    late = row._replace(nominal_ms=T0 - HOUR)
    assert unfired_since_ms(late, record) == T0 - HOUR
    ending = Driver()
    ending.ask(kind="EVERY", interval_ms=HOUR, end_at=T0 + HOUR)
    ending.step(T0)
    record = dict(ending.changelog)[b"demo/a"] or b""
    over = decode_pending(record)._replace(accepted_ms=T0 + HOUR)
    assert unfired_since_ms(over, record) == T0 + HOUR


def test_few_rules_that_may_cost_milliseconds_are_asked_in_one_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver, asked = Driver(), list[bytes]()

    def unfired(row: Any, record: bytes) -> int | None:
        asked.append(row.name)
        return unfired_since_ms(row, record)

    monkeypatch.setattr("belfry.engine.stale.unfired_since_ms", unfired)
    for number in range(10):
        driver.ask(schedule_id=f"{number}", kind="RRULE", rrule="FREQ=HOURLY", start_at=T0)
    driver.step(T0, fire=False)
    driver.sweep(T0 + STALE_AFTER_MS - 1)
    # What was accepted a moment ago cannot be late by so much.
    assert asked == []
    looks = [len(asked)]
    for second in range(1, 4):
        driver.sweep(T0 + HOUR + second * EVERY_MS)
        looks.append(len(asked))
    assert looks == [0, COSTLY, 2 * COSTLY, 10]
    assert sorted(asked) == [b"demo/%d" % number for number in range(10)]


def test_a_look_that_fails_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfired(row: Any, record: bytes) -> int | None:
        if row.schedule_id == b"fault":
            raise OverflowError
        return unfired_since_ms(row, record)

    driver = hourly()
    driver.ask(schedule_id="fault", kind="EVERY", interval_ms=HOUR, misfire="SKIP")
    missed(driver, 1)
    monkeypatch.setattr("belfry.engine.stale.unfired_since_ms", unfired)
    assert look(driver, T0 + HOUR + 31 * MINUTE) == StaleSchedules(1, T0 + HOUR, NAME)
