"""Who gets what: by weight, moving only what must move, with standbys apart from their owners."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from belfry.balance.members import Member, Share
from belfry.balance.owners import Assigner, even, hashed
from belfry.balance.shares import shares

FOUR = range(4)
TWELVE = range(12)


def given(members: list[Member], partitions: range = FOUR, standbys: int = 1) -> dict[str, Share]:
    return shares(partitions, members, even, dict.fromkeys(partitions, standbys))


def again(found: dict[str, Share], *left: str) -> list[Member]:
    """The members that are left, holding what they were given; standbys are warm by now."""
    return [
        Member(name, owns=dict.fromkeys(share.owns, 1), warm=frozenset(share.stands_by))
        for name, share in found.items()
        if name not in left
    ]


def owners(found: dict[str, Share]) -> dict[int, str]:
    return {p: name for name, share in found.items() for p in share.owns}


def test_one_member_gets_everything_and_stands_by_for_nothing() -> None:
    assert given([Member("a")]) == {"a": Share([0, 1, 2, 3], [])}


def test_two_members_share_evenly_and_stand_by_for_each_other() -> None:
    found = given([Member("a"), Member("b")])
    assert len(found["a"].owns) == len(found["b"].owns) == 2
    assert sorted(found["a"].stands_by) == sorted(found["b"].owns)
    assert sorted(found["b"].stands_by) == sorted(found["a"].owns)


@pytest.mark.parametrize("count", range(1, 8))
@pytest.mark.parametrize("partitions", [1, 4, 7, 32])
@pytest.mark.parametrize("standbys", [0, 1, 2])
def test_everything_has_one_owner_and_its_standbys(
    count: int, partitions: int, standbys: int
) -> None:
    members = [Member(f"m{number}") for number in range(count)]
    found = given(members, range(partitions), standbys)
    assert sorted(p for share in found.values() for p in share.owns) == list(range(partitions))
    sizes = [len(share.owns) for share in found.values()]
    assert max(sizes) - min(sizes) <= 1
    times = Counter(p for share in found.values() for p in share.stands_by)
    assert times == Counter({p: min(standbys, count - 1) for p in range(partitions)})
    for share in found.values():
        assert not set(share.owns) & set(share.stands_by)
        assert len(set(share.stands_by)) == len(share.stands_by)


def test_a_death_moves_only_what_the_dead_one_had_and_to_who_is_warm() -> None:
    before = given([Member(name) for name in "abc"], TWELVE)
    after = given(again(before, "b"), TWELVE)
    assert all(owners(after)[p] == name for p, name in owners(before).items() if name != "b")
    orphans = set(before["b"].owns)
    # Two survivors have room for two each, and both are warm for two of the four.
    warm = {p for p in orphans if p in before[owners(after)[p]].stands_by}
    assert warm == orphans


def test_who_comes_takes_no_more_than_its_share() -> None:
    before = given([Member("a"), Member("b")], TWELVE)
    after = given([*again(before), Member("c")], TWELVE)
    moved = [p for p in TWELVE if owners(before)[p] != owners(after)[p]]
    assert len(moved) == 4
    assert {owners(after)[p] for p in moved} == {"c"}


def test_a_rebalance_without_a_change_moves_nothing() -> None:
    before = given([Member(name) for name in "abcde"], TWELVE)
    after = given(again(before), TWELVE)
    assert owners(after) == owners(before)
    assert {n: sorted(s.stands_by) for n, s in after.items()} == {
        n: sorted(s.stands_by) for n, s in before.items()
    }


def test_weights_are_shares() -> None:
    found = given([Member("big", weight=3), Member("small")], TWELVE)
    assert (len(found["big"].owns), len(found["small"].owns)) == (9, 3)


def test_a_spare_worker_owns_nothing_and_stands_by() -> None:
    found = given([Member("a"), Member("spare", weight=0)])
    assert found["spare"] == Share([], [0, 1, 2, 3])


def test_spare_workers_alone_own_everything() -> None:
    found = given([Member("a", weight=0), Member("b", weight=0)])
    assert sorted(owners(found)) == list(FOUR)


def test_standbys_are_in_another_rack_where_there_is_one() -> None:
    members = [Member(f"{rack}{n}", rack=rack) for rack in "xy" for n in range(3)]
    found = given(members, TWELVE)
    racks = {member.name: member.rack for member in members}
    for name, share in found.items():
        for partition in share.stands_by:
            assert racks[owners(found)[partition]] != racks[name]


def test_who_leaves_gets_nothing() -> None:
    before = given([Member("a"), Member("b")])
    leaving = [
        Member(m.name, owns=m.owns, warm=m.warm, leaving=m.name == "a") for m in again(before)
    ]
    assert given(leaving) == {"a": Share(), "b": Share([0, 1, 2, 3])}


def test_when_all_leave_nobody_gets_anything() -> None:
    assert given([Member("a", leaving=True)]) == {"a": Share()}


def unfit(member: Member) -> Member:
    return replace(member, leaving=True, unfit=True)


def test_when_all_are_unfit_each_keeps_what_it_has() -> None:
    """Both may say so in one second: a partition without an owner would wait for a minute."""
    before = given([Member("a"), Member("b")])
    assert given([unfit(member) for member in again(before)]) == before


def test_who_is_unfit_gets_nothing_where_another_one_is_fit() -> None:
    fit, sick = again(given([Member("a"), Member("b")]))
    assert given([fit, unfit(sick)]) == {"a": Share([0, 1, 2, 3]), "b": Share()}


def test_who_is_unfit_comes_before_who_stops() -> None:
    stops, sick = again(given([Member("a"), Member("b")]))
    found = given([replace(stops, leaving=True), unfit(sick)])
    assert found == {"a": Share(), "b": Share([0, 1, 2, 3])}


def test_the_higher_epoch_is_the_owner() -> None:
    """A standby that fenced a silent owner keeps the partition when the owner comes back."""
    slow = Member("slow", owns={0: 4, 1: 1, 2: 1})
    quick = Member("quick", owns={0: 5, 3: 1})
    assert owners(given([slow, quick])) == {0: "quick", 1: "slow", 2: "slow", 3: "quick"}


def test_hashing_asks_nobody_and_moves_little() -> None:
    members = [Member(name) for name in "abcd"]
    before = hashed(range(200), members)
    after = hashed(range(200), members[:3])
    assert all(after[p] == name for p, name in before.items() if name != "d")
    assert min(Counter(before.values()).values()) > 30
    assert hashed(range(200), [Member(m.name, owns={1: 1}) for m in members]) == before


def test_hashing_goes_by_weight() -> None:
    found = Counter(hashed(range(400), [Member("a", weight=3), Member("b")]).values())
    assert 250 < found["a"] < 350


@pytest.mark.parametrize("assigner", [even, hashed])
@pytest.mark.parametrize("standbys", [0, 1])
def test_what_a_member_cannot_fire_goes_to_one_that_can(assigner: Assigner, standbys: int) -> None:
    unable = Member("a", owns={0: 1, 1: 1}, cannot=frozenset({0, 1}))
    members = [unable, Member("b", owns={2: 1, 3: 1}), Member("c")]
    found = shares(FOUR, members, assigner, dict.fromkeys(FOUR, standbys))
    assert sorted(p for share in found.values() for p in share.owns) == list(FOUR)
    assert not set(found["a"].owns) & unable.cannot
    if standbys:
        # Another one is there to stand by for them, too.
        assert not set(found["a"].stands_by) & unable.cannot


def test_shares_stay_as_large_as_they_were() -> None:
    unable = Member("a", owns=dict.fromkeys(range(6), 1), cannot=frozenset({0, 1, 2}))
    found = given([unable, Member("b", owns=dict.fromkeys(range(6, 12), 1))], TWELVE)
    assert {0, 1, 2} <= set(found["b"].owns)
    assert len(found["a"].owns) == len(found["b"].owns) == 6
    # What has moved once stays where it is.
    after = [replace(each, cannot=unable.cannot) if each.name == "a" else each
             for each in again(found)]  # fmt: skip
    assert owners(given(after, TWELVE)) == owners(found)


def test_one_that_nobody_can_fire_all_of_has_an_owner_all_the_same() -> None:
    members = [Member(name, cannot=frozenset({0})) for name in "ab"]
    assert sorted(owners(given(members))) == list(FOUR)


def test_a_member_keeps_what_nobody_else_can_fire() -> None:
    able = Member("a", owns=dict.fromkeys(FOUR, 1))
    others = [Member("b", cannot=frozenset({0, 1})), Member("c", cannot=frozenset({0, 1}))]
    assert {0, 1} <= set(given([able, *others])["a"].owns)
