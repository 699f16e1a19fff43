"""Rows that are due while their payloads are away: many of them, and under owner after owner."""

from __future__ import annotations

import pytest

from belfry.engine import oldest, releasing
from belfry.store.layout.pending import Away, decode_pending, encode_pending
from belfry.tenants.waits import DAY_FILE
from tests.unit.engine.acknowledging import fires, serial
from tests.unit.engine.driver import Driver
from tests.unit.engine.test_day_files import FAR, FILE, asked, back, gone
from tests.unit.engine.unreadable import filed


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


def test_a_held_row_takes_no_more_of_a_look_than_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows behind locks are counted up to a number in all: one that is held counts as one."""
    monkeypatch.setattr(oldest, "MOST_BEHIND_LOCKS", oldest.MOST_COUNTED)
    driver = Driver()
    asked(driver, tenant="before", schedule_id="held")
    gone(driver)
    for number in range(4):
        serial(driver, f"{number}", FAR + number)
    driver.step(FAR - 1)
    fires(driver, FAR + 10)
    driver.sweep(FAR + 10)
    found = {name: driver.engine.wait_of(name) for name in (b"before", b"demo")}
    assert {name: wait and wait.waiting for name, wait in found.items()} == {
        b"before": 1,
        b"demo": 3,
    }


def test_a_trigger_asks_nothing_back_by_a_reference_of_a_later_release() -> None:
    driver = Driver()
    record = filed(FAR, 97)
    row = decode_pending(record)
    later = encode_pending(row._replace(payload=Away(b"\x02" + (row.payload or b"")[1:])))
    driver.engine._store.keep_in_timeline(b"demo/filed", later, FAR, 97)
    step = asked(driver, action="TRIGGER", schedule_id="filed", at=None, payload=None)
    assert (step.shots, step.codes) == ([], ["unreadable_schedule"])
    assert not driver.engine.day_files.recalled
