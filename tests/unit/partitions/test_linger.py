"""After a small step a partition does nothing for a while, unless it is behind."""

from __future__ import annotations

import pytest

from belfry.partitions.pacing import FEW, LINGER_MS, Linger


def after(events: int, left_ms: int | None, most: int = 8_000) -> float:
    """How long the pause is after steps at 1 000 and 1 040, of which the second one left this."""
    linger = Linger(most)
    linger.fires(1_000)
    linger.fires(1_040)
    linger.after(events, left_ms, 5.0, 7.0, often=True)
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
    linger.after(1, None, 99.0, 100.0, often=True)
    assert linger.left_s(100.0 + LINGER_MS / 2) == pytest.approx(LINGER_MS / 2000)
    assert linger.left_s(101.0 + LINGER_MS) == 0


def test_before_the_first_step_there_is_no_pause_and_nobody_is_behind() -> None:
    linger = Linger(10)
    assert linger.left_s(0.0) == 0
    linger.after(1, 1, 0.0, 0.0, often=True)
    assert linger.left_s(0.0) == LINGER_MS / 1000


def apart(events: int, took_ms: float, *, left_ms: int | None = None, often: bool = False) -> float:
    """How long the pause is where steps are to be 50 ms apart, behind one that took so long."""
    linger = Linger(8_000, apart_ms=50)
    linger.fires(1_000)
    linger.fires(1_040)
    linger.after(events, left_ms, 100.0, 100.0 + took_ms, often=often)
    return linger.left_s(100.0 + took_ms) * 1000


def test_steps_are_as_far_apart_as_asked_whatever_each_takes() -> None:
    assert apart(1, 10.0) == pytest.approx(40)
    assert apart(FEW, 49.0) == pytest.approx(1)
    assert apart(1, 50.0) == 0
    assert apart(1, 70.0) == 0


def test_who_is_behind_does_not_keep_apart() -> None:
    assert apart(1, 10.0, left_ms=1_000) == 0
    assert apart(1, 10.0, left_ms=1_001) == pytest.approx(40)
    assert apart(8_000, 10.0) == 0


def test_of_two_pauses_the_longer_one_counts() -> None:
    assert apart(1, 10.0, often=True) == pytest.approx(40)
    assert apart(1, 40.0, often=True) == LINGER_MS
    assert apart(FEW, 40.0, often=True) == pytest.approx(10)


def test_without_either_nobody_rests() -> None:
    linger = Linger(8_000)
    linger.after(1, None, 100.0, 110.0, often=False)
    assert linger.left_s(110.0) == 0
