"""A roll-back undoes all of the rate: the same step done again fires the same."""

from __future__ import annotations

from belfry.firing.catch_up_rate import CatchUpRate


def test_what_a_rolled_back_step_took_and_filled_is_undone() -> None:
    rate = CatchUpRate()
    rate.fill(1_000_000)
    rate.committed()
    rate.take(150)
    rate.committed()
    rate.fill(1_000_020)
    (left, again_ms) = rate.left, rate.again_ms
    rate.take(30)
    rate.aborted()
    rate.fill(1_000_020)
    assert (rate.left, rate.again_ms) == (left, again_ms) == (90, 1_000_030)
