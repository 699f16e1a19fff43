"""A check that raises refuses its request, and stops nobody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from belfry.engine.unforeseen import MOST_TOLD
from tests.unit.engine.driver import T0, Driver
from tests.unit.engine.faulty import plant

SAID: Final = json.loads(Path(__file__).with_name("refusals.json").read_text("utf-8"))


@pytest.fixture(autouse=True)
def _faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)


def test_a_check_that_fails_stops_nobody_and_is_told_of() -> None:
    driver = Driver()
    driver.ask(schedule_id="before", at=T0 + 5)
    for number in range(MOST_TOLD + 4):
        driver.ask(schedule_id="fault", at=T0 + 5, request_id=f"r{number}", payload=b"hidden")
    driver.ask(schedule_id="behind", at=T0 + 5)
    step = driver.step(T0)
    assert step.codes == ["check_failed"] * (MOST_TOLD + 4)
    assert {each.reason for each in step.effects.lifecycle if each.code} == {SAID["check_failed"]}
    assert step.outcomes == ["ACCEPTED", *["REJECTED"] * (MOST_TOLD + 4), "ACCEPTED"]
    assert len(step.effects.failed_checks) == MOST_TOLD
    for where in step.effects.failed_checks:
        assert "faulty.py" in where
        assert where.endswith("\nZeroDivisionError")
        assert "hidden" not in where
    assert driver.step(T0 + 5).ids == ["before", "behind"]


def test_the_refusal_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    driver.ask(schedule_id="fault", at=T0 + 5, request_id="r")
    assert driver.step(T0).codes == ["check_failed"]
    monkeypatch.undo()
    driver.ask(schedule_id="fault", at=T0 + 5, request_id="r")
    assert driver.step(T0 + 1).outcomes == ["ACCEPTED"]


def test_what_has_no_memory_left_is_no_fault_of_a_request() -> None:
    driver = Driver()
    driver.ask(schedule_id="memory", at=T0 + 5)
    with pytest.raises(MemoryError):
        driver.step(T0)
