"""A member's own part by hand: whom it watches, who listens to it, and what it commits for."""

from __future__ import annotations

import orjson
import pytest

from belfry.balance.assignment import (
    Assignment,
    Watched,
    of_map,
    own_parts,
    read_answer,
    reads_own_part,
)
from belfry.balance.assignment_map import AssignedMember, AssignmentMap, MemberMetadata
from belfry.balance.members import Share

METADATA = {
    "m1": MemberMetadata("w1", heartbeats=True),
    "m2": MemberMetadata("w2", heartbeats=True),
    "m3": MemberMetadata("w3"),
}
SHARES = {"m1": Share([1, 0], [2]), "m2": Share([2, 3], [0, 1]), "m3": Share([4], [0, 3])}
WHOLE = Assignment(True, 2, (3,), (Watched("w1", 2, 0, {0: 0, 1: 1}),))


def test_three_members_by_hand() -> None:
    """m3 goes by commits, so owners that it stands by for commit for it; nobody listens to it."""
    assert own_parts(METADATA, SHARES) == {
        "m1": Assignment(True, 0, (0,), (Watched("w2", 2, 2, {2: 0}),)),
        "m2": Assignment(True, 2, (3,), (Watched("w1", 2, 0, {0: 0, 1: 0}),)),
        "m3": Assignment(
            True, -1, (), (Watched("w1", 2, 0, {0: 1}), Watched("w2", 2, 2, {3: 0}))
        ),
    }  # fmt: skip


def test_an_owner_without_heartbeats_commits_for_each_standby() -> None:
    found = own_parts(METADATA, {"m1": Share([], [7, 5]), "m3": Share([7, 5], [])})
    assert found["m3"] == Assignment(True, -1, (5, 7))
    assert found["m1"].watches == (Watched("w3", 2, -1, {7: 0, 5: 0}),)


def test_a_heartbeat_needs_somebody_who_listens() -> None:
    found = own_parts(METADATA, {"m1": Share([0, 1], []), "m2": Share([2], [1])})
    assert (found["m1"].heartbeat, found["m2"].heartbeat) == (1, -1)


def test_others_are_those_that_stay() -> None:
    alone = {"m1": MemberMetadata("w1"), "m2": MemberMetadata("w2", leaving=True)}
    found = own_parts(alone, {"m1": Share([0], []), "m2": Share()})
    assert (found["m1"].others, found["m2"].others) == (False, True)


def test_what_a_part_tells_of_partitions() -> None:
    part = own_parts(METADATA, SHARES)["m3"]
    assert part.stands_by == (0, 3)
    owners = [part.owner(partition) for partition in range(4)]
    assert [each and each.worker for each in owners] == ["w1", None, None, "w2"]


def test_a_part_travels() -> None:
    for part in (WHOLE, *own_parts(METADATA, SHARES).values()):
        assert read_answer(part.encode(), "w") == (part, None)
    assert orjson.loads(WHOLE.encode()) == {
        "format": 2,
        "others": True,
        "heartbeat": 2,
        "commits_for": [3],
        "watches": [{"worker": "w1", "owns": 2, "heartbeat": 0, "ranks": {"0": 0, "1": 1}}],
    }


def test_what_a_part_lacks_or_has_of_another_kind_is_as_if_nobody_had_said_it() -> None:
    assert read_answer(b'{"watches":[{}]}', "w")[0] == Assignment(watches=(Watched(""),))
    odd = b'{"watches":[{"owns":"2","heartbeat":true,"ranks":3}],"heartbeat":1.5,"others":0}'
    assert read_answer(odd, "w")[0] == Assignment(watches=(Watched(""),))
    assert read_answer(b'{"watches":3}', "w") == (Assignment(), None)


@pytest.mark.parametrize(("format_", "own"), [(1, False), (2, True), (3, True)])
def test_members_of_format_2_read_their_own_part(format_: int, own: bool) -> None:
    assert reads_own_part(MemberMetadata("w", format=format_)) is own


def test_a_part_out_of_a_whole_map() -> None:
    told = AssignmentMap(
        (
            AssignedMember("w1", owns=(3, 0, 1), stands_by=(2,)),
            AssignedMember("w2", owns=(2,), stands_by=(3, 0)),
            AssignedMember("w3", owns=(4, 5), stands_by=(0, 1, 9), leaving=True),
        )
    )
    assert of_map(told, "w1") == Assignment(True, -1, (0, 1, 3), (Watched("w2", 1, -1, {2: 0}),))
    assert of_map(told, "w2").watches == (Watched("w1", 3, -1, {3: 0, 0: 0}),)
    # 9 has no owner, so it has nobody to watch for that.
    assert of_map(told, "w3").watches == (Watched("w1", 3, -1, {0: 1, 1: 0}),)
    assert of_map(told, "w3").commits_for == ()
    assert of_map(AssignmentMap(told.entries[:1]), "w1") == Assignment(False)
    assert read_answer(told.encode(), "w2") == (of_map(told, "w2"), told)
