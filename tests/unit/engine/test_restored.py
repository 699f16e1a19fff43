"""A restore into a living partition: what has fired since the backup does not fire again."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.instants import format_instant
from tests.unit.engine.driver import HOUR, T0, Driver

DAY = 24 * HOUR
SECOND = 1_000


def standing(next_at: int, occurrence: int = 0, version: int = 1) -> dict[str, Any]:
    return {"next_at": next_at, "occurrence": occurrence, "version": version, "paused": False}


def restore(driver: Driver, now_ms: int, **fields: Any) -> Any:
    """Ask as `belfry restore` does; what is told of it."""
    driver.ask(timestamp_ms=now_ms, action="CREATE", **fields)
    (told,) = driver.step(now_ms, fire=False).effects.lifecycle
    return told


def fired(at_ms: int, **fields: Any) -> Driver:
    """A partition in which a one-shot has fired."""
    driver = Driver()
    driver.ask(at=at_ms, **fields)
    driver.step(T0, fire=False)
    assert driver.run(at_ms + 7) == ["a"]
    return driver


@pytest.mark.parametrize("jitter_ms", [None, 500])
def test_what_has_fired_since_the_backup_is_left(jitter_ms: int | None) -> None:
    driver = Driver()
    driver.ask(at=T0 + 5, jitter_ms=jitter_ms)
    driver.step(T0, fire=False)
    assert driver.run(T0 + SECOND) == ["a"]
    told = restore(driver, T0 + HOUR, at=T0 + 5, jitter_ms=jitter_ms, standing=standing(T0 + 5))
    assert (told.outcome, told.code) == ("TOO_LATE", "fired")
    assert f"It has fired since, at {format_instant(T0 + SECOND)}" in told.reason
    assert driver.run(T0 + 2 * HOUR) == []
    assert driver.engine.pending == 0


def test_a_later_life_than_the_one_that_fired_is_made() -> None:
    driver = fired(T0 + 5)
    told = restore(driver, T0 + HOUR, at=T0 + 2 * HOUR, standing=standing(T0 + 2 * HOUR))
    assert told.outcome == "ACCEPTED"
    assert driver.run(T0 + 3 * HOUR) == ["a"]


def test_an_upsert_and_a_create_without_a_standing_begin_anew_as_ever() -> None:
    for action in ("CREATE", "UPSERT"):
        driver = fired(T0 + 5)
        driver.ask(timestamp_ms=T0 + HOUR, at=T0 + 5, action=action)
        assert driver.step(T0 + HOUR, fire=False).outcomes == ["ACCEPTED"]


def test_after_a_day_nothing_is_known_of_it_any_more() -> None:
    driver = fired(T0 + 5)
    told = restore(driver, T0 + DAY + SECOND, at=T0 + 5, standing=standing(T0 + 5))
    assert told.outcome == "ACCEPTED"


def test_a_recurring_one_that_lives_goes_on_where_it_is() -> None:
    driver = Driver()
    driver.ask(kind="EVERY", interval_ms=SECOND)
    driver.step(T0, fire=False)
    driver.run(T0 + 3 * SECOND)
    told = restore(
        driver, T0 + 3_500, kind="EVERY", interval_ms=SECOND, standing=standing(T0 + SECOND)
    )
    assert (told.outcome, told.code) == ("CONFLICT", "same_definition")
    assert told.due_at == T0 + 4 * SECOND
    assert driver.run(T0 + 4 * SECOND) == ["a"]


def test_a_recurring_one_that_was_completed_since_is_left() -> None:
    driver = Driver()
    rule: dict[str, Any] = {"kind": "EVERY", "interval_ms": SECOND, "max_fires": 3}
    driver.ask(**rule)
    driver.step(T0, fire=False)
    driver.run(T0 + 3 * SECOND)
    told = restore(driver, T0 + HOUR, **rule, standing=standing(T0 + 2 * SECOND, 1))
    assert (told.outcome, told.code) == ("TOO_LATE", "completed")
    assert driver.run(T0 + 2 * HOUR) == []


def test_what_was_given_up_since_is_left() -> None:
    driver = Driver()
    driver.ask(at=T0 + 5, misfire="SKIP", max_lateness_ms=1)
    driver.step(T0, fire=False)
    assert driver.run(T0 + HOUR) == []
    told = restore(driver, T0 + 2 * HOUR, at=T0 + 5, standing=standing(T0 + 5))
    assert (told.outcome, told.code) == ("TOO_LATE", "missed")


def test_a_recurring_one_of_which_nothing_is_known_goes_on_from_the_backup() -> None:
    driver = Driver()
    told = restore(
        driver, T0 + 2_500, kind="EVERY", interval_ms=SECOND, standing=standing(T0 + SECOND, 4)
    )
    assert told.outcome == "ACCEPTED"
    shots = driver.step(T0 + 2_500, take=0).shots
    assert [shot.header("belfry-occurrence") for shot in shots] == [b"4", b"5"]
