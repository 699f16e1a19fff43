"""An estimate: the size of one need, and the terms that drive it.

It is the sum of its terms, or the largest of them, and keeps them, so that a plan shows which of
them would have to change:

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
    """One need: its size, its formula, and its terms.

    `formula` is text for people, with the names of the constants.  `terms` are the numbers that are
    added or compared, in the unit of the value.
    """

    name: str
    value: float
    unit: str
    formula: str
    terms: tuple[tuple[str, float], ...]

    def drivers(self) -> list[tuple[str, float]]:
        """Its terms as shares of their sum, the largest first.

        ``[("fires", 0.7), ("requests", 0.3)]``; terms of 0 are left out.
        """
        whole = sum(value for _, value in self.terms)
        shares = [(name, value / whole) for name, value in self.terms if value > 0]
        return sorted(shares, key=lambda each: -each[1])


def sum_of(name: str, unit: str, formula: str, *terms: tuple[str, float]) -> Estimate:
    """The terms added up."""
    return Estimate(name, sum(value for _, value in terms), unit, formula, terms)


def most_of(name: str, unit: str, formula: str, *terms: tuple[str, float]) -> Estimate:
    """The largest of the terms, rounded up to a whole number."""
    return Estimate(name, float(ceil(max(value for _, value in terms))), unit, formula, terms)
