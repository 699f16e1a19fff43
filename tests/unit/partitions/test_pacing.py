"""Steps shrink when commits are slow or fail, and grow while they are quick."""

from __future__ import annotations

from belfry.partitions.pacing import (
    FIRST,
    JOBS_FIRST,
    JOBS_LEAST,
    JOBS_MOST,
    JOBS_QUICK_MS,
    JOBS_SLOW_MS,
    LEAST,
    MANY_TOPICS,
    QUICK_MS,
    SLOW_MS,
    JobsPace,
    Pace,
)


def test_a_step_may_have_all_that_it_may_where_there_are_few_topics() -> None:
    pace = Pace(10_000)
    pace.begin(MANY_TOPICS)
    assert pace.at_most == 10_000


def test_among_many_topics_quick_steps_that_were_full_double_up_to_the_most() -> None:
    pace = Pace(10_000)
    pace.begin(MANY_TOPICS + 1)
    sizes = []
    for _ in range(7):
        sizes.append(pace.at_most)
        pace.committed(pace.at_most, QUICK_MS - 1)
    assert sizes == [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]


def test_a_step_that_was_not_full_says_nothing_about_larger_ones() -> None:
    pace = Pace(10_000)
    pace.failed()
    pace.committed(4_999, 1.0)
    assert pace.at_most == 5_000


def test_slow_and_failed_steps_halve_it_and_what_lies_between_changes_nothing() -> None:
    pace = Pace(FIRST)
    pace.committed(FIRST, (QUICK_MS + SLOW_MS) / 2)
    assert pace.at_most == FIRST
    pace.committed(FIRST, SLOW_MS + 1)
    assert pace.at_most == FIRST // 2
    pace.failed()
    assert pace.at_most == FIRST // 4


def test_a_slow_step_that_fired_little_says_nothing_about_its_size() -> None:
    """Requests were taken in, or the broker was slow."""
    pace = Pace(10_000)
    pace.committed(0, 60_000.0)
    pace.committed(4_999, 60_000.0)
    assert pace.at_most == 10_000
    pace.committed(5_000, 60_000.0)
    assert pace.at_most == 5_000


def test_it_never_ends_up_with_nothing() -> None:
    pace, small = Pace(10_000), Pace(3)
    for _ in range(20):
        pace.failed()
        small.failed()
    assert (pace.at_most, small.at_most) == (LEAST, 3)


def test_jobs_do_more_in_a_step_while_steps_are_quick_and_had_more_to_do() -> None:
    pace = JobsPace()
    assert pace.budget.changes == JOBS_FIRST
    for used_up, expected in ((False, JOBS_FIRST), (True, 2 * JOBS_FIRST)):
        pace.took(JOBS_QUICK_MS - 1, used_up=used_up)
        assert pace.budget.changes == expected
    for _ in range(20):
        pace.took(0.0, used_up=True)
    assert pace.budget.changes == JOBS_MOST
    assert pace.budget.names > pace.budget.changes


def test_a_slow_step_of_jobs_halves_the_next_one() -> None:
    pace = JobsPace()
    pace.took((JOBS_QUICK_MS + JOBS_SLOW_MS) / 2, used_up=True)
    assert pace.budget.changes == JOBS_FIRST
    pace.took(JOBS_SLOW_MS + 1, used_up=False)
    assert pace.budget.changes == JOBS_FIRST // 2
    for _ in range(20):
        pace.took(JOBS_SLOW_MS + 1, used_up=True)
    assert pace.budget.changes == JOBS_LEAST


def test_a_step_is_slow_beyond_one_bound_and_quick_below_the_other() -> None:
    pace = Pace(1_000)
    pace.committed(1_000, SLOW_MS)
    assert pace.at_most == 1_000
    pace.failed()
    pace.committed(500, QUICK_MS)
    assert pace.at_most == 500
    pace.committed(500, QUICK_MS - 1)
    assert pace.at_most == 1_000


def test_an_odd_step_is_halved_to_a_whole_number() -> None:
    pace = Pace(625)
    pace.failed()
    assert pace.at_most == 312


def test_jobs_are_slow_beyond_one_bound_and_quick_below_the_other() -> None:
    pace = JobsPace()
    for took_ms in (JOBS_QUICK_MS, JOBS_SLOW_MS):
        pace.took(took_ms, used_up=True)
        assert pace.budget.changes == JOBS_FIRST
    for expected in (25, 12, 6):
        pace.took(JOBS_SLOW_MS + 1, used_up=True)
        assert pace.budget.changes == expected
