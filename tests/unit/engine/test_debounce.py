"""Debounced schedules in the engine: what each request of a run is told, and when the run fires.

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


def ask(driver: Driver, minute: int, **fields: Any) -> tuple[str, int | None, float]:
    """Outcome, version and due minute that a request is told which arrives at a minute."""
    came_ms = T0 + minute * MINUTE
    wait = {"kind": "AFTER", "delay_ms": 5 * MINUTE, "max_wait_ms": 12 * MINUTE}
    driver.ask(timestamp_ms=came_ms, **{**wait, **fields})
    (told,) = driver.step(came_ms, fire=False).effects.lifecycle
    due_ms = told.due_at
    return str(told.outcome), told.version, -1 if due_ms is None else (due_ms - T0) / MINUTE


def fires(driver: Driver) -> list[tuple[float, bytes | None]]:
    """Minute and value of what fires from now on."""
    found = []
    while (due_ms := driver.engine.next_due_ms()) is not None:
        assert driver.step(due_ms - 1).shots == []
        found += [((due_ms - T0) / MINUTE, shot.value) for shot in driver.step(due_ms).shots]
    return found


#        a        b        c        d
#   0    ├────────┼────────┼────────┼────────┤ 12
#        └──5     └──8     └──11    └─ ─ ─ ─ ┤── ─ 14      fires d
def test_a_run_slides_its_instant_and_fires_its_last_request_once() -> None:
    driver = begun()
    assert ask(driver, 0, payload=b"a") == ("ACCEPTED", 1, 5)
    assert ask(driver, 3, payload=b"b") == ("UPDATED", 2, 8)
    assert ask(driver, 6, payload=b"c") == ("UPDATED", 3, 11)
    assert ask(driver, 9, payload=b"d") == ("UPDATED", 4, 12)
    assert fires(driver) == [(12, b"d")]
    # The next one begins another run.
    assert ask(driver, 13, payload=b"e") == ("ACCEPTED", 1, 18)
    assert ask(driver, 17, payload=b"f") == ("UPDATED", 2, 22)
    assert fires(driver) == [(22, b"f")]


def test_the_same_request_slides_it_too() -> None:
    driver = begun()
    assert ask(driver, 0) == ("ACCEPTED", 1, 5)
    assert ask(driver, 3) == ("UPDATED", 2, 8)
    assert ask(driver, 8, delay_ms=0) == ("UPDATED", 3, 8)
    assert ask(driver, 8, delay_ms=0) == ("UNCHANGED", 3, 8)


def test_a_repeat_of_a_request_slides_nothing() -> None:
    driver = begun()
    assert ask(driver, 0, request_id="r") == ("ACCEPTED", 1, 5)
    assert ask(driver, 3, request_id="r") == ("DUPLICATE", 1, 5)
    assert fires(driver) == [(5, None)]


def test_the_first_arrival_outlives_the_owner() -> None:
    driver = begun()
    ask(driver, 0)
    ask(driver, 4)
    rebuilt(driver, T0)
    assert ask(driver, 8) == ("UPDATED", 3, 12)


def test_the_last_request_says_how_long_a_run_waits() -> None:
    driver = begun()
    ask(driver, 0)
    assert ask(driver, 4, max_wait_ms=6 * MINUTE) == ("UPDATED", 2, 6)
    assert ask(driver, 5, max_wait_ms=60 * MINUTE) == ("UPDATED", 3, 10)


@pytest.mark.parametrize(
    "before",
    [
        {"kind": "AT", "at": T0 + 60 * MINUTE, "delay_ms": None, "max_wait_ms": None},
        {"max_wait_ms": None},
        {"kind": "EVERY", "interval_ms": MINUTE, "delay_ms": None, "max_wait_ms": None},
    ],
)
def test_what_did_not_slide_gives_way_to_a_run_that_begins(before: dict[str, Any]) -> None:
    driver = begun()
    ask(driver, 0, **before)
    assert ask(driver, 4) == ("UPDATED", 2, 9)
    assert ask(driver, 8) == ("UPDATED", 3, 13)
    assert ask(driver, 12) == ("UPDATED", 4, 16)


def test_a_request_that_does_not_slide_ends_the_run() -> None:
    driver = begun()
    ask(driver, 0)
    # The same delay runs on, as without debouncing.
    assert ask(driver, 2, max_wait_ms=None) == ("UPDATED", 2, 5)
    assert ask(driver, 4) == ("UPDATED", 3, 9)
    assert ask(driver, 8) == ("UPDATED", 4, 13)
    assert fires(driver) == [(13, None)]


def test_versions_conflicts_and_pauses_are_those_of_other_schedules() -> None:
    driver = begun()
    ask(driver, 0)
    assert ask(driver, 1, expected_version=2)[0] == "CONFLICT"
    assert ask(driver, 1, action="CREATE")[0] == "CONFLICT"
    assert ask(driver, 2, expected_version=1) == ("UPDATED", 2, 7)
    assert ask(driver, 3, action="PAUSE") == ("PAUSED", 2, 7)
    assert ask(driver, 4) == ("UPDATED", 3, 9)
    assert driver.engine.next_due_ms() is None
    assert ask(driver, 5, action="RESUME") == ("RESUMED", 3, 9)
    assert ask(driver, 6, action="CANCEL") == ("CANCELLED", 3, 9)
    assert ask(driver, 7) == ("ACCEPTED", 1, 12)


def test_jitter_comes_on_top() -> None:
    driver = begun()
    ask(driver, 0, jitter_ms=1_000)
    _, _, due = ask(driver, 11, jitter_ms=1_000)
    assert 12 <= due < 12 + 1 / 60
