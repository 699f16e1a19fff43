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


@pytest.mark.parametrize(
    ("held", "now", "before", "former"),
    [
        # Who held it in joining comes first, then the map that stands, then the one before.
        ("w1", "w3", "w4", "w1"),
        ("w2", "w3", "w4", "w3"),
        ("w2", "w2", "w4", "w4"),
        ("w2", "w2", "w2", None),
    ],
)
def test_who_is_the_former_owner(held: str, now: str, before: str, former: str | None) -> None:
    entries = [
        AssignedMember(
            name, owns=(3,) if name == now else (), held=(0, 3) if name == held else (0,)
        )
        for name in ("w1", "w2", "w3", "w4")
    ]
    earlier = AssignmentMap((AssignedMember(before, owns=(3,)),))
    found = entry_of(TAKEN, "w2", AssignmentMap(tuple(entries)), earlier)
    assert found.former == former
    assert found.cause == (TakeOverCause.MOVED if former else TakeOverCause.FIRST)


def test_from_nobody_ahead_of_the_group() -> None:
    ahead = TAKEN._replace(ahead=True)
    assert entry_of(ahead, "w2", NOBODY, NOBODY) == (ahead, None, TakeOverCause.SILENT)


def test_which_maps_tell_all_of_a_take_over() -> None:
    assert not told_by(TAKEN, "w2", NOBODY)
    assert told_by(TAKEN._replace(again=True), "w2", NOBODY)
    assert told_by(TAKEN._replace(ahead=True), "w2", NOBODY)
