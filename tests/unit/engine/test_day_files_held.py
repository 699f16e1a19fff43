"""Rows that are due while their payloads are away: many of them, and under owner after owner."""

from __future__ import annotations

import pytest

from belfry.engine import releasing
from belfry.tenants.waits import DAY_FILE
from tests.unit.engine.driver import Driver
from tests.unit.engine.test_day_files import FAR, FILE, asked, back, gone


def test_what_is_held_is_not_held_again_by_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows that are, all of them leave once their file is read."""
    monkeypatch.setattr(releasing, "MOST_AT_ONCE", 3)
    driver = Driver()
    for number in range(10):
        asked(driver, schedule_id=f"{number}")
    data = gone(driver)
    driver.step(FAR)
    driver.start(driver.rows)
    assert list(driver.engine.day_files.awaited) == [FILE]
    for number in range(5):
        driver.step(FAR + number)
    quiet = driver.step(FAR + 10).effects
    assert (quiet.empty, quiet.unreadable) == (True, [])
    # It is told what they wait for: it is no later release.
    driver.sweep(FAR + 10)
    assert driver.engine.oldest_due_ms() == {DAY_FILE: FAR}
    wait = driver.engine.wait_of(b"demo")
    assert wait is not None
    assert (wait.why.cause, wait.waiting, wait.oldest_due_ms) == (DAY_FILE, 10, FAR)
    assert back(driver, data, FAR + 500) == 10
    assert sorted(driver.run(FAR + 500)) == sorted(map(str, range(10)))
