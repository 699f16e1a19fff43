"""The whole assignment: owners by an assigner, then standbys beside them.

    partition   owner   standbys          a and b in rack r1, c in rack r2
    0           a       c                 another rack comes first
    1           b       c
    2           c       a                 then a warm one, then the one with the most room

A partition never has its owner as a standby, and it has at most as many as there are other members.
The order of standbys is the order in which they may take over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from belfry.balance.members import NO_RACK, Member, Share, able, quotas
from belfry.balance.owners import Assigner


def shares(
    partitions: Sequence[int],
    members: Sequence[Member],
    assigner: Assigner,
    standbys: Mapping[int, int],
) -> dict[str, Share]:
    """The share of each member; `standbys` is how many each partition should have, 0 if absent."""
    found = {member.name: Share() for member in members}
    staying = able(list(members))
    if not staying:
        return found
    owners = assigner(partitions, staying)
    _give_to_able(owners, staying)
    for partition in partitions:
        found[owners[partition]].owns.append(partition)
    most = min(max(standbys.values(), default=0), len(staying) - 1)
    wanted = {p: min(count, most) for p, count in standbys.items() if p in owners}
    held = {m.name: sum(1 for p in wanted if m.holds(p)) for m in staying}
    room = quotas(sum(wanted.values()), [_unweighted(m) for m in staying], held)
    for number in range(most):
        for partition in (p for p in partitions if wanted.get(p, 0) > number):
            best = _standby(partition, owners[partition], staying, found, room)
            found[best].stands_by.append(partition)
            room[best] -= 1
    return found


def _give_to_able(owners: dict[int, str], members: Sequence[Member]) -> None:
    """Give a partition that its owner could not fully fire to a member that can, if there is one.

    The owner gets another partition in exchange, so that shares keep their sizes.
    """
    by_name = {member.name: member for member in members}
    for partition in sorted(owners):
        owner = by_name[owners[partition]]
        able_ones = [member for member in members if partition not in member.cannot]
        if partition not in owner.cannot or not able_ones:
            continue
        counts = Counter(owners.values())
        best = min(able_ones, key=lambda m: (not m.holds(partition), counts[m.name], m.name))
        back = [
            other
            for other, name in owners.items()
            if name == best.name and other not in owner.cannot
        ]
        owners[partition] = best.name
        if back and counts[best.name] >= counts[owner.name]:
            owners[min(back, key=lambda p: (p in best.owns, p))] = owner.name


def _unweighted(member: Member) -> Member:
    """The member with weight 1: standbys cost each worker the same, also a spare one (weight 0)."""
    return Member(member.name)


def _standby(
    partition: int,
    owner: str,
    members: Sequence[Member],
    found: Mapping[str, Share],
    room: Mapping[str, int],
) -> str:
    """The best standby: it can fire all, is in another rack, has room, is warm, has most room."""
    rack = next(m.rack for m in members if m.name == owner)
    free = (m for m in members if m.name != owner and partition not in found[m.name].stands_by)

    def rank(member: Member) -> tuple[bool, bool, bool, bool, int, str]:
        unable = partition in member.cannot
        beside = rack != NO_RACK and member.rack == rack
        left = room[member.name]
        return unable, beside, left <= 0, not member.holds(partition), -left, member.name

    return min(free, key=rank).name
