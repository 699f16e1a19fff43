"""Throttled requests in the engine: which of them count, and what the others are told.

Instants in the tests are minutes after T0.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.engine.acknowledging import rebuilt
from tests.unit.engine.driver import T0, Driver

MINUTE = 60_000


def begun() -> Driver:
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(T0)
    return driver


def ask(driver: Driver, minute: float, **fields: Any) -> tuple[str, str | None]:
    """Outcome and code that a request is told which arrives at a minute."""
    came_ms = T0 + int(minute * MINUTE)
    asked = {"kind": "AFTER", "delay_ms": 4 * MINUTE, "throttle_ms": 10 * MINUTE, **fields}
    driver.ask(timestamp_ms=came_ms, **asked)
    (told,) = driver.step(came_ms, fire=False).effects.lifecycle
    return str(told.outcome), told.code


def fire(driver: Driver, minute: float) -> list[bytes | None]:
    return [shot.value for shot in driver.step(T0 + int(minute * MINUTE)).shots]


DROPPED = ("UNCHANGED", "throttled")
ACCEPTED = ("ACCEPTED", None)


#   0        2          4           9            14     15
#   a ───────b──────────●───────────c────────────┤──────d
#            throttled  fires a     throttled    over   ACCEPTED
def test_the_first_request_of_a_window_counts() -> None:
    driver = begun()
    assert ask(driver, 0, payload=b"a") == ACCEPTED
    assert ask(driver, 2, payload=b"b") == DROPPED
    assert fire(driver, 4) == [b"a"]
    assert ask(driver, 9, payload=b"c") == DROPPED
    assert ask(driver, 14 - 1 / MINUTE, payload=b"c") == DROPPED
    assert ask(driver, 14, payload=b"d") == ACCEPTED
    assert fire(driver, 18) == [b"d"]


def test_the_verdict_says_what_was_in_the_way_and_until_when() -> None:
    driver = begun()
    ask(driver, 0)
    driver.ask(kind="AFTER", delay_ms=1, throttle_ms=MINUTE, timestamp_ms=T0)
    (waits,) = driver.step(T0, fire=False).effects.lifecycle
    assert (waits.version, waits.due_at) == (1, T0 + 4 * MINUTE)
    assert waits.reason == "The schedule waits already, and throttle_ms leaves it as it is."
    fire(driver, 5)
    driver.ask(kind="AFTER", delay_ms=1, throttle_ms=MINUTE, timestamp_ms=T0 + 5 * MINUTE)
    (over,) = driver.step(T0 + 5 * MINUTE, fire=False).effects.lifecycle
    assert (over.version, over.due_at) == (1, T0 + 4 * MINUTE)
    assert over.reason == (
        "The schedule has fired at 2027-01-15T08:05:00.000Z, and throttle_ms leaves room for the"
        " next one from 2027-01-15T08:06:00.000Z on."
    )


def test_the_window_begins_with_the_fire_however_late_it_was() -> None:
    driver = begun()
    ask(driver, 0)
    assert fire(driver, 20) == [None]
    assert ask(driver, 25) == DROPPED
    assert ask(driver, 30) == ACCEPTED


def test_the_window_outlives_the_owner() -> None:
    driver = begun()
    ask(driver, 0)
    fire(driver, 4)
    rebuilt(driver, T0 + 4 * MINUTE)
    assert ask(driver, 9) == DROPPED
    assert ask(driver, 14) == ACCEPTED


def test_each_request_looks_back_as_far_as_it_says() -> None:
    driver = begun()
    ask(driver, 0)
    fire(driver, 4)
    assert ask(driver, 9, throttle_ms=6 * MINUTE) == DROPPED
    assert ask(driver, 9, throttle_ms=5 * MINUTE) == ACCEPTED
    # One that says nothing of it changes what waits, as ever.
    assert ask(driver, 10, throttle_ms=None, payload=b"x") == ("UPDATED", None)
    assert ask(driver, 10, action="CREATE") == DROPPED
    assert ask(driver, 10, action="PAUSE") == ("PAUSED", None)
    assert ask(driver, 10) == DROPPED


def test_a_day_is_the_longest_window() -> None:
    driver = begun()
    ask(driver, 0, throttle_ms=86_400_000)
    fire(driver, 4)
    assert ask(driver, 4 + 24 * 60 - 1 / MINUTE, throttle_ms=86_400_000) == DROPPED
    assert ask(driver, 4 + 24 * 60, throttle_ms=86_400_000) == ACCEPTED


def test_what_came_within_a_window_is_dropped_after_an_outage_of_more_than_a_day() -> None:
    driver, came_ms, now_ms = begun(), T0 + 9 * MINUTE, T0 + 25 * 60 * MINUTE
    ask(driver, 0, payload=b"a")
    assert fire(driver, 4) == [b"a"]
    driver.ask(schedule_id="other", delay_ms=1, kind="AFTER", timestamp_ms=came_ms)
    driver.ask(kind="AFTER", delay_ms=1, throttle_ms=10 * MINUTE, timestamp_ms=came_ms)
    # The first batch after the outage is read, and the sweep comes before the second.
    driver.step(now_ms, take=1, fire=False)
    driver.sweep(now_ms)
    (told,) = driver.step(now_ms, fire=False).effects.lifecycle
    assert (str(told.outcome), told.code) == DROPPED


def test_what_was_cancelled_or_given_up_leaves_room() -> None:
    driver = begun()
    ask(driver, 0)
    assert ask(driver, 1, action="CANCEL")[0] == "CANCELLED"
    assert ask(driver, 2, misfire="SKIP", max_lateness_ms=0) == ACCEPTED
    assert fire(driver, 7) == []
    assert ask(driver, 8) == ACCEPTED


def test_a_wrong_version_and_a_repeat_are_told_first() -> None:
    driver = begun()
    ask(driver, 0, request_id="r")
    assert ask(driver, 1, request_id="r")[0] == "DUPLICATE"
    assert ask(driver, 1, expected_version=7)[0] == "CONFLICT"
    assert ask(driver, 1, request_id="s") == DROPPED
    assert ask(driver, 2, request_id="s") == ("DUPLICATE", "UNCHANGED")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"throttle_ms": 0}, "throttle_ms 0 is not allowed: 1 to 86400000, a day"),
        ({"throttle_ms": 86_400_001}, "1 to 86400000"),
        ({"kind": "EVERY", "interval_ms": 5, "delay_ms": None}, "kind EVERY recurs"),
        ({"max_wait_ms": 5 * MINUTE}, "keep one of them"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], said: str) -> None:
    driver = begun()
    asked = {"kind": "AFTER", "delay_ms": 4 * MINUTE, "throttle_ms": 7, **fields}
    driver.ask(timestamp_ms=T0, **asked)
    (told,) = driver.step(T0, fire=False).effects.lifecycle
    assert (str(told.outcome), told.code) == ("REJECTED", "bad_throttle")
    assert said in (told.reason or "")
