"""The group's record in Kafka grows with members and partitions, not with their product.

A broker refuses a record of more than a megabyte, and then nobody's assignment is stored: no worker
of such a group gets a partition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from belfry.balance.assignment import Assignment, read_answer
from belfry.balance.owners import even
from belfry.balance.roster import MemberStanding, Roster, read_roster
from belfry.group.assignor import assignor_of
from belfry.group.group import Group, Surroundings
from belfry.group.roster_client import roster_of

TOPIC = "belfry.schedules"
# What Kafka takes by default (`message.max.bytes`), and what it adds to each member: ids, host.
MOST_BYTES = 1_048_588
MEMBER_BYTES = 250


class Topics(NamedTuple):
    """As much of aiokafka's cluster metadata as an assignor asks for."""

    partitions: int

    def partitions_for_topic(self, _: str) -> set[int]:
        return set(range(self.partitions))


class Formed(NamedTuple):
    """What a rebalance leaves in the group's record: metadata and answer of each member."""

    workers: list[str]
    told: list[tuple[bytes, bytes]]

    @property
    def record(self) -> int:
        return sum(len(a) + len(b) + MEMBER_BYTES for a, b in self.told)

    @property
    def largest_answer(self) -> int:
        return max(len(answer) for _, answer in self.told)


def standing(number: int, **but: Any) -> MemberStanding:
    """A worker with names as long as those of a Kubernetes cluster."""
    name = f"belfry-worker-{number:04}"
    url = f"http://{name}.belfry.production.svc.cluster.local:8700"
    return MemberStanding(name, "1.10.0", url, 1, f"zone-{number % 3}", **but)


def formed(standings: list[MemberStanding], partitions: int) -> Formed:
    """A group that has been through two rebalances: all members say what they own and follow."""
    groups = {each.worker: Group(each) for each in standings}
    kinds = {name: assignor_of(group, even, partitions, 1) for name, group in groups.items()}
    leader = next(iter(kinds.values()))
    for _ in range(2):
        metadata = {name: kind.metadata([TOPIC]) for name, kind in kinds.items()}
        answers = leader.assign(Topics(partitions), metadata)
        for name, answer in answers.items():
            kinds[name].on_assignment(answer)
            _hold(groups[name], {tp.partition: 30_000 for tp in answer.partitions()})
    pairs = [(metadata[name].encode(), answers[name].encode()) for name in groups]
    return Formed(list(groups), pairs)


def _hold(group: Group, owns: dict[int, int]) -> None:
    """It says next time that it owns these, and is warm for those that it stands by for."""
    warm = group.assignment.stands_by
    group.connect(Surroundings(holdings=lambda: (owns, warm)))


@pytest.mark.parametrize("partitions", [256, 1_024])
@pytest.mark.parametrize("workers", [4, 64, 90, 300])
def test_kafka_takes_the_record_of_a_large_group(workers: int, partitions: int) -> None:
    found = formed([standing(n, heartbeats=True) for n in range(workers)], partitions)
    assert found.record < MOST_BYTES / 4
    # A constant, and some bytes for each partition that the member owns or stands by for.
    each = -(-partitions // workers)
    assert found.largest_answer < 400 + each * (4 + 8 + 80)


def test_a_members_answer_does_not_grow_with_the_others() -> None:
    """With as many partitions for each: four times the workers and partitions, the same answer."""
    small = formed([standing(n) for n in range(25)], 100)
    large = formed([standing(n) for n in range(100)], 400)
    assert large.largest_answer < 1.3 * small.largest_answer
    assert large.record < 1.3 * 4 * small.record


def test_each_member_learns_its_part_and_the_group_knows_all() -> None:
    found = formed([standing(n) for n in range(5)], 12)
    roster = roster_of(found.told)
    assert [seat.worker for seat in roster.seats] == found.workers
    assert sorted(p for seat in roster.seats for p in seat.owns) == list(range(12))
    assert roster.stood_by() == set(range(12))
    for seat in roster.seats:
        for partition in seat.stands_by:
            owner = roster.owner(partition)
            assert owner is not None
            assert owner.worker != seat.worker
    assert (
        roster.seats[0].http == "http://belfry-worker-0000.belfry.production.svc.cluster.local:8700"
    )


def test_a_member_of_format_1_is_told_the_whole_roster() -> None:
    """It knows nothing else; a group of such members was as large before."""
    old = standing(0, format=1)
    found = formed([old, *(standing(n, heartbeats=True) for n in range(1, 4))], 8)
    answers = dict(zip(found.workers, (_user_data(told) for _, told in found.told), strict=True))
    whole = read_roster(answers[old.worker])
    assert whole == roster_of(found.told)
    parts = {w: read_answer(told, w) for w, told in answers.items() if w != old.worker}
    assert all(roster is None for _, roster in parts.values())
    # Whom it stands by for commits often, and who stands by for it goes by its commits.
    listened = set(whole.seat(old.worker).stands_by)
    assert {p for part, _ in parts.values() for p in part.commits_for} == listened
    watched = [each for part, _ in parts.values() for each in part.watches]
    assert {each.heartbeat for each in watched if each.worker == old.worker} == {-1}
    assert all(each.heartbeat >= 0 for each in watched if each.worker != old.worker)


def test_a_leader_of_format_1_is_understood() -> None:
    """Its answer is the whole roster, and everybody goes by commits."""
    roster = roster_of(formed([standing(n, format=1) for n in range(3)], 6).told)
    mine = roster.seats[1]
    part, told = read_answer(roster.encode(), mine.worker)
    assert told == roster
    assert part.stands_by == mine.stands_by
    assert part.commits_for == mine.owns
    assert part.others
    for partition in part.stands_by:
        owner = part.owner(partition)
        assert owner is not None
        assert (owner.heartbeat, owner.owns, owner.ranks[partition]) == (-1, 2, 0)


@pytest.mark.parametrize("told", [b"", b"\0\xff", b"[]", b'{"seats": 3}', b'{"watches": 3}'])
def test_an_answer_that_cannot_be_read_is_an_empty_one(told: bytes) -> None:
    assert read_answer(told, "w")[0] == Assignment()


def test_a_roster_of_nobody_is_empty() -> None:
    assert roster_of([]) == Roster()


def _user_data(told: bytes) -> bytes:
    from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

    found: bytes = ConsumerProtocolMemberAssignment.decode(told).user_data
    return found
