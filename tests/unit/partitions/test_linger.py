"""After a small step a partition does nothing for a while, unless it is behind."""

from __future__ import annotations

import pytest

from belfry.partitions.pacing import FEW, LINGER_MS, Linger


def after(events: int, left_ms: int | None, most: int = 8_000) -> float:
    """How long the pause is after steps at 1 000 and 1 040, of which the second one left this."""
    linger = Linger(most)
    linger.fires(1_000)
    linger.fires(1_040)
    linger.after(events, left_ms, 7.0)
    return linger.left_s(7.0) * 1000


def test_small_steps_rest_and_others_go_on() -> None:
    assert after(FEW - 1, None) == LINGER_MS
    assert after(FEW, None) == 0


def test_who_leaves_what_the_step_before_could_have_fired_is_behind() -> None:
    assert after(1, 1_000) == 0
    # A tenant apart fires up to where the timeline had been emptied before the step.
    assert after(1, 1_001) == LINGER_MS


def test_who_takes_in_all_that_it_may_is_behind() -> None:
    assert after(9, None, most=10) == LINGER_MS
    assert after(10, None, most=10) == 0


def test_a_rest_ends() -> None:
    linger = Linger(10)
    linger.after(1, None, 100.0)
    assert linger.left_s(100.0 + LINGER_MS / 2) == pytest.approx(LINGER_MS / 2000)
    assert linger.left_s(101.0 + LINGER_MS) == 0


def test_before_the_first_step_there_is_no_pause_and_nobody_is_behind() -> None:
    linger = Linger(10)
    assert linger.left_s(0.0) == 0
    linger.after(1, 1, 0.0)
    assert linger.left_s(0.0) == LINGER_MS / 1000
