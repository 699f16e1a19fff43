"""Whose a partition was, and why it changed hands, from the maps before and after a rebalance."""

from __future__ import annotations

import pytest

from belfry.balance.assignment_map import (
    AssignedMember,
    AssignmentMap,
    MemberMetadata,
    assigned_member_of,
)
from belfry.balance.take_overs import TakenOver, TakeOverCause, entry_of, told_by

NOBODY = AssignmentMap()
BEFORE = AssignmentMap((AssignedMember("w1", owns=(3,)), AssignedMember("w2", owns=(4,))))
TAKEN = TakenOver(3, 1_700_000_000_000, 250, 12, warm=True)


def after(*others: AssignedMember) -> AssignmentMap:
    return AssignmentMap((*others, AssignedMember("w2", owns=(3, 4))))


@pytest.mark.parametrize(
    ("told", "before", "former", "cause"),
    [
        (after(), BEFORE, "w1", TakeOverCause.GONE),
        (after(AssignedMember("w1", leaving=True)), BEFORE, "w1", TakeOverCause.LEAVING),
        (after(AssignedMember("w1", owns=(5,))), BEFORE, "w1", TakeOverCause.MOVED),
        (after(AssignedMember("w1", held=(3,))), NOBODY, "w1", TakeOverCause.MOVED),
        (after(), NOBODY, None, TakeOverCause.FIRST),
        # What it held itself in joining was no other's.
        (AssignmentMap((AssignedMember("w2", owns=(3,), held=(3,)),)), NOBODY, None,
         TakeOverCause.FIRST),
    ],
    ids=["gone", "leaving", "moved", "to one that has joined", "first", "its own"],
)  # fmt: skip
def test_the_maps_tell_from_whom_and_why(
    told: AssignmentMap, before: AssignmentMap, former: str | None, cause: TakeOverCause
) -> None:
    assert entry_of(TAKEN, "w2", told, before) == (TAKEN, former, cause)
    assert told_by(TAKEN, "w2", told)


def test_ahead_of_the_group_it_was_the_owner_by_the_map_that_stands() -> None:
    ahead = TAKEN._replace(ahead=True)
    assert told_by(ahead, "w2", BEFORE)
    assert entry_of(ahead, "w2", BEFORE, NOBODY) == (ahead, "w1", TakeOverCause.SILENT)


def test_who_begins_anew_takes_it_from_itself() -> None:
    again = TAKEN._replace(again=True)
    assert entry_of(again, "w2", after(), BEFORE) == (again, "w2", TakeOverCause.AGAIN)


def test_a_map_of_before_the_rebalance_does_not_tell_all() -> None:
    assert not told_by(TAKEN, "w2", BEFORE)


def test_only_what_is_owned_counts_as_held() -> None:
    metadata = MemberMetadata("w1", owns={3: 7, 4: -1})
    assert assigned_member_of(metadata, (), ()).held == (3,)
