"""The take-overs that a worker remembers."""

from __future__ import annotations

from belfry.balance.assignment_map import AssignedMember, AssignmentMap, MemberMetadata
from belfry.balance.take_overs import TakenOver, TakeOverCause
from belfry.group.group import Group
from belfry.group.take_over_log import MOST, TakeOverLog

BEFORE = AssignmentMap((AssignedMember("w1", owns=(3,)), AssignedMember("w2")))
AFTER = AssignmentMap((AssignedMember("w2", owns=(3,)),))
LATER = AssignmentMap((AssignedMember("w2", owns=(3,)), AssignedMember("w3", held=(3,))))
TAKEN = TakenOver(3, 1, 250, 12, warm=False)


def test_an_entry_waits_for_the_map_of_after_the_rebalance_and_for_no_later_one() -> None:
    group = Group(MemberMetadata("w2"))
    group.met(BEFORE)
    group.take_overs.note(TAKEN)
    # The same map is asked for again and again.
    group.met(BEFORE)
    for told in (AFTER, LATER):
        group.met(told)
        assert group.take_overs.latest() == ((TAKEN, "w1", TakeOverCause.GONE),)


def test_one_that_came_after_its_map_waits_for_none() -> None:
    found = TakeOverLog("w2")
    found.met(BEFORE)
    found.met(AFTER)
    found.note(TAKEN)
    found.met(LATER)
    assert found.latest() == ((TAKEN, "w1", TakeOverCause.GONE),)


def test_only_the_last_ones_are_kept() -> None:
    found = TakeOverLog("w2")
    for partition in range(MOST + 5):
        found.note(TAKEN._replace(partition=partition))
    kept = found.latest()
    assert (len(kept), kept[0].taken.partition) == (MOST, 5)
