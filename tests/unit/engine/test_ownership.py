"""The states of a take-over: fence first, then the end of the changelog, then fire."""

from __future__ import annotations

from itertools import product

import pytest

from belfry.engine.ownership import TABLE, Event, Ownership, after, diagram

ORDER = [Event.ASSIGNED, Event.CAUGHT_UP, Event.FENCED, Event.REPLAYED, Event.TAKEN_IN]


def test_a_take_over_fences_before_it_replays_the_end_and_fires_last() -> None:
    state, passed = Ownership.IDLE, []
    for event in ORDER:
        state = after(state, event)
        passed.append(state)
    assert passed == [
        Ownership.CATCHING_UP,
        Ownership.FENCING,
        Ownership.REPLAYING,
        Ownership.TAKING_IN,
        Ownership.FIRING,
    ]


@pytest.mark.parametrize("state", [Ownership.TAKING_IN, Ownership.FIRING])
def test_an_unknown_result_starts_over_from_the_beginning(state: Ownership) -> None:
    assert after(state, Event.UNKNOWN) is Ownership.IDLE
    assert after(Ownership.IDLE, Event.ASSIGNED) is Ownership.CATCHING_UP


@pytest.mark.parametrize("event", [Event.REVOKED, Event.FENCED_OFF])
def test_a_partition_can_be_lost_at_any_time(event: Event) -> None:
    for state in Ownership:
        if state is not Ownership.STOPPED:
            assert after(state, event) is Ownership.STOPPED


def test_nothing_leads_out_of_the_end() -> None:
    assert not [case for case in TABLE if case[0] is Ownership.STOPPED]


@pytest.mark.parametrize(
    ("state", "event"),
    [case for case in product(Ownership, Event) if case not in TABLE],
    ids=lambda each: each.name,
)
def test_what_cannot_happen_is_a_bug(state: Ownership, event: Event) -> None:
    with pytest.raises(AssertionError, match="cannot happen while"):
        after(state, event)


def test_every_state_can_be_reached_and_stands_in_the_diagram() -> None:
    reached = {Ownership.IDLE, *TABLE.values()}
    assert reached == set(Ownership)
    assert all(state.name in diagram() for state in Ownership)
