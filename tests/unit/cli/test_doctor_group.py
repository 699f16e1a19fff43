"""What `belfry doctor` says of a group: each thing that is wrong has its line and its cure."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from belfry.cli.check import Check, Status
from belfry.cli.doctor_group import GroupFacts, GroupMember, judge, member_of

ONE = GroupMember("one", "10.0.0.1", (0, 1))
OTHER = GroupMember("other", "10.0.0.2", (2, 3))
LATELY: Mapping[int, float] = dict.fromkeys(range(4), 12.0)


def judged(
    *workers: GroupMember, state: str = "STABLE", silent_s: Mapping[int, float] = LATELY
) -> list[Check]:
    return list(judge(GroupFacts("belfry", state, workers, 4, silent_s)))


def test_who_owns_what() -> None:
    found = judged(ONE, OTHER)
    assert [check.detail for check in found] == [
        "one at 10.0.0.1 owns partitions 0, 1.",
        "other at 10.0.0.2 owns partitions 2, 3.",
    ]
    assert {check.status for check in found} == {Status.OK}


def test_a_group_without_members() -> None:
    (check,) = judged()
    assert (check.status, check.to_do) == (Status.SKIPPED, "start one: belfry worker")


def test_a_worker_alone_is_a_risk() -> None:
    check = judged(GroupMember("one", "h", (0, 1, 2, 3)))[-1]
    assert check.status is Status.RISK
    assert "second one" in check.to_do


def test_partitions_of_nobody() -> None:
    check = judged(ONE, GroupMember("other", "h", ()))[-1]
    assert check.status is Status.PROBLEM
    assert "Nobody owns partitions 2, 3" in check.detail


def test_an_owner_that_does_not_commit() -> None:
    check = judged(ONE, OTHER, silent_s={**LATELY, 3: 400.0})[-1]
    assert check.status is Status.PROBLEM
    assert "other owns partition 3" in check.detail
    assert "400 s ago" in check.detail


def test_a_group_that_is_being_shared_anew_is_not_judged_further() -> None:
    found = judged(GroupMember("one", "h", ()), state="PREPARING_REBALANCING")
    assert [check.status for check in found] == [Status.OK, Status.RISK]
    assert "preparing rebalancing" in found[-1].detail


def test_two_belfrys_with_one_app_id() -> None:
    found = judged(ONE, OTHER._replace(others=("shop.schedules",)))
    assert found[0].status is Status.PROBLEM
    assert "reads shop.schedules: two belfrys have one app id" in found[0].detail


def test_a_member_is_judged_by_the_topics_that_it_was_assigned() -> None:
    given = [SimpleNamespace(topic=each, partition=1) for each in ("a.schedules", "b.schedules")]
    member = SimpleNamespace(
        assignment=SimpleNamespace(topic_partitions=given), client_id="x@w", host="/h"
    )
    assert member_of(member, "a.schedules") == GroupMember("w", "h", (1,), ("b.schedules",))
