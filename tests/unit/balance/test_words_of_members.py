"""What members say and are told, field by field: other versions read the same words."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from belfry.balance.assignment_map import (
    AssignedMember,
    AssignmentMap,
    MemberMetadata,
    assigned_member_of,
    idle_commit_ms,
    read_assignment_map,
    read_metadata,
    read_numbered,
    read_numbers,
)
from belfry.balance.heartbeat import Heartbeat, read_heartbeat
from belfry.balance.members import Member

SAID: dict[str, Any] = {
    "worker": "w1",
    "version": "0.1.0",
    "http": "http://h:1",
    "weight": 2,
    "rack": "r",
    "leaving": True,
    "owns": {"3": 7, "10": -1},
    "warm": [0, 2],
    "cannot": [5],
    "heartbeats": True,
    "format": 2,
    "unfit": True,
}
METADATA = MemberMetadata(
    "w1", "0.1.0", "http://h:1", 2, "r", leaving=True, owns={3: 7, 10: -1}, warm=(0, 2),
    cannot=(5,), heartbeats=True, unfit=True,
)  # fmt: skip
ASSIGNED = AssignedMember("w1", "0.1.0", "http://h:1", 2, "r", True, (4,), (1, 6), (3,))


def test_a_member_says_all_of_this() -> None:
    assert orjson.loads(METADATA.encode()) == SAID
    assert read_metadata(orjson.dumps(SAID), "m") == METADATA


@pytest.mark.parametrize("name", SAID)
def test_what_one_says_does_not_depend_on_the_rest(name: str) -> None:
    found = read_metadata(orjson.dumps({name: SAID[name]}), "m")
    plain = MemberMetadata("m", format=1)
    differing = {each for each in SAID if getattr(found, each) != getattr(plain, each)}
    assert differing == {name}
    assert getattr(found, name) == getattr(METADATA, name)


def test_the_assignment_is_computed_with_what_was_said() -> None:
    assert METADATA.member("m") == Member(
        "m", 2, "r", leaving=True, owns={3: 7, 10: -1}, warm=frozenset({0, 2}),
        cannot=frozenset({5}), unfit=True,
    )  # fmt: skip


def test_a_map_tells_of_a_member_what_it_said_and_got() -> None:
    assert assigned_member_of(METADATA, [4], [1, 6]) == ASSIGNED


def test_only_an_ownership_with_an_epoch_is_held() -> None:
    said = MemberMetadata("w", owns={3: 0, 4: -1, 5: 1})
    assert assigned_member_of(said, (), ()).held == (3, 5)


def test_a_map_travels_as_members_of_format_1_read_it() -> None:
    whole = AssignmentMap((ASSIGNED, AssignedMember("w2")))
    told = orjson.loads(whole.encode())
    assert (told["format"], [each["worker"] for each in told["seats"]]) == (1, ["w1", "w2"])
    assert told["seats"][0] == {
        "worker": "w1", "version": "0.1.0", "http": "http://h:1", "weight": 2, "rack": "r",
        "leaving": True, "owns": [4], "stands_by": [1, 6], "held": [3],
    }  # fmt: skip
    assert read_assignment_map(whole.encode()) == whole


def test_an_entry_that_names_no_worker_is_passed_over() -> None:
    told = b'{"seats":[3,{"owns":[0]},{"worker":7},{"worker":"w","owns":"all","held":[1]}]}'
    assert read_assignment_map(told) == AssignmentMap((AssignedMember("w", held=(1,)),))


def test_standbys_take_turns_in_the_order_of_the_map() -> None:
    entries = [
        AssignedMember("w1", stands_by=(0,)),
        AssignedMember("w2", owns=(0,)),
        AssignedMember("w3", stands_by=(1, 0)),
    ]
    found = AssignmentMap(tuple(entries))
    assert [found.rank(name, 0) for name in ("w1", "w3")] == [0, 1]
    # One that stands by for nothing comes behind all that do.
    assert [found.rank("w2", partition) for partition in range(3)] == [2, 1, 0]
    assert found.entry("w3") == entries[2]
    assert found.entry("w4") == AssignedMember("w4")


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((), False),
        ((AssignedMember("w2"),), True),
        ((AssignedMember("w2", leaving=True),), False),
        ((AssignedMember("w2", leaving=True), AssignedMember("w3")), True),
    ],
)
def test_others_are_those_that_stay(others: tuple[AssignedMember, ...], expected: bool) -> None:
    assert AssignmentMap((AssignedMember("w1"), *others)).others("w1") is expected


@pytest.mark.parametrize(("partitions", "ms"), [(0, 300), (12, 300), (13, 325), (40, 1_000)])
def test_an_owner_of_more_than_twelve_commits_less_often(partitions: int, ms: int) -> None:
    assert idle_commit_ms(partitions) == ms


@pytest.mark.parametrize("weight", [0, 1, 2])
def test_a_weight_is_none_or_more(weight: int) -> None:
    assert read_metadata(orjson.dumps({"weight": weight}), "m").weight == weight


@pytest.mark.parametrize(
    ("told", "numbers"),
    [([0, 3], (0, 3)), ([], ()), ([0, -1], ()), ([1, "2"], ()), ([True], ()), ("12", ())],
)
def test_numbers_of_partitions(told: Any, numbers: tuple[int, ...]) -> None:
    assert read_numbers(told) == numbers


@pytest.mark.parametrize(
    ("told", "numbered"),
    [
        ({"0": 3, "12": -1}, {0: 3, 12: -1}),
        ({"1": 2, "x": 3}, {}),
        ({"1": 2, "2": "3"}, {}),
        ({"1": True}, {}),
        ([1], {}),
    ],
)
def test_numbers_by_partitions(told: Any, numbered: dict[int, int]) -> None:
    assert read_numbered(told) == numbered


def test_a_heartbeat_is_a_bitmap() -> None:
    told = '{"format":1,"worker":"w1","well":"23"}'
    assert Heartbeat("w1", frozenset({0, 1, 5})).encode() == told
    assert read_heartbeat(told) == Heartbeat("w1", frozenset({0, 1, 5}))
    assert read_heartbeat('{"worker":7,"well":"0"}') == Heartbeat("7")
