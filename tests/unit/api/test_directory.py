"""The directory says what the group told last, and asks nobody."""

from __future__ import annotations

from belfry.api.workers.directory import Directory
from belfry.balance.assignment import Assignment
from belfry.balance.assignment_map import AssignedMember, AssignmentMap, MemberMetadata
from belfry.group.group import Group

MINE = "http://one:8700"
OTHER = "http://two:8700"


def told(*entries: AssignedMember) -> bytes:
    return AssignmentMap(entries).encode()


def test_holders_are_those_of_the_last_map() -> None:
    group = Group(MemberMetadata("one", http=MINE))
    directory = Directory(group, MINE)
    assert directory.holder(0) is None
    group.seated(
        told(
            AssignedMember("one", http=MINE, owns=(0, 2)),
            AssignedMember("two", http=OTHER, owns=(1,)),
        )
    )
    assert [directory.holder(partition) for partition in range(4)] == [MINE, OTHER, MINE, None]
    group.seated(told(AssignedMember("two", http=OTHER, owns=(0, 1, 2))))
    assert [directory.holder(partition) for partition in range(3)] == [OTHER] * 3


def test_a_standby_is_no_holder() -> None:
    group = Group(MemberMetadata("one", http=MINE))
    group.seated(
        told(
            AssignedMember("one", http=MINE, owns=(0,)),
            AssignedMember("two", http=OTHER, stands_by=(0,)),
        )
    )
    assert Directory(group, MINE).holder(0) == MINE
    assert Directory(group, MINE).standbys(0) == [OTHER]
    assert Directory(group, MINE).standbys(1) == []


def test_those_that_may_keep_a_checkpoint_are_all_that_have_or_had_the_partition() -> None:
    group = Group(MemberMetadata("one", http=MINE))
    group.seated(
        told(
            AssignedMember("one", http=MINE, owns=(0,), held=(1,)),
            AssignedMember("two", http=OTHER, owns=(1,), held=(0, 1)),
            AssignedMember("three", http="http://three", stands_by=(0, 1)),
            AssignedMember("four", http="http://four", owns=(2,)),
            AssignedMember("old", stands_by=(0,), held=(0,)),
        )
    )
    directory = Directory(group, MINE)
    assert directory.keepers(0) == ["http://three", OTHER]
    assert directory.keepers(1) == ["http://three", OTHER]
    assert directory.keepers(2) == ["http://four"]
    assert directory.keepers(3) == []


def test_a_member_that_tells_no_address_is_not_found() -> None:
    group = Group(MemberMetadata("one", http=MINE))
    group.seated(told(AssignedMember("old", owns=(0,))))
    assert Directory(group, MINE).holder(0) is None


def test_a_leader_that_tells_a_member_its_own_part_leaves_the_map_as_it_was() -> None:
    group = Group(MemberMetadata("one", http=MINE))
    group.met(
        AssignmentMap(
            (
                AssignedMember("one", http=MINE, owns=(0,)),
                AssignedMember("two", http=OTHER, owns=(1,)),
            )
        )
    )
    group.seated(Assignment(others=True).encode())
    assert Directory(group, MINE).holder(1) == OTHER
    assert not group.alone


def test_a_leader_that_gives_no_map_tells_of_nobody() -> None:
    group = Group(MemberMetadata("one", http=MINE))
    group.seated(told(AssignedMember("one", http=MINE, owns=(0,))))
    group.seated(b"")
    assert Directory(group, MINE).holder(0) is None
