"""The group's assignor: belfry's choice of owners and standbys, as a class for aiokafka.

The worker that leads the group computes the shares of all (`belfry.balance`) from the metadata of
their joins, and sends each of them its own part. Members of format 1 get the whole map, as they
expect.  aiokafka wants a class with class methods, so each worker makes one that knows its group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

from belfry.balance.assignment import own_parts, reads_own_part
from belfry.balance.assignment_map import (
    AssignmentMap,
    MemberMetadata,
    assigned_member_of,
    read_metadata,
)
from belfry.balance.members import Share
from belfry.balance.owners import Assigner
from belfry.balance.shares import shares
from belfry.group.group import Group
from belfry.placement.partition_count import PartitionCount

NAME: Final = "belfry"
VERSION: Final = 0


def assignor_of(
    group: Group, assigner: Assigner, counted: PartitionCount, standbys: int
) -> type[AbstractPartitionAssignor]:
    """A class for aiokafka: each partition that holds schedules should have `standbys`."""

    class BelfryAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # untyped
        """Owners by `assigner`, standbys beside them."""

        name = NAME

        @classmethod
        def assign(
            cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
        ) -> dict[str, ConsumerProtocolMemberAssignment]:
            """The answer to each member; only the leader calls this."""
            topics = sorted({topic for m in members.values() for topic in m.subscription})
            topic = topics[0]
            partitions = sorted(cluster.partitions_for_topic(topic) or ())
            metadata_of = _by_name({m: read_metadata(d.user_data, m) for m, d in members.items()})
            found = shares(
                partitions,
                [
                    member_metadata.member(name)
                    for name, (_, member_metadata) in metadata_of.items()
                ],
                assigner,
                {p: standbys for p in partitions if counted.holds(p)},
            )
            told = _told({name: each for name, (_, each) in metadata_of.items()}, found)
            return {
                member: ConsumerProtocolMemberAssignment(
                    VERSION, [(topic, found[name].owns)], told[name]
                )
                for name, (member, _) in metadata_of.items()
            }

        @classmethod
        def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
            """This member's metadata, when it joins."""
            return ConsumerProtocolMemberMetadata(
                VERSION, list(topics), group.member_metadata().encode()
            )

        @classmethod
        def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
            """Take in the leader's answer."""
            group.seated(assignment.user_data)

    return BelfryAssignor


def _by_name(metadata_of: Mapping[str, MemberMetadata]) -> dict[str, tuple[str, MemberMetadata]]:
    """Member and metadata by the worker's name, or by the member's if the name is not unique.

    `hash` goes by names, so they are the workers'. After a crash the group may hold a dead member
    of the same name for a session.
    """
    times = Counter(member_metadata.worker for member_metadata in metadata_of.values())
    return {
        (member_metadata.worker if times[member_metadata.worker] == 1 else member): (
            member,
            member_metadata,
        )
        for member, member_metadata in metadata_of.items()
    }


def _told(
    metadata_of: Mapping[str, MemberMetadata], found: Mapping[str, Share]
) -> dict[str, bytes]:
    """The answer to each member, in the format that it reads."""
    parts = own_parts(metadata_of, found)
    told = {name: parts[name].encode() for name, s in metadata_of.items() if reads_own_part(s)}
    if len(told) < len(metadata_of):
        whole = _assignment_map(metadata_of, found).encode()
        told |= dict.fromkeys(metadata_of.keys() - told.keys(), whole)
    return told


def _assignment_map(
    metadata_of: Mapping[str, MemberMetadata], found: Mapping[str, Share]
) -> AssignmentMap:
    return AssignmentMap(
        tuple(
            assigned_member_of(member_metadata, found[name].owns, found[name].stands_by)
            for name, member_metadata in metadata_of.items()
        )
    )
