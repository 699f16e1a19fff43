"""The demand: the load of a cluster, for which a plan is made.

A demand is nine numbers that an operator knows or guesses.  Two ranges judge each of them:

    least ─────────── reached ─────────────────────────── most
      │  a run had it    │  a guess, and the plan says so   │  refused: a slip of a unit

`check` refuses a demand that is out of bounds, and `beyond` names those that no run has reached.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite
from typing import Final

HOUR_S: Final = 3_600.0
# The least and the most of each demand.
BOUNDS: Final = {
    "pending": (0.0, 1e13),
    "fires_per_second": (0.0, 1e9),
    "requests_per_second": (0.0, 1e9),
    "payload": (0.0, 1e6),
    "tenants": (1.0, 1e8),
    "replicas": (1.0, 16.0),
    "standbys": (0.0, 8.0),
    "retention_hours": (0.0, 1e5),
    "consumers": (0.0, 1e3),
}
# The most that a run of docs/performance.md has reached.
REACHED: Final = {
    "pending": 1e7,
    "fires_per_second": 1e5,
    "requests_per_second": 1e5,
    "payload": 1e4,
    "tenants": 1e4,
    "replicas": 1.0,
    "standbys": 1.0,
}


class BadDemand(ValueError):
    """A demand that no plan can be made for.

    The message quotes the number, and says which bounds it has.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The load of a cluster; `retention_hours` is that of requests and fired events.

    `pending` schedules wait at a time; rates are those of the busiest time, not of an average day.
    `payload` is the size of an event's payload in bytes, `tenants` the number of output topics,
    `consumers` the number of readers of each fired event.  `replicas` are those of every topic,
    `standbys` those of every partition.
    """

    pending: float
    fires_per_second: float
    requests_per_second: float
    payload: float = 400.0
    tenants: float = 100.0
    replicas: float = 3.0
    standbys: float = 1.0
    retention_hours: float = 168.0
    consumers: float = 1.0

    def check(self) -> None:
        """Raise `BadDemand` for a number that is out of its bounds.

        The bounds are wider than any cluster so far.  They prevent that a wrong unit, or a NaN,
        gives a plan that looks right.
        """
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            if not (isfinite(value) and least <= value <= most):
                raise BadDemand(f"{name} is {value:g}; {least:g} to {most:g} is allowed.")

    def fires_within(self, hours: float) -> float:
        """How many events fire within so many hours; each leaves a marker for a day."""
        return self.fires_per_second * HOUR_S * hours

    def beyond(self) -> list[str]:
        """The demands that no measured run has reached; there a plan is a guess, and says so."""
        return [
            each.name
            for each in fields(self)
            if each.name in REACHED and getattr(self, each.name) > REACHED[each.name]
        ]
