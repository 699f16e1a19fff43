"""Two ways to choose owners, behind one interface: `even` (the default) and `hashed`.

`even` gives each member as many partitions as its weight says, and moves only those that must move:
a member keeps its partitions up to its quota, and free partitions go to warm members.  `hashed`
depends on names and weights alone, so that any program can compute an owner without asking.

    a owns 0-7; b joins, warm for 2 and 5      even: quota 4 each; b takes 2, 5 and two others
    c joins afterwards                          even: quotas 3, 3, 2: two of 8 move

`hashed` is weighted rendezvous hashing (Thaler and Ravishankar, *Using name-based mappings to
increase hit rates*, 1998): when a member goes, only its own partitions move.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from math import log
from typing import Final, Protocol

from belfry.balance.members import Member, quotas


class Assigner(Protocol):
    """Chooses an owner for each partition."""

    def __call__(self, partitions: Sequence[int], members: Sequence[Member]) -> dict[int, str]:
        """Owner of each partition; `members` are able, sorted by name and at least one."""


def even(partitions: Sequence[int], members: Sequence[Member]) -> dict[int, str]:
    """Give each member as many partitions as its weight says.

    Members keep their partitions; a free one goes to a member that is warm for it, if there is one.

    It costs partitions times members; names break ties, so the result is unique.
    """
    present = _present_owners(partitions, members)
    held = {m.name: sum(1 for name in present.values() if name == m.name) for m in members}
    room = quotas(len(partitions), list(members), held)
    owners: dict[int, str] = {}
    for member in members:
        mine = [p for p in partitions if present.get(p) == member.name]
        for partition in _kept(mine, room[member.name], members, member):
            owners[partition] = member.name
            room[member.name] -= 1
    free = [p for p in partitions if p not in owners]
    # A partition that few members are warm for chooses first.  One without a warm member comes
    # last: it is cold wherever it goes, and would take the room of a member that is warm for
    # another one.
    warm = {p: sum(m.holds(p) for m in members) for p in free}
    free.sort(key=lambda p: (not warm[p], warm[p], p))
    for partition in free:
        best = min(
            (m for m in members if room[m.name] > 0),
            key=lambda m: (not m.holds(partition), -room[m.name], m.name),
        )
        owners[partition] = best.name
        room[best.name] -= 1
    return owners


def _present_owners(partitions: Sequence[int], members: Sequence[Member]) -> dict[int, str]:
    """The present owner of each partition: of several claims, the one with the highest epoch."""
    found: dict[int, tuple[int, str]] = {}
    for member in members:
        for partition, epoch in member.owns.items():
            if partition not in found or epoch > found[partition][0]:
                found[partition] = epoch, member.name
    return {p: found[p][1] for p in partitions if p in found}


def _kept(mine: list[int], quota: int, members: Sequence[Member], member: Member) -> Sequence[int]:
    """The partitions that a member keeps: first those that others cannot fire, or do not follow."""

    def others_warm(partition: int) -> int:
        return sum(m.holds(partition) for m in members if m is not member)

    def others_cannot(partition: int) -> int:
        return sum(partition in m.cannot for m in members)

    def rank(partition: int) -> tuple[bool, int, int, int]:
        return (
            partition in member.cannot,
            -others_cannot(partition),
            others_warm(partition),
            partition,
        )

    return sorted(mine, key=rank)[:quota]


def hashed(partitions: Sequence[int], members: Sequence[Member]) -> dict[int, str]:
    """Rendezvous hashing: each partition to the member with the highest score for it."""
    bearing = [m for m in members if m.weight] or list(members)
    return {
        partition: max(bearing, key=lambda m: (_score(partition, m), m.name)).name
        for partition in partitions
    }


def _score(partition: int, member: Member) -> float:
    """Higher with more weight: -weight / ln(u), u uniform in (0, 1) by hash."""
    digest = blake2b(f"{partition}/{member.name}".encode(), digest_size=8).digest()
    uniform = (int.from_bytes(digest, "big") + 1) / (2**64 + 2)
    return -max(member.weight, 1) / log(uniform)


ASSIGNERS: Final[dict[str, Assigner]] = {"even": even, "hash": hashed}
