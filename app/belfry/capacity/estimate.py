"""An estimate: how much of one thing is needed, and what drives it.

It is a sum, or the largest, of terms, and keeps them, so that a plan shows what would have to
change:

    workers   3   the most of   cores 2.4   standbys 2        more cores a process, fewer workers
    memory    6   the sum of    workers 1   partitions 4   pending 1
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

MB: Final = 1e6
MIB: Final = 2.0**20
GB: Final = 1e9


@dataclass(frozen=True, slots=True)
class Estimate:
    """One thing that is needed: how much, by which formula, and of what that is made up.

    `formula` is text for people, in the names of the constants.  `terms` are what is added, or
    compared, in the unit of the value.
    """

    name: str
    value: float
    unit: str
    formula: str
    terms: tuple[tuple[str, float], ...]

    def drivers(self) -> list[tuple[str, float]]:
        """What drives it: its terms as shares of all of them, the largest first.

        ``[("fires", 0.7), ("requests", 0.3)]``; terms of nothing are left out.
        """
        whole = sum(value for _, value in self.terms)
        shares = [(name, value / whole) for name, value in self.terms if value > 0]
        return sorted(shares, key=lambda each: -each[1])


def sum_of(name: str, unit: str, formula: str, *terms: tuple[str, float]) -> Estimate:
    """The terms added up."""
    return Estimate(name, sum(value for _, value in terms), unit, formula, terms)


def most_of(name: str, unit: str, formula: str, *terms: tuple[str, float]) -> Estimate:
    """The largest of the terms, rounded up: what is counted comes in whole pieces."""
    return Estimate(name, float(ceil(max(value for _, value in terms))), unit, formula, terms)
