"""The members that an assignment is made of: weights, racks, and what each of them holds.

    12 partitions, weights 1, 1, 2      exact 3, 3, 6
    10 partitions, weights 1, 1, 1      exact 3.33 each; the tenth goes to the one that holds most

Everything here and in this room is a function of what members say, so each member could compute the
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

    `owns` are partitions that it owns, each with the epoch of its ownership: where two claim one,
    the higher epoch is right.  `warm` are those that it follows closely enough to be promoted.
    `cannot` are those that hold schedules which it cannot fire: others come first there.
    A member that is `leaving` gets nothing, even where all are, unless all that would stay are
    `unfit`: then those go on, for nobody is better off.  One of weight 0 owns nothing unless all
    have it, and stands by like the others.
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
    """What one member gets."""

    owns: list[int] = field(default_factory=list)
    stands_by: list[int] = field(default_factory=list)


def able(members: list[Member]) -> list[Member]:
    """Those that may be given something, in the order of their names.

        a fit, b unfit          a              a stops, b unfit        b
        a unfit, b unfit        a and b        a stops, b stops        nobody

    Both may call themselves unfit in one second, before either knows of the other.
    """
    staying = [member for member in members if not member.leaving]
    staying = staying or [member for member in members if member.unfit]
    return sorted(staying, key=lambda member: member.name)


def quotas(count: int, members: list[Member], held: Mapping[str, int]) -> dict[str, int]:
    """`count` divided by weight; the remainder goes where most is held already.

    By the largest remainder; of equal remainders the member that holds more comes first, so that a
    group which has not changed keeps what it has.  The sum is `count`.
    """
    # A group of spare workers only still has to own everything.
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
