"""The group's assignor: what the leader is told becomes shares, and each gets its own part."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from belfry.balance.assignment_map import MemberMetadata
from belfry.balance.owners import even
from belfry.group.assignment_map_client import assignment_map_of
from belfry.group.assignor import assignor_of
from belfry.group.group import Group, Surroundings
from belfry.group.membership import membership_app
from belfry.placement.partition_count import PartitionCount
from belfry.settings import Settings

TOPIC = "belfry.schedules"


class Topics:
    """As much of aiokafka's cluster metadata as an assignor asks for."""

    def partitions_for_topic(self, topic: str) -> set[int]:
        assert topic == TOPIC
        return set(range(6))


def shared(groups: dict[str, Group]) -> dict[str, list[int]]:
    """A rebalance of these members; the first of them leads."""
    kinds = {
        member: assignor_of(group, even, PartitionCount(4), 1) for member, group in groups.items()
    }
    told: dict[str, Any] = {member: kind.metadata([TOPIC]) for member, kind in kinds.items()}
    leader = next(iter(kinds.values()))
    found = leader.assign(Topics(), told)
    for member, assignment in found.items():
        kinds[member].on_assignment(assignment)
        pairs = [(told[m].encode(), found[m].encode()) for m in found]
        groups[member].met(assignment_map_of(pairs))
    return {m: [tp.partition for tp in a.partitions()] for m, a in found.items()}


def test_two_workers_know_of_each_other() -> None:
    one, other = Group(MemberMetadata("one")), Group(MemberMetadata("other"))
    found = shared({"m1": one, "m2": other})
    assert sorted(found["m1"] + found["m2"]) == list(range(6))
    assert one.assignment_map == other.assignment_map
    assert set(one.assignment_map.entry("one").owns) == set(found["m1"])
    assert not one.alone


def test_what_was_added_to_the_input_has_no_standby() -> None:
    one, other = Group(MemberMetadata("one")), Group(MemberMetadata("other"))
    shared({"m1": one, "m2": other})
    assert one.assignment_map.stood_by() == {0, 1, 2, 3}
    assert {*one.assignment.stands_by, *other.assignment.stands_by} == {0, 1, 2, 3}


def test_what_is_held_stays() -> None:
    one, other = Group(MemberMetadata("one")), Group(MemberMetadata("other"))
    one.connect(Surroundings(holdings=lambda: ({5: 1, 4: 1, 3: 1}, ())))
    other.connect(Surroundings(holdings=lambda: ({0: 1, 1: 1, 2: 1}, ())))
    assert shared({"m1": one, "m2": other}) == {"m1": [3, 4, 5], "m2": [0, 1, 2]}


def test_a_dead_member_of_the_same_name_is_another_one() -> None:
    """A worker that was killed and is back before its session is over."""
    dead, back = Group(MemberMetadata("same")), Group(MemberMetadata("same"))
    found = shared({"m1": dead, "m2": back})
    assert len(found["m1"]) == len(found["m2"]) == 3


def test_who_leaves_gets_nothing_and_asks_for_a_rebalance() -> None:
    one, other = Group(MemberMetadata("one")), Group(MemberMetadata("other"))
    asked: list[bool] = []
    one.connect(Surroundings(rejoin=lambda: asked.append(one.leaving)))
    one.leave()
    assert asked == [True]
    assert shared({"m1": one, "m2": other})["m1"] == []
    assert other.alone


def test_two_that_call_themselves_unfit_at_once_keep_their_partitions() -> None:
    one, other = Group(MemberMetadata("one")), Group(MemberMetadata("other"))
    before = shared({"m1": one, "m2": other})
    one.connect(Surroundings(holdings=lambda: (dict.fromkeys(before["m1"], 1), ())))
    other.connect(Surroundings(holdings=lambda: (dict.fromkeys(before["m2"], 1), ())))
    one.leave(unfit=True)
    other.leave(unfit=True)
    assert shared({"m1": one, "m2": other}) == before
    other.leave(leaving=False)
    assert shared({"m1": one, "m2": other}) == {"m1": [], "m2": [*range(6)]}


def test_an_unfit_worker_that_stops_hands_its_partitions_on_to_another_unfit_one() -> None:
    one, other = Group(MemberMetadata("one")), Group(MemberMetadata("other"))
    one.leave(unfit=True)
    other.leave(unfit=True)
    shared({"m1": one, "m2": other})
    assert not one.alone
    one.leave()
    assert shared({"m1": one, "m2": other}) == {"m1": [], "m2": [*range(6)]}
    assert not one.alone
    assert other.alone


def test_a_worker_offers_one_assignor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """aiokafka joins once for each of them, and each join is a rebalance for everybody."""
    monkeypatch.setenv("BELFRY_DATA_DIR", str(tmp_path))

    async def made() -> int:
        app = membership_app(Settings(), Group(MemberMetadata("one")), PartitionCount(4))
        return len(app.assignors)

    assert asyncio.run(made()) == 1
