"""What leaders are asked for: who waits for whom, and for how long."""

from __future__ import annotations

import pytest

from belfry.kafka.fetch_plan import CALM_S, WAIT_S, FetchPlan, LeaderLane, LeaderRequest
from belfry.kafka.fetch_position import (
    LATE_S,
    LONGEST_PAUSE_S,
    PAUSE_S,
    SIP_BYTES,
    FetchPosition,
    Where,
)

A, B = ("in", 0), ("in", 1)
LEADER = 1
SHARED, BESIDE = LeaderLane(LEADER), LeaderLane(LEADER, beside=True)


def planned(
    places: dict[Where, FetchPosition],
    *under_way: LeaderLane,
    leader: int | None = LEADER,
    not_before: float = 0.0,
    full: bool = False,
) -> FetchPlan:
    """A plan at second 100 of the loop's clock; requests without a partition are left out."""
    plan = FetchPlan(100.0, under_way, {LEADER: not_before}, full=full)
    for where, place in places.items():
        plan.add(where, place, leader)
    for lane in [lane for lane, request in plan.requests.items() if not request.places]:
        del plan.requests[lane]
    return plan


def waited(*, beside: bool = False) -> FetchPosition:
    """A partition that has waited together with others before."""
    place = FetchPosition(5)
    place.joins, place.beside = False, beside
    return place


def test_all_that_a_leader_has_go_into_one_request_that_may_wait() -> None:
    plan = planned({A: waited(), B: FetchPosition(7)})
    assert plan.requests == {SHARED: LeaderRequest([(A, 5), (B, 7)], WAIT_S)}


def test_a_request_of_a_reader_whose_partitions_stay_waits_longer() -> None:
    plan = FetchPlan(100.0, (), {}, CALM_S)
    plan.add(A, waited(), LEADER)
    assert plan.requests == {SHARED: LeaderRequest([(A, 5)], CALM_S)}
    assert CALM_S > WAIT_S


def test_a_new_one_goes_beside_a_request_that_is_under_way_and_does_not_wait() -> None:
    new = FetchPosition(7)
    plan = planned({A: waited(), B: new}, SHARED)
    assert plan.requests == {BESIDE: LeaderRequest([(B, 7)], 0.0)}
    # Nor is it asked for twice at once, where the other request is over sooner.
    assert planned({A: waited(), B: new}).requests == {SHARED: LeaderRequest([(A, 5)], WAIT_S)}


@pytest.mark.parametrize("next_offset", [7, 8], ids=["nothing came", "something came"])
def test_it_stays_beside_for_as_long_as_something_comes(next_offset: int) -> None:
    new = FetchPosition(7)
    planned({B: new}, SHARED)
    new.next = next_offset
    new.was_asked(7)
    assert bool(planned({B: new}, SHARED).requests) == (next_offset > 7)


def test_without_room_for_answers_only_what_trickles_is_asked_for() -> None:
    trickles, flows = waited(), waited()
    trickles.sipped(SIP_BYTES - 1, 50.0, 0.0)
    flows.sipped(SIP_BYTES, 50.0, 0.0)
    plan = planned({A: trickles, B: flows}, full=True)
    assert plan.requests == {SHARED: LeaderRequest([(A, 5)], LATE_S)}
    assert plan.look_again_s == LATE_S
    assert planned({A: trickles, B: flows}).requests[SHARED].places == [(A, 5), (B, 5)]


def test_one_that_was_asked_for_with_the_others_waits_with_them() -> None:
    new = FetchPosition(7)
    planned({B: new})
    new.next = 8
    new.was_asked(7)
    assert planned({B: new}, SHARED).requests == {}


def test_of_several_new_ones_the_last_waits_for_what_is_beside_already() -> None:
    assert planned({B: FetchPosition(7)}, SHARED, BESIDE).requests == {}


def test_one_whose_answer_nobody_has_taken_shortens_the_others_wait() -> None:
    slow = waited()
    slow.put(99.0)
    plan = planned({A: slow, B: waited()})
    assert plan.requests == {SHARED: LeaderRequest([(B, 5)], LATE_S)}
    assert plan.look_again_s is None


def test_one_that_is_put_off_is_looked_at_again() -> None:
    later = waited()
    later.not_before = 100.01
    plan = planned({A: later, B: waited()})
    assert plan.requests[SHARED].wait_s == plan.look_again_s == pytest.approx(0.01)


def test_a_leader_that_failed_is_left_alone_for_a_while() -> None:
    plan = planned({A: waited()}, not_before=150.0)
    assert (plan.requests, plan.look_again_s) == ({}, LONGEST_PAUSE_S)


def test_where_nobody_leads_there_is_another_look() -> None:
    plan = planned({A: waited()}, leader=None)
    assert (plan.requests, plan.look_again_s) == ({}, PAUSE_S)
