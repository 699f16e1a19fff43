"""The group's record in Kafka grows with members and partitions, not with their product.

A broker refuses a record of more than a megabyte, and then nobody's assignment is stored: no worker
of such a group gets a partition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from belfry.balance.assignment import Assignment, read_answer
from belfry.balance.assignment_map import AssignmentMap, MemberMetadata, read_assignment_map
from belfry.balance.owners import even
from belfry.group.assignment_map_client import assignment_map_of
from belfry.group.assignor import assignor_of
from belfry.group.group import Group, Surroundings
from belfry.placement.partition_count import PartitionCount

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


def member_metadata(number: int, **but: Any) -> MemberMetadata:
    """A worker with names as long as those of a Kubernetes cluster."""
    name = f"belfry-worker-{number:04}"
    url = f"http://{name}.belfry.production.svc.cluster.local:8700"
    return MemberMetadata(name, "1.10.0", url, 1, f"zone-{number % 3}", **but)


def formed(metadata_of: list[MemberMetadata], partitions: int) -> Formed:
    """A group that has been through two rebalances: all members say what they own and follow."""
    groups = {each.worker: Group(each) for each in metadata_of}
    kinds = {
        name: assignor_of(group, even, PartitionCount(partitions), 1)
        for name, group in groups.items()
    }
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
    found = formed([member_metadata(n, heartbeats=True) for n in range(workers)], partitions)
    assert found.record < MOST_BYTES / 4
    # A constant, and some bytes for each partition that the member owns or stands by for.
    each = -(-partitions // workers)
    assert found.largest_answer < 400 + each * (4 + 8 + 80)


def test_a_members_answer_does_not_grow_with_the_others() -> None:
    """With as many partitions for each: four times the workers and partitions, the same answer."""
    small = formed([member_metadata(n) for n in range(25)], 100)
    large = formed([member_metadata(n) for n in range(100)], 400)
    assert large.largest_answer < 1.3 * small.largest_answer
    assert large.record < 1.3 * 4 * small.record


def test_each_member_learns_its_part_and_the_group_knows_all() -> None:
    found = formed([member_metadata(n) for n in range(5)], 12)
    assignment_map = assignment_map_of(found.told)
    assert [entry.worker for entry in assignment_map.entries] == found.workers
    assert sorted(p for entry in assignment_map.entries for p in entry.owns) == list(range(12))
    assert assignment_map.stood_by() == set(range(12))
    for entry in assignment_map.entries:
        for partition in entry.stands_by:
            owner = assignment_map.owner(partition)
            assert owner is not None
            assert owner.worker != entry.worker
    assert (
        assignment_map.entries[0].http
        == "http://belfry-worker-0000.belfry.production.svc.cluster.local:8700"
    )


def test_a_member_of_format_1_is_told_the_whole_map() -> None:
    """It knows nothing else; a group of such members was as large before."""
    old = member_metadata(0, format=1)
    found = formed([old, *(member_metadata(n, heartbeats=True) for n in range(1, 4))], 8)
    answers = dict(zip(found.workers, (_user_data(told) for _, told in found.told), strict=True))
    whole = read_assignment_map(answers[old.worker])
    assert whole == assignment_map_of(found.told)
    parts = {w: read_answer(told, w) for w, told in answers.items() if w != old.worker}
    assert all(assignment_map is None for _, assignment_map in parts.values())
    # Whom it stands by for commits often, and who stands by for it goes by its commits.
    listened = set(whole.entry(old.worker).stands_by)
    assert {p for part, _ in parts.values() for p in part.commits_for} == listened
    watched = [each for part, _ in parts.values() for each in part.watches]
    assert {each.heartbeat for each in watched if each.worker == old.worker} == {-1}
    assert all(each.heartbeat >= 0 for each in watched if each.worker != old.worker)


def test_a_leader_of_format_1_is_understood() -> None:
    """Its answer is the whole assignment map, and everybody goes by commits."""
    assignment_map = assignment_map_of(
        formed([member_metadata(n, format=1) for n in range(3)], 6).told
    )
    mine = assignment_map.entries[1]
    part, told = read_answer(assignment_map.encode(), mine.worker)
    assert told == assignment_map
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


def test_a_map_of_nobody_is_empty() -> None:
    assert assignment_map_of([]) == AssignmentMap()


def _user_data(told: bytes) -> bytes:
    from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

    found: bytes = ConsumerProtocolMemberAssignment.decode(told).user_data
    return found
