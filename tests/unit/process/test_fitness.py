"""When a worker leaves by itself, and when it comes back."""

from __future__ import annotations

from belfry.process.self_check import FIRST_PAUSE_MS, LONGEST_PAUSE_MS, Fitness


def test_a_reason_has_to_last() -> None:
    fitness = Fitness(1_000)
    assert not fitness.leaves("the disk is full", 0)
    assert not fitness.leaves("the disk is full", 999)
    assert fitness.leaves("the disk is full", 1_000)


def test_a_reason_that_goes_counts_anew() -> None:
    fitness = Fitness(1_000)
    assert not fitness.leaves("the disk is full", 0)
    assert not fitness.leaves("", 900)
    assert not fitness.leaves("the disk is full", 1_000)
    assert not fitness.leaves("the disk is full", 1_999)


def test_who_left_comes_back_when_the_reason_is_gone_and_the_pause_is_over() -> None:
    fitness = Fitness(1_000)
    fitness.left(0)
    assert not fitness.leaves("the disk is full", 5_000)
    assert not fitness.returns("", FIRST_PAUSE_MS - 1)
    assert not fitness.returns("the disk is full", FIRST_PAUSE_MS)
    assert fitness.returns("", FIRST_PAUSE_MS + 1)


def test_a_relapse_makes_the_pause_longer() -> None:
    fitness = Fitness(1_000)
    fitness.left(0)
    assert fitness.returns("", FIRST_PAUSE_MS)
    fitness.left(100_000)
    assert not fitness.returns("", 100_000 + 2 * FIRST_PAUSE_MS - 1)
    assert fitness.returns("", 100_000 + 2 * FIRST_PAUSE_MS)


def test_who_was_fit_for_an_hour_has_a_short_pause_again() -> None:
    fitness = Fitness(1_000)
    for began_ms in (0, 200_000):
        fitness.left(began_ms)
        back_ms = began_ms + 2 * FIRST_PAUSE_MS
        assert fitness.returns("", back_ms)
    again_ms = back_ms + LONGEST_PAUSE_MS
    fitness.left(again_ms)
    assert not fitness.returns("", again_ms + FIRST_PAUSE_MS - 1)
    assert fitness.returns("", again_ms + FIRST_PAUSE_MS)
    fitness.left(again_ms + 2 * FIRST_PAUSE_MS)
    assert not fitness.returns("", again_ms + 4 * FIRST_PAUSE_MS - 1)
