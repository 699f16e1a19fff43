"""Encrypted payloads whose key is not there: paused, refused, told of; never silent."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.payloads import CODE
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import PASSING
from belfry.store.layout.pending_bytes import paused
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import HOUR, T0, Driver
from tests.unit.engine.test_backfill import HOURLY
from tests.unit.engine.test_encrypted_payloads import (
    NAME,
    NEW,
    OLD,
    REF,
    SECRET,
    asked,
    kept,
    keyed,
    let,
    values,
)
from tests.unit.engine.test_jobs import MUCH, advance, begin


@pytest.mark.parametrize(
    "fields",
    [{}, {"max_lateness_ms": 5_000}, {"kind": "EVERY", "at": None, "interval_ms": HOUR}],
    ids=["plain", "rule", "recurring"],
)
def test_what_cannot_be_decrypted_is_paused_and_told_of(fields: dict[str, Any]) -> None:
    driver = keyed(OLD)
    asked(driver, **fields)
    let(driver, NEW)
    asked(driver, schedule_id="b")
    step = driver.step(T0 + HOUR)
    assert step.ids == ["b"]
    (told,) = [each for each in step.effects.lifecycle if each.outcome == "PAUSED"]
    assert (told.schedule_id, told.code) == ("a", CODE)
    assert step.effects.outcomes[Outcome.PAUSED] == 1
    assert "put its line back" in (told.reason or "")
    assert [name for name, _ in step.effects.unreadable] == [NAME]
    assert paused(kept(driver))
    assert driver.engine.pending == 1 + ("kind" in fields) * 0
    assert driver.engine.next_due_ms() is None
    # Asked to go on too early, it is paused once more.
    asked(driver, T0 + HOUR, action="RESUME")
    assert driver.run(T0 + HOUR) == []
    assert paused(kept(driver))
    let(driver, NEW, OLD)
    asked(driver, T0 + HOUR, action="RESUME")
    assert values(driver, T0 + HOUR) == [SECRET]


def test_a_new_owner_finds_it_paused() -> None:
    driver = keyed(OLD)
    asked(driver)
    let(driver, NEW)
    driver.step(T0 + HOUR)
    rows = MemoryMap()
    replay = Replay(ScheduleStore(rows))
    replay.apply(driver.changelog, range(len(driver.changelog)), T0 + HOUR)
    replay.finish(T0 + HOUR)
    driver.start(rows)
    assert driver.engine.next_due_ms() is None
    asked(driver, T0 + HOUR, action="CANCEL")
    assert driver.engine.pending == 0


def test_a_step_that_is_rolled_back_pauses_nothing() -> None:
    driver = keyed(OLD)
    asked(driver)
    let(driver, NEW)
    driver.step(T0 + HOUR, commit=False)
    let(driver, OLD)
    assert values(driver, T0 + HOUR) == [SECRET]


@pytest.mark.parametrize("secrets", [(NEW,), ()])
def test_a_trigger_says_that_it_cannot_be_decrypted(secrets: tuple[bytes, ...]) -> None:
    driver = keyed(OLD)
    asked(driver)
    assert [shot.value for shot in _triggered(driver)] == [SECRET]
    let(driver, *secrets, ref=REF if secrets else None)
    driver.ask(action="TRIGGER")
    step = driver.step(T0 + 2)
    assert (step.shots, step.codes) == ([], ["unreadable_schedule"])


def _triggered(driver: Driver) -> list[Any]:
    driver.ask(action="TRIGGER")
    return driver.step(T0 + 1).shots


def test_a_backfill_decrypts_and_says_what_it_cannot() -> None:
    span: dict[str, Any] = {"range_from": T0 - 3 * HOUR, "range_until": T0}
    driver = keyed(OLD)
    driver.ask(payload=SECRET, **HOURLY)
    driver.step(T0)
    begin(driver, "BACKFILL", **span)
    effects = driver.engine.advance_jobs(T0 + 1_000, MUCH)
    assert [fired[3] for fired in effects.fired] == [SECRET] * 3
    driver.end(T0 + 1_000)
    let(driver, NEW)
    begin(driver, "BACKFILL", "again", **span)
    (told,) = [each for each in advance(driver) if each.schedule_id == "a"]
    assert (told.outcome, told.code) == ("REJECTED", "unreadable_schedule")


def test_without_its_key_nothing_is_kept_and_what_is_there_can_be_cancelled() -> None:
    driver = keyed(OLD)
    asked(driver)
    let(driver)
    assert asked(driver, schedule_id="b") == (["REJECTED"], ["payload_key_missing"])
    assert "payload_key_missing" in PASSING
    assert asked(driver, action="CANCEL") == (["CANCELLED"], [])
