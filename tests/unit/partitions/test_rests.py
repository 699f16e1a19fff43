"""After a small step a partition does nothing for a while, unless it is behind."""

from __future__ import annotations

import pytest

from belfry.partitions.rests import FEW, REST_MS, Rests


def after(events: int, left_ms: int | None, most: int = 8_000) -> float:
    """How long the rest is after steps at 1 000 and 1 040, of which the second one left this."""
    rests = Rests(most)
    rests.fires(1_000)
    rests.fires(1_040)
    rests.after(events, left_ms, 7.0)
    return rests.left_s(7.0) * 1000


def test_small_steps_rest_and_others_go_on() -> None:
    assert after(FEW - 1, None) == REST_MS
    assert after(FEW, None) == 0


def test_who_leaves_what_the_step_before_could_have_fired_is_behind() -> None:
    assert after(1, 1_000) == 0
    # A tenant apart fires up to where the timeline had been emptied before the step.
    assert after(1, 1_001) == REST_MS


def test_who_takes_in_all_that_it_may_is_behind() -> None:
    assert after(9, None, most=10) == REST_MS
    assert after(10, None, most=10) == 0


def test_a_rest_ends() -> None:
    rests = Rests(10)
    rests.after(1, None, 100.0)
    assert rests.left_s(100.0 + REST_MS / 2) == pytest.approx(REST_MS / 2000)
    assert rests.left_s(101.0 + REST_MS) == 0
