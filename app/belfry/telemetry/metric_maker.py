"""How metrics are made: by their names, with the declarations of `families.py`.

A metric is made by its name alone.  Kind, meaning and labels come from its family, so that a worker
cannot show what is not declared, and what a family declares is what the library is told.

    make.counter("belfry_fired_total")
    make.outcomes("belfry_audit_events_total", "written", "lost")     both are 0 from the start
    make.lateness("belfry_fire_lateness_seconds")                     thousands of values at once

A counter that appears with its first value hides that value: Prometheus computes a rise from two
points of a series.  So where the values of a label are known, all of them are shown as 0 from the
start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from belfry.telemetry.collectors import BulkHistogram
from belfry.telemetry.families import BY_NAME

# A millisecond to ten minutes; longer waits show in the oldest due instant.
LATENESS_BOUNDS_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000),
)
_Kind = TypeVar("_Kind", Counter, Gauge, Histogram)


class MetricMaker:
    """Makes metrics in one registry; a name that the registry holds already is an error."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str) -> Counter:
        """A counter, with the labels of its family."""
        return self._made(Counter, name)

    def gauge(self, name: str) -> Gauge:
        """A gauge, with the labels of its family."""
        return self._made(Gauge, name)

    def histogram(self, name: str, bounds: Sequence[float]) -> Histogram:
        """A histogram of seconds, whose buckets end at these bounds."""
        return self._made(Histogram, name, buckets=bounds)

    def outcomes(self, name: str, *outcomes: str) -> Counter:
        """A counter by outcome, of which each is 0 from the start."""
        made = self.counter(name)
        for outcome in outcomes:
            made.labels(outcome)
        return made

    def lateness(self, name: str) -> BulkHistogram:
        """A histogram of how late events were, which takes a transaction's at once."""
        made = BulkHistogram(name, BY_NAME[name].meaning, LATENESS_BOUNDS_MS)
        self._registry.register(made)
        return made

    def _made(self, kind: type[_Kind], name: str, **options: Any) -> _Kind:
        family = BY_NAME[name]
        return kind(name, family.meaning, family.labels, registry=self._registry, **options)
