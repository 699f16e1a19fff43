"""The rate of catching up is a value: what a step takes of it, a roll-back has not taken."""

from __future__ import annotations

from belfry.firing.rates import CatchUpRate


def test_what_a_step_takes_makes_another_rate() -> None:
    before = CatchUpRate().filled(1_000_000).less(150)
    begun = before.filled(1_000_020)
    assert (begun.left, begun.again_ms) == (90, 1_000_030)
    assert begun.less(30).filled(1_000_020).left == 60
    # The step is rolled back and done again: the old value is still there.
    assert before.filled(1_000_020) == begun


def test_what_is_not_used_is_saved_up_for_a_tenth_of_a_second() -> None:
    assert CatchUpRate(0, 1_000_000).filled(1_000_000 + 3_600_000).left == 200


def test_it_counts_whole_events_and_nothing_comes_while_no_time_passes() -> None:
    rate = CatchUpRate(7, 1_000_000)
    for now_ms in (1_000_000, 999_000):
        assert rate.filled(now_ms).left == 7, "a clock that goes back gives nothing"
    assert str(rate.filled(1_000_001).left) == "9"
