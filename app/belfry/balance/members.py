"""The members of an assignment: their weights, their racks, and the partitions that each holds.

    12 partitions, weights 1, 1, 2      exact 3, 3, 6
    10 partitions, weights 1, 1, 1      exact 3.33 each; the tenth goes to the one that holds most

All functions of this room depend only on the members' statements, so each member could compute the
leader's answer, and tests do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

NO_RACK: Final = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A worker as the group's leader sees it.

    `owns` are partitions that it owns, each with the epoch of its ownership: where two members
    claim one, the higher epoch is right.  `warm` are partitions that it follows closely enough to
    be promoted. `cannot` are partitions with schedules that it cannot fire: other members come
    first there.  A member that is `leaving` gets no partition, even where all members leave.  Only
    where all of them leave and some are `unfit`, these go on, because there is no better member.  A
    member of weight 0 owns no partition unless all have weight 0, and stands by like the others.
    """

    name: str
    weight: int = 1
    rack: str = NO_RACK
    leaving: bool = False
    owns: Mapping[int, int] = field(default_factory=dict)
    warm: frozenset[int] = frozenset()
    cannot: frozenset[int] = frozenset()
    unfit: bool = False

    def holds(self, partition: int) -> bool:
        """Whether it could go on with a partition without reading all of its changelog."""
        return partition in self.owns or partition in self.warm


@dataclass(slots=True)
class Share:
    """The partitions of one member."""

    owns: list[int] = field(default_factory=list)
    stands_by: list[int] = field(default_factory=list)


def able(members: list[Member]) -> list[Member]:
    """The members that may get partitions, in the order of their names.

        a fit, b unfit          a              a stops, b unfit        b
        a unfit, b unfit        a and b        a stops, b stops        none

    Two members may both declare themselves unfit in one second, before either knows of the other.
    """
    staying = [member for member in members if not member.leaving]
    staying = staying or [member for member in members if member.unfit]
    return sorted(staying, key=lambda member: member.name)


def quotas(count: int, members: list[Member], held: Mapping[str, int]) -> dict[str, int]:
    """`count` divided by weight; the remainder goes to members that hold most already.

    The largest remainder comes first; with equal remainders the member that holds more comes first,
    so that a group that has not changed keeps its partitions.  The sum is `count`.
    """
    # A group with only spare workers still has to own all partitions.
    weights = {m.name: m.weight for m in members}
    if not any(weights.values()):
        weights = dict.fromkeys(weights, 1)
    total = sum(weights.values())
    exact = {name: count * weight / total for name, weight in weights.items()}
    found = {name: int(share) for name, share in exact.items()}
    left = count - sum(found.values())
    eager = sorted(
        (name for name in exact if weights[name]),
        key=lambda n: (-(exact[n] - found[n]), -held.get(n, 0), n),
    )
    for name in eager[:left]:
        found[name] += 1
    return found
