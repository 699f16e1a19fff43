"""Owners member by member: what each keeps, who gets what is free, and where hashing puts it."""

from __future__ import annotations

import pytest

from belfry.balance.members import Member, able, quotas
from belfry.balance.owners import even, hashed

TWO, FOUR = range(2), range(4)


def members(*weights: int) -> list[Member]:
    return [Member("abc"[number], weight) for number, weight in enumerate(weights)]


@pytest.mark.parametrize(
    ("count", "weights", "held", "expected"),
    [
        (12, (1, 1, 2), {}, [3, 3, 6]),
        (10, (1, 1, 1), {}, [4, 3, 3]),
        (10, (1, 1, 1), {"b": 1}, [3, 4, 3]),
        (10, (1, 1, 1), {"c": 4}, [3, 3, 4]),
        (10, (1, 1, 1), {"b": 3, "c": 4}, [3, 3, 4]),
        (11, (1, 1, 1), {"b": 3, "c": 4}, [3, 4, 4]),
        # 1.43, 2.86 and 5.71: the largest remainders come first, whoever holds more.
        (10, (1, 2, 4), {"a": 9}, [1, 3, 6]),
        # 1.6 and 2.4: the smaller share has the larger remainder.
        (4, (2, 3, 0), {}, [2, 2, 0]),
        (3, (0, 1, 1), {"a": 9}, [0, 2, 1]),
        (3, (0, 0, 0), {}, [1, 1, 1]),
        (0, (1, 1, 1), {}, [0, 0, 0]),
    ],
)
def test_quotas_by_weight_and_by_what_is_held(
    count: int, weights: tuple[int, ...], held: dict[str, int], expected: list[int]
) -> None:
    found = quotas(count, members(*weights), held)
    assert found == dict(zip("abc", expected, strict=True))


def test_who_may_be_given_something_is_told_by_name() -> None:
    fit, other = Member("b"), Member("a")
    sick, stops = Member("d", leaving=True, unfit=True), Member("c", leaving=True)
    assert able([fit, sick, other, stops]) == [other, fit]
    assert able([stops, sick]) == [sick]
    assert able([stops]) == []


def test_a_member_holds_what_it_owns_or_follows_closely() -> None:
    member = Member("a", owns={0: 1}, warm=frozenset({1}))
    assert [member.holds(partition) for partition in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    ("owner", "other", "kept"),
    [
        (Member("a"), Member("b"), {0, 1}),
        # It gives up what the other one is warm for, and what it cannot fire before that.
        (Member("a"), Member("b", warm=frozenset({0, 2})), {1, 3}),
        (Member("a", cannot=frozenset({1})), Member("b", warm=frozenset({0})), {2, 3}),
        # It keeps what the other one cannot fire, even if that one is warm for it.
        (Member("a"), Member("b", warm=frozenset({3}), cannot=frozenset({3})), {0, 3}),
    ],
)
def test_what_a_member_keeps_of_four(owner: Member, other: Member, kept: set[int]) -> None:
    owner = Member(owner.name, owns=dict.fromkeys(FOUR, 1), cannot=owner.cannot)
    found = even(FOUR, [owner, other])
    assert {partition for partition, name in found.items() if name == "a"} == kept


def test_a_member_keeps_what_fewer_others_are_warm_for_or_can_fire() -> None:
    owner = Member("a", owns=dict.fromkeys(range(3), 1))
    warm = [Member("b", warm=frozenset({0, 1, 2})), Member("c", warm=frozenset({0, 1}))]
    assert even(range(3), [owner, *warm])[2] == "a"
    unable = [Member("b", cannot=frozenset({0, 1, 2})), Member("c", cannot=frozenset({2}))]
    assert even(range(3), [owner, *unable])[2] == "a"


def test_of_two_owners_with_one_epoch_the_first_name_stays() -> None:
    both = [Member("a", owns={0: 3}), Member("b", owns={0: 3})]
    assert even(TWO, both) == {0: "a", 1: "b"}


def test_an_owner_of_what_is_not_there_owns_no_more_for_it() -> None:
    assert even(TWO, [Member("a"), Member("b", owns={7: 1})]) == {0: "a", 1: "b"}


def test_what_few_are_warm_for_chooses_first() -> None:
    both = [Member("a", warm=frozenset({0, 1})), Member("b", warm=frozenset({0}))]
    assert even(TWO, both) == {0: "b", 1: "a"}


def test_what_nobody_is_warm_for_takes_no_warm_members_room() -> None:
    found = even(FOUR, [Member("a"), Member("b", warm=frozenset({2, 3}))])
    assert found == {0: "a", 1: "a", 2: "b", 3: "b"}


def test_what_is_free_goes_to_who_is_warm_then_has_room_then_comes_first() -> None:
    assert even(FOUR, [Member("a"), Member("b", weight=3)]) == {0: "b", 1: "b", 2: "a", 3: "b"}
    # Who has no room left gets nothing more, even if it is warm.
    assert even(TWO, [Member("a", warm=frozenset(TWO)), Member("b")]) == {0: "a", 1: "b"}


def test_hashing_puts_partitions_where_it_always_did() -> None:
    assert "".join(hashed(range(24), members(1, 1, 1)).values()) == "bbbbbababbccbbcaabcacaba"
    assert "".join(hashed(range(24), members(1, 2, 3)).values()) == "bbbbbabacbccbbcacbcacaba"


def test_hashing_gives_spare_workers_nothing_unless_all_are() -> None:
    assert set(hashed(range(24), members(0, 1, 0)).values()) == {"b"}
    assert hashed(range(24), members(0, 0, 0)) == hashed(range(24), members(1, 1, 1))
