"""The assignment map, asked of the broker that keeps the group.

DescribeGroups tells a member's metadata and assignment for each member of a group at rest.  Both
are belfry's own bytes, so together they are the map. Each member of the group has the right to ask,
the answer does not depend on the leader's life, and a rebalance costs one such request; nothing is
written.

The request takes a connection of its own: the group's connection may wait in a JoinGroup for as
long as a rebalance lasts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import structlog
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from aiokafka.protocol.admin import DescribeGroupsRequest

from belfry.balance.assignment import read_answer
from belfry.balance.assignment_map import (
    AssignedMember,
    AssignmentMap,
    assigned_member_of,
    read_metadata,
)
from belfry.group.group import Group
from belfry.host.errors import named

STABLE: Final = "Stable"
RETRY_S: Final = 0.5
# A static member that comes back changes its address without a rebalance.
ASK_EVERY_S: Final = 30.0

log = structlog.get_logger(__name__)


async def follow_assignment_map(consumer: Any, group: Group) -> None:
    """Keep the map of `group` up to date, until cancelled; one task for each assignment."""
    said = ""
    while True:
        try:
            assignment_map = await _asked(consumer)
        except Exception as error:  # noqa: BLE001  # the last map is kept, and asked for again
            assignment_map, problem = None, named(error)
            if problem != said:
                log.warning("the group does not name its members; asking again", reason=problem)
            said = problem
        if assignment_map is not None:
            group.met(assignment_map)
        await asyncio.sleep(RETRY_S if assignment_map is None else ASK_EVERY_S)


async def _asked(consumer: Any) -> AssignmentMap | None:
    """The members of the group; None if it is not at rest, since it is about to assign anew."""
    coordinator, client = consumer._coordinator, consumer._client  # noqa: SLF001  # no other way
    node = coordinator.coordinator_id
    if node is None:
        return None
    answer = await client.send(node, DescribeGroupsRequest([coordinator.group_id]))
    error, _, state, _, _, members = answer.groups[0][:6]
    if error:
        raise ConnectionError(f"DescribeGroups was answered with error code {error}")
    if state != STABLE:
        return None
    return assignment_map_of((row[-2], row[-1]) for row in members)


def assignment_map_of(members: Iterable[tuple[bytes, bytes]]) -> AssignmentMap:
    """The map that members' metadata and assignments make, sorted by the workers' names."""
    entries = [_entry(*told) for told in members]
    return AssignmentMap(tuple(sorted(entries, key=lambda entry: (entry.worker, entry.owns))))


def _entry(metadata: bytes, assigned: bytes) -> AssignedMember:
    member_metadata = read_metadata(ConsumerProtocolMemberMetadata.decode(metadata).user_data, "")
    if not assigned:
        return assigned_member_of(member_metadata, (), ())
    told = ConsumerProtocolMemberAssignment.decode(assigned)
    mine, _ = read_answer(told.user_data, member_metadata.worker)
    return assigned_member_of(
        member_metadata, sorted(tp.partition for tp in told.partitions()), mine.stands_by
    )
