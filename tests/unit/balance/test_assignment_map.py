"""Members and leader understand each other, also when one of them is of another version."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from belfry.balance.assignment import read_answer
from belfry.balance.assignment_map import (
    AssignedMember,
    AssignmentMap,
    MemberMetadata,
    idle_commit_ms,
    read_assignment_map,
    read_metadata,
)
from belfry.balance.owners import ASSIGNERS
from belfry.balance.shares import shares

STANDING = MemberMetadata(
    "w1", "0.1.0", "http://h:1", 2, "r", leaving=True, owns={3: 7}, warm=(1, 2), unfit=True
)
PLAIN = MemberMetadata("member", format=1)
MAP = AssignmentMap(
    (
        AssignedMember("w1", owns=(0, 1), stands_by=(2,)),
        AssignedMember("w2", owns=(2,), stands_by=(0, 1)),
    )
)


def test_a_standing_travels() -> None:
    assert read_metadata(STANDING.encode(), "member") == STANDING


def test_a_roster_travels() -> None:
    assert read_assignment_map(MAP.encode()) == MAP


@pytest.mark.parametrize("told", [b"", b"\0\xff", b"[]", b"3", b'{"owns": 3, "warm": null}'])
def test_who_says_nothing_is_a_plain_member(told: bytes) -> None:
    assert read_metadata(told, "member") == PLAIN
    assert read_assignment_map(told) == AssignmentMap()


def test_what_a_later_version_adds_is_passed_over() -> None:
    told = orjson.loads(STANDING.encode()) | {"mood": "fine"}
    assert read_metadata(orjson.dumps(told), "member") == STANDING
    more = orjson.loads(MAP.encode())
    more["seats"][0]["mood"] = "fine"
    assert read_assignment_map(orjson.dumps(more)) == MAP


def test_what_a_roster_says() -> None:
    assert MAP.owner(2) == MAP.entries[1]
    assert MAP.owner(9) is None
    assert MAP.stood_by() == {0, 1, 2}
    assert MAP.entry("w1").stands_by == (2,)
    assert MAP.entry("stranger").owns == ()
    assert MAP.rank("w2", 0) == 0
    assert MAP.others("w1")
    assert not AssignmentMap((AssignedMember("w1"), AssignedMember("w2", leaving=True))).others(
        "w1"
    )


def test_many_partitions_are_shown_alive_less_often() -> None:
    assert idle_commit_ms(1) == 300
    assert idle_commit_ms(100) == 2_500


@pytest.mark.parametrize(
    "said",
    [
        {"owns": {"a": 1}},
        {"owns": {"1": "x"}},
        {"owns": [1, 2]},
        {"warm": 5},
        {"warm": ["x"]},
        {"cannot": {"1": 2}},
        {"weight": "heavy"},
        {"weight": -3},
        {"weight": True},
        {"leaving": "no"},
        {"unfit": 1},
        {"format": "2"},
        {"worker": 7},
    ],
    ids=str,
)
def test_what_is_not_of_its_kind_counts_as_not_said(said: dict[str, Any]) -> None:
    assert read_metadata(orjson.dumps(said), "odd") == MemberMetadata("odd", format=1)


def test_one_odd_member_leaves_each_partition_an_owner() -> None:
    odd = read_metadata(b'{"owns":{"x":1},"warm":3,"weight":-1}', "odd")
    members = [odd.member("odd"), MemberMetadata("fine").member("fine")]
    found = shares([0, 1, 2], members, ASSIGNERS["even"], {})
    assert sorted(p for share in found.values() for p in share.owns) == [0, 1, 2]


@pytest.mark.parametrize(
    "told",
    [
        b'{"watches":[1,"x",{"worker":"w","ranks":{"a":0}}]}',
        b'{"watches":{},"commits_for":[null]}',
        b'{"seats":[1,{"owns":[0]},{"worker":"w","owns":"all"}]}',
    ],
)
def test_an_odd_answer_is_no_error(told: bytes) -> None:
    assignment, _ = read_answer(told, "w")
    assert assignment.stands_by == ()
    assert assignment.commits_for == ()
