"""The group's assignor: belfry's choice of owners and standbys in aiokafka's clothes.

Whichever worker leads the group computes the shares of all (`belfry.balance`) from what each said
when it joined, and sends each of them its own part.  Members of format 1 get the whole roster, as
they expect.  aiokafka wants a class with class methods, so each worker makes one that knows its
group.
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
from belfry.balance.members import Share
from belfry.balance.owners import Assigner
from belfry.balance.roster import MemberStanding, Roster, read_standing, seat_of
from belfry.balance.shares import shares
from belfry.group.group import Group

NAME: Final = "belfry"
VERSION: Final = 0


def assignor_of(
    group: Group, assigner: Assigner, homes: int, standbys: int
) -> type[AbstractPartitionAssignor]:
    """A class for aiokafka: `homes` partitions keep state, and each should have `standbys`."""

    class BelfryAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # untyped
        """Owners by `assigner`, standbys beside them."""

        name = NAME

        @classmethod
        def assign(
            cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
        ) -> dict[str, ConsumerProtocolMemberAssignment]:
            """What each member gets; only the leader is asked."""
            topics = sorted({topic for m in members.values() for topic in m.subscription})
            topic = topics[0]
            partitions = sorted(cluster.partitions_for_topic(topic) or ())
            standings = _by_name({m: read_standing(d.user_data, m) for m, d in members.items()})
            found = shares(
                partitions,
                [standing.member(name) for name, (_, standing) in standings.items()],
                assigner,
                {p: standbys for p in partitions if p < homes},
            )
            told = _told({name: each for name, (_, each) in standings.items()}, found)
            return {
                member: ConsumerProtocolMemberAssignment(
                    VERSION, [(topic, found[name].owns)], told[name]
                )
                for name, (member, _) in standings.items()
            }

        @classmethod
        def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
            """What this member says when it joins."""
            return ConsumerProtocolMemberMetadata(VERSION, list(topics), group.standing().encode())

        @classmethod
        def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
            """The leader has answered."""
            group.seated(assignment.user_data)

    return BelfryAssignor


def _by_name(standings: Mapping[str, MemberStanding]) -> dict[str, tuple[str, MemberStanding]]:
    """Member and standing by the worker's name, or by the member's where a name is not its own.

    Names are what `hash` goes by, so they are the workers'.  After a crash the group may hold a
    dead member of the same name for a session.
    """
    times = Counter(standing.worker for standing in standings.values())
    return {
        (standing.worker if times[standing.worker] == 1 else member): (member, standing)
        for member, standing in standings.items()
    }


def _told(standings: Mapping[str, MemberStanding], found: Mapping[str, Share]) -> dict[str, bytes]:
    """What each member is told, in the format that it reads."""
    parts = own_parts(standings, found)
    told = {name: parts[name].encode() for name, s in standings.items() if reads_own_part(s)}
    if len(told) < len(standings):
        whole = _roster(standings, found).encode()
        told |= dict.fromkeys(standings.keys() - told.keys(), whole)
    return told


def _roster(standings: Mapping[str, MemberStanding], found: Mapping[str, Share]) -> Roster:
    return Roster(
        tuple(
            seat_of(standing, found[name].owns, found[name].stands_by)
            for name, standing in standings.items()
        )
    )
