"""When a partition has something to do, and whether what it held back may leave at once."""

from __future__ import annotations

from belfry.engine.releasing import MOST_AT_ONCE
from belfry.schedules.outcomes import Outcome
from tests.unit.engine.acknowledging import WAIT, serial
from tests.unit.engine.driver import T0, Driver


def test_waits_that_end_at_one_instant_and_are_too_many_for_a_step_go_on_at_once() -> None:
    driver = Driver()
    for number in range(MOST_AT_ONCE + 1):
        serial(driver, f"s{number}", T0, group=f"g{number}")
    driver.step(T0 - 1)
    assert len(driver.step(T0).ids) == MOST_AT_ONCE + 1
    found = []
    for _ in range(2):
        step = driver.step(T0 + WAIT)
        found.append((step.effects.outcomes[Outcome.FAILED], driver.engine.drains))
    assert found == [(MOST_AT_ONCE, True), (1, False)]
