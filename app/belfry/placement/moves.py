"""Moves of key groups to other partitions, so that no partition carries much more than the mean.

    weights of 4 partitions, mean 25, within 10 %: no more than 27.5 in each

    partition       0                   1      2      3
    before          60 (40, 12, 8)      20     10     10
    12 goes to 2    48                  20     22     10
    8 goes to 3     40                  20     22     18     40 is one group, and stays

Few groups move: a partition gives away only the load beyond the limit, and a group moves once at
most.  The most loaded partition gives first, to the least loaded one, by these rules:

1.  The smallest group that brings it to the limit, if the other one stays within the limit.
2.  Else the largest group with which the other one stays within the limit.
3.  Else the group after whose move the larger of the two loads is least, if it is less than before.

Where no rule helps, the partition stays beyond the limit: its load is one group, or cannot move. A
partition that is to be empty gives all of its groups away first, the heaviest before the others.

Weights are shares of the whole (`loads.py`).  The same weights give the same moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

_SLACK: Final = 1e-9


class Move(NamedTuple):
    """A key group that goes from one partition to another one; `weight` is its share."""

    group: int
    source: int
    target: int
    weight: float


class Weights(NamedTuple):
    """Each group's weight and partition, and the load of each partition that cannot move."""

    of_groups: Mapping[int, float]
    lies: Mapping[int, int]
    fixed: Mapping[int, float]

    def by_partition(self, partitions: int, moves: Iterable[Move] = ()) -> list[float]:
        """The load of each partition, after these moves.

        There are at least `partitions` numbers; more where loads lie in further partitions.
        """
        last = max((*self.lies.values(), *self.fixed), default=0)
        carried = [0.0] * max(partitions, last + 1)
        for partition, weight in self.fixed.items():
            carried[partition] += weight
        for group, weight in self.of_groups.items():
            carried[self.lies[group]] += weight
        for move in moves:
            carried[move.source] -= move.weight
            carried[move.target] += move.weight
        return carried

    def limit(self, partitions: int, within: float) -> float:
        """The most that each of so many partitions may carry: the mean, and `within` of it more."""
        whole = sum(self.of_groups.values()) + sum(self.fixed.values())
        # Sums of shares are not exact to the last bit.
        return (1 + within) * whole / partitions + _SLACK


def planned(weights: Weights, partitions: int, within: float) -> list[Move]:
    """The moves after which each of so many partitions carries at most the mean, and `within` more.

    `within` is a part of the mean, such as 0.1.  Groups in partitions of higher numbers leave them.
    """
    plan = _Plan(weights, partitions, within)
    plan.empty_the_rest()
    plan.relieve()
    return plan.moves


class _Plan:
    """A plan that is being made."""

    def __init__(self, weights: Weights, partitions: int, within: float) -> None:
        self.moves: list[Move] = []
        self._carried = weights.by_partition(partitions)
        self._targets = range(partitions)
        self._limit = weights.limit(partitions, within)
        # Groups that may still move, the lightest first.
        self._left: dict[int, list[tuple[float, int]]] = {}
        for group, weight in weights.of_groups.items():
            self._left.setdefault(weights.lies[group], []).append((weight, group))
        for groups in self._left.values():
            groups.sort()

    def empty_the_rest(self) -> None:
        """Let all groups leave the partitions that are to be empty."""
        leaving = [
            (weight, group, source)
            for source, groups in self._left.items()
            if source not in self._targets
            for weight, group in groups
        ]
        for weight, group, source in sorted(leaving, reverse=True):
            self._move((weight, group), source, self._least_loaded())

    def relieve(self) -> None:
        """Let partitions that are beyond the limit give groups away."""
        stuck = set[int]()
        while True:
            able = (each for each in self._targets if each not in stuck)
            source = max(able, key=lambda each: (self._carried[each], -each), default=None)
            if source is None or self._carried[source] <= self._limit:
                return
            target = self._least_loaded()
            chosen = self._choice(source, target)
            if chosen is None:
                stuck.add(source)
            else:
                self._move(chosen, source, target)

    def _least_loaded(self) -> int:
        return min(self._targets, key=lambda each: (self._carried[each], each))

    def _choice(self, source: int, target: int) -> tuple[float, int] | None:
        """The group that a partition gives away next, or None where no group would help."""
        given, taken = self._carried[source], self._carried[target]
        groups = [each for each in self._left.get(source, ()) if each[0] > 0]
        fitting = [each for each in groups if taken + each[0] <= self._limit]
        enough = [each for each in fitting if given - each[0] <= self._limit]
        if enough:
            return enough[0]
        if fitting:
            return fitting[-1]
        least = min(groups, key=lambda each: max(given - each[0], taken + each[0]), default=None)
        if least is None or taken + least[0] >= given - _SLACK:
            return None
        return least

    def _move(self, chosen: tuple[float, int], source: int, target: int) -> None:
        weight, group = chosen
        if source in self._targets:
            self._left[source].remove(chosen)
        self._carried[source] -= weight
        self._carried[target] += weight
        self.moves.append(Move(group, source, target, weight))
