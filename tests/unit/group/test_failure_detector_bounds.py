"""From which millisecond on a standby takes over, and how often it asks the broker until then."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest

from belfry.group.failure_detector import TAKES_OVER_MS, DetectorTimeouts, FailureDetector, Timeouts
from belfry.group.heartbeat_watch import FOUND_AGAIN_MS
from belfry.group.silence import LOOK_EVERY_MS
from tests.unit.group.looking import BEGUN, LATER, Looking, beat

LIMIT = 1_000.0


def timeouts(owns: int = 1) -> Timeouts:
    return DetectorTimeouts(LIMIT, 20_000.0).timeouts(owns, 0, 0)


def detector(watch: Looking | None, partition: int = 1, owns: int = 1) -> FailureDetector:
    found = FailureDetector(partition, BEGUN)
    found.follow(watch, timeouts(owns))
    return found


def over_from(found: FailureDetector, watch: Looking | None, from_ms: float) -> float:
    """The first millisecond at which it takes over, while all but the owner is well."""
    now_ms = from_ms
    while now_ms < from_ms + 30_000:
        found.here(now_ms)
        if watch is not None and now_ms % 100 == 0:
            watch.look(now_ms)
        if found.over(now_ms):
            return now_ms
        now_ms += 1
    return inf


def test_who_was_not_told_how_long_never_takes_over() -> None:
    found = FailureDetector(1, BEGUN)
    assert not found.wants_look(BEGUN + 1e9)
    assert not found.over(BEGUN + 1e9)


def test_no_time_out_is_shorter_than_three_commits_of_an_idle_owner() -> None:
    shortest = DetectorTimeouts(500.0, 20_000.0).timeouts(1, 0, 0)
    assert shortest == Timeouts(900.0, 900.0, 900.0, TAKES_OVER_MS, 1)
    assert DetectorTimeouts(2_000.0, 20_000.0).timeouts(200, 0, 0) == Timeouts(
        2_000.0, 2_000.0, 15_000.0, 15_000.0, 200
    )
    assert DetectorTimeouts(LIMIT, 500.0).timeouts(1, 2, 3).heartbeats_ms == LIMIT


def test_each_rank_and_each_mistake_makes_it_wait_longer_up_to_the_longest() -> None:
    waits = DetectorTimeouts(LIMIT, 20_000.0)
    found = [waits.timeouts(1, rank, mistakes) for rank, mistakes in ((0, 0), (2, 0), (1, 3))]
    assert [each.heartbeats_ms for each in found] == [1_000.0, 3_000.0, 9_000.0]
    assert waits.timeouts(1, 0, 9).heartbeats_ms == 20_000.0


def test_a_worker_that_falls_silent_is_replaced_when_the_time_out_ends() -> None:
    watch = Looking()
    found = detector(watch)
    found.heard(LATER)
    assert over_from(found, watch, LATER) == LATER + LIMIT


@pytest.mark.parametrize(("late_ms", "more_ms"), [(600.0, 600.0), (LIMIT, LIMIT)])
def test_a_step_that_came_soon_after_the_last_heartbeat_was_the_workers(
    late_ms: float, more_ms: float
) -> None:
    watch = Looking()
    found = detector(watch, owns=200)
    watch.look_on(LATER, LATER + late_ms)
    found.heard(LATER + late_ms)
    assert over_from(found, watch, LATER + late_ms) == LATER + more_ms + LIMIT


def test_a_step_that_came_long_after_the_last_heartbeat_is_another_owners() -> None:
    """It is judged by its commits, of which it may miss three."""
    watch = Looking()
    found = detector(watch, owns=200)
    watch.look_on(LATER, LATER + LIMIT + 1)
    found.heard(LATER + LIMIT + 1)
    assert over_from(found, watch, LATER + LIMIT + 1) == LATER + LIMIT + 1 + 15_000


def test_without_heartbeats_an_owner_is_judged_by_its_commits() -> None:
    found = detector(None, owns=200)
    found.heard(LATER)
    assert not found.wants_look(LATER + 4_999)
    assert found.wants_look(LATER + 5_000)
    assert over_from(found, None, LATER + 100) == LATER + 100 + 15_000


def test_the_broker_is_not_asked_about_a_worker_that_fell_silent() -> None:
    watch = Looking()
    found = detector(watch)
    found.heard(LATER)
    watch.look_on(LATER, LATER + LIMIT)
    assert not any(found.wants_look(LATER + waited_ms) for waited_ms in range(0, 2_000, 50))


def test_an_owner_that_was_never_heard_is_judged_by_its_commits() -> None:
    watch = Looking(beats=False)
    found = detector(watch)
    assert over_from(found, watch, BEGUN + 1) == BEGUN + FOUND_AGAIN_MS + LIMIT - 1


@pytest.mark.parametrize(
    ("owns", "looks_ms", "over_ms"), [(1, LOOK_EVERY_MS, LIMIT), (200, 1_000.0, 2_500.0)]
)
def test_a_partition_that_hangs_is_looked_at_a_few_times_before_it_is_replaced(
    owns: int, looks_ms: float, over_ms: float
) -> None:
    watch = Looking()
    found = detector(watch, owns=owns)
    assert not found.over(LATER), "the last heartbeat says that it is well"
    watch.found = beat(2)
    watch.number += 1
    watch.look(LATER)
    found.here(LATER)
    looks, now_ms = list[float](), LATER
    while not found.over(now_ms):
        now_ms += 10
        if now_ms % 100 == 0:
            watch.number += 1
            watch.look(now_ms)
        found.here(now_ms)
        if found.wants_look(now_ms):
            found.looked(now_ms, now_ms, 50, 50)
            looks.append(now_ms)
    assert now_ms - LATER == over_ms
    assert {later - sooner for sooner, later in pairwise(looks)} == {looks_ms}


def test_another_watch_knows_nothing_of_what_the_last_one_heard() -> None:
    """What the owner has to do for its new assignment is a take-over."""
    watch, later = Looking(), Looking()
    found = detector(watch)
    found.here(LATER)
    assert not found.over(LATER)
    later.found = beat(2)
    later.number += 1
    later.look(LATER)
    found.follow(later, timeouts())
    now_ms = LATER
    while not found.over(now_ms):
        now_ms += 100
        later.number += 1
        later.look(now_ms)
        found.here(now_ms)
    assert now_ms == LATER + TAKES_OVER_MS
