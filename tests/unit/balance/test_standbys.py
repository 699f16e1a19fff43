"""Standbys by hand: who comes first, how many, and what moves from one that cannot fire it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from belfry.balance.members import Member, Share
from belfry.balance.owners import Assigner, even
from belfry.balance.shares import shares


def owned_by(names: str) -> Assigner:
    """An assigner that gives partition 0 to the first of these names, and so on."""

    def assigner(partitions: Sequence[int], members: Sequence[Member]) -> dict[int, str]:
        return dict(zip(partitions, names, strict=True))

    return assigner


def standbys(names: str, members: list[Member], counts: dict[int, int]) -> dict[str, list[int]]:
    found = shares(range(len(names)), members, owned_by(names), counts)
    return {name: share.stands_by for name, share in found.items()}


def owners(names: str, members: list[Member]) -> str:
    """Who owns what, after it has gone to members that can fire it."""
    found = shares(range(len(names)), members, owned_by(names), {})
    by_partition = {p: name for name, share in found.items() for p in share.owns}
    return "".join(by_partition[partition] for partition in range(len(names)))


def test_the_example_of_the_module() -> None:
    members = [Member("a", rack="r1"), Member("b", rack="r1"), Member("c", rack="r2")]
    assert standbys("abc", members, dict.fromkeys(range(3), 1)) == {"a": [2], "b": [], "c": [0, 1]}


@pytest.mark.parametrize(
    ("b", "c", "first"),
    [
        (Member("b"), Member("c"), "b"),
        (Member("b"), Member("c", warm=frozenset({0})), "c"),
        # Another rack comes before one that is warm, and what it can fire before both.
        (Member("b", rack="r2"), Member("c", rack="r1", warm=frozenset({0})), "b"),
        (Member("b", rack="r2", cannot=frozenset({0})), Member("c", rack="r1"), "c"),
        (Member("b", rack="r1"), Member("c"), "c"),
    ],
)
def test_who_stands_by_first(b: Member, c: Member, first: str) -> None:
    found = standbys("a", [Member("a", rack="r1"), b, c], {0: 1})
    assert [name for name, mine in found.items() if mine] == [first]


def test_members_without_a_rack_are_not_beside_each_other() -> None:
    members = [Member("a"), Member("b", warm=frozenset({0})), Member("c", rack="r1")]
    assert standbys("a", members, {0: 1})["b"] == [0]


def test_who_has_room_comes_before_who_is_warm_and_has_none() -> None:
    members = [Member("a"), Member("b", warm=frozenset({0, 1})), Member("c")]
    found = standbys("aaa", members, dict.fromkeys(range(3), 1))
    assert found == {"a": [], "b": [0, 2], "c": [1]}


def test_of_two_that_have_room_the_warm_one_comes_first() -> None:
    members = [Member("a"), Member("b"), Member("c", warm=frozenset({0}))]
    found = standbys("aaa", members, dict.fromkeys(range(3), 1))
    assert found == {"a": [], "b": [1, 2], "c": [0]}


def test_who_is_warm_for_more_has_more_room() -> None:
    members = [Member("a"), Member("b"), Member("c", warm=frozenset({0, 1}))]
    assert standbys("aa", members, {0: 1, 1: 1}) == {"a": [], "b": [], "c": [0, 1]}


def test_of_those_that_are_alike_the_one_with_the_most_room_comes_first() -> None:
    # There is room for 2, 2 and 1.
    members = [Member(name) for name in "abc"]
    found = standbys("bcaab", members, dict.fromkeys(range(5), 1))
    assert found == {"a": [0, 4], "b": [1, 2], "c": [3]}


def test_each_partition_has_as_many_as_it_should_and_no_more_than_others_there_are() -> None:
    members = [Member(name) for name in "abc"]
    found = standbys("aaaa", members, {0: 2, 1: 1, 2: 0, 9: 1})
    assert sorted(p for mine in found.values() for p in mine) == [0, 0, 1]
    assert standbys("a", members, {0: 5}) == {"a": [], "b": [0], "c": [0]}
    assert standbys("a", members, {}) == {"a": [], "b": [], "c": []}
    assert standbys("a", members[:1], {0: 1}) == {"a": []}


def test_nobody_that_stays_stands_by_for_nothing() -> None:
    members = [Member("a", leaving=True), Member("b", leaving=True)]
    assert shares([0], members, even, {0: 1}) == {"a": Share(), "b": Share()}


@pytest.mark.parametrize(
    ("before", "cannot", "after"),
    [
        # b has as many as a, and gives one for it.
        ("aabb", {0}, "baab"),
        # b has fewer, and gives none.
        ("aaab", {0}, "baab"),
        ("aaab", {2}, "aabb"),
        # b has nothing that a can fire.
        ("ab", {0, 1}, "bb"),
        # Of what b has, a gets what it can fire.
        ("abbb", {0, 1}, "bbab"),
        ("aabb", set(), "aabb"),
    ],
)
def test_what_a_cannot_fire_goes_to_b(before: str, cannot: set[int], after: str) -> None:
    assert owners(before, [Member("a", cannot=frozenset(cannot)), Member("b")]) == after


def test_it_gives_what_it_did_not_own_before() -> None:
    members = [Member("a", cannot=frozenset({0})), Member("b", owns={2: 1})]
    assert owners("aabb", members) == "baba"


@pytest.mark.parametrize(
    ("before", "b", "c", "after"),
    [
        ("aabcc", Member("b"), Member("c"), "babcc"),
        ("aabbc", Member("b"), Member("c"), "cabbc"),
        ("aabbbcc", Member("b"), Member("c", warm=frozenset({0})), "cabbbac"),
        ("aabbcc", Member("b"), Member("c", warm=frozenset({0})), "cabbac"),
        ("aabbcc", Member("b"), Member("c"), "baabcc"),
        ("aabbcc", Member("b", cannot=frozenset({0})), Member("c"), "cabbac"),
    ],
)
def test_it_goes_to_one_that_is_warm_or_has_the_fewest(
    before: str, b: Member, c: Member, after: str
) -> None:
    assert owners(before, [Member("a", cannot=frozenset({0})), b, c]) == after


def test_what_nobody_can_fire_all_of_stays() -> None:
    assert owners("ab", [Member(name, cannot=frozenset({0})) for name in "ab"]) == "ab"
