"""A fetch takes no longer than reading the changelog would, and that shows before its end."""

from __future__ import annotations

import pytest

from belfry.store.fetch_budget import JUDGED_MS, LEAST_MS, READ_PER_S, FetchBudget, TooSlow

MB = 1_000_000


def test_one_that_is_quick_enough_goes_on() -> None:
    budget = FetchBudget(20 * READ_PER_S, 5_000.0)
    budget.begin(200 * MB, 5_000.0)
    assert budget.left_s(5_000.0) == 20.0
    for second in range(1, 20):
        budget.done(10 * MB)
        assert budget.left_s(5_000.0 + 1_000 * second) == 20.0 - second


def test_one_that_cannot_be_over_in_time_is_given_up_as_soon_as_that_shows() -> None:
    budget = FetchBudget(20 * READ_PER_S, 0.0)
    budget.begin(200 * MB, 0.0)
    budget.done(10 * MB)
    assert budget.left_s(JUDGED_MS - 1) > 0
    with pytest.raises(TooSlow) as told:
        budget.left_s(2_000.0)
    assert str(told.value) == (
        "10000000 of 200000000 bytes have come in 2.0 s, and 20.0 s are worth it: then the"
        " changelog is read sooner"
    )


def test_what_a_fetch_took_and_may_take_is_told_to_a_tenth_of_a_second() -> None:
    budget = FetchBudget(900 * READ_PER_S, 1_000.0)
    budget.begin(MB, 5_000.0)
    budget.done(MB - 1)
    with pytest.raises(TooSlow, match=r" in 896\.0 s, and 900\.0 s are worth it"):
        budget.left_s(901_000.0)
    # One byte less would have done a millisecond before.
    budget = FetchBudget(20 * READ_PER_S, 0.0)
    budget.begin(20, 0.0)
    budget.done(10)
    assert budget.left_s(10_000.0) == 10.0
    with pytest.raises(TooSlow):
        budget.left_s(10_001.0)


def test_a_standby_takes_longer() -> None:
    budget = FetchBudget(20 * READ_PER_S, 0.0, lambda: False)
    budget.begin(200 * MB, 0.0)
    budget.done(10 * MB)
    assert budget.left_s(9_000.0) == 191.0
    with pytest.raises(TooSlow):
        budget.left_s(11_000.0)


def test_what_was_there_already_counts() -> None:
    budget = FetchBudget(20 * READ_PER_S, 0.0)
    budget.begin(200 * MB, 0.0)
    budget.done(190 * MB)
    assert budget.left_s(10_000.0) == 10.0


def test_one_that_stands_still_is_given_up_after_a_moment() -> None:
    budget = FetchBudget(1_000 * READ_PER_S, 0.0)
    budget.begin(MB, 0.0)
    with pytest.raises(TooSlow):
        budget.left_s(JUDGED_MS)


def test_where_little_is_to_be_read_there_is_a_moment_all_the_same() -> None:
    budget = FetchBudget(1, 0.0)
    budget.begin(MB, 0.0)
    budget.done(MB)
    assert budget.left_s(0.0) == LEAST_MS / 1000
    with pytest.raises(TooSlow):
        budget.left_s(LEAST_MS)


def test_a_second_one_has_what_the_first_has_left() -> None:
    budget = FetchBudget(20 * READ_PER_S, 0.0)
    budget.begin(200 * MB, 0.0)
    budget.done(100 * MB)
    budget.begin(200 * MB, 15_000.0)
    assert budget.left_s(15_000.0) == 5.0
    # It is judged by its own speed.
    budget.done(50 * MB)
    with pytest.raises(TooSlow):
        budget.left_s(15_000.0 + JUDGED_MS)
