"""Collectors of belfry's own, where those of the metrics library are too slow or keep old series.

**`KeyMetrics`** is made anew at each look from what the list of API keys holds then.  A key that
leaves the list leaves the metrics.  A key is told by the beginning of its digest: no name, no
tenant, and nothing that opens anything.

**`BulkHistogram`** takes thousands of values at once.  `prometheus_client.Histogram.observe` costs
2 µs a value, so 5 ms for the 2 500 of a firing transaction; here they cost 0.1-0.3 ms.  Values of
one transaction come nearly sorted (they were due in order and fire together), so sorting them is
cheap, and one search per bucket counts them all.  Its counts are cumulative, as Prometheus shows
them: bucket *i* counts the values that are at most its bound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector


class KeyFigures(NamedTuple):
    """One key at one moment; instants in epoch seconds, None for never."""

    id: str
    state: str
    expires_s: float | None
    last_use_s: float | None
    uses: int


class KeyMetrics(Collector):
    """Shows what `figures` tells; nothing before it is set."""

    def __init__(self, meanings: Mapping[str, str], states: Iterable[str]) -> None:
        """`meanings` of the metrics by name, and the states that a key may have."""
        self._meanings = meanings
        self._states = tuple(states)
        self.figures: Callable[[], list[KeyFigures]] = list

    def describe(self) -> Iterable[Metric]:
        """The families without values, by which a registry finds clashing names."""
        return self._families()

    def collect(self) -> Iterable[Metric]:
        """The families with what the list holds now."""
        keys, expires, last, uses = found = self._families()
        figures = self.figures()
        for state in self._states:
            keys.add_metric([state], sum(each.state == state for each in figures))
        for each in figures:
            if each.expires_s is not None:
                expires.add_metric([each.id], each.expires_s)
            if each.last_use_s is not None:
                last.add_metric([each.id], each.last_use_s)
            uses.add_metric([each.id], each.uses)
        return found

    def _families(
        self,
    ) -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily, CounterMetricFamily]:
        told = self._meanings
        return (
            _gauge("belfry_api_keys", told, "state"),
            _gauge("belfry_api_key_expiry_timestamp_seconds", told, "key"),
            _gauge("belfry_api_key_last_use_timestamp_seconds", told, "key"),
            CounterMetricFamily(
                "belfry_api_key_uses_total", told["belfry_api_key_uses_total"], labels=["key"]
            ),
        )


def _gauge(name: str, meanings: Mapping[str, str], label: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meanings[name], labels=[label])


class BulkHistogram(Collector):
    """Histogram of milliseconds, shown in seconds; values arrive in batches."""

    def __init__(self, name: str, documentation: str, bounds_ms: Sequence[int]) -> None:
        """Count values up to each of `bounds_ms`, which ascend; the last bucket has no bound."""
        self._name = name
        self._documentation = documentation
        self._bounds_ms = tuple(bounds_ms)
        self._counts = [0] * len(self._bounds_ms)
        self._total = 0
        self._sum_ms = 0
        self._lock = Lock()

    def add(self, values_ms: Sequence[int], more_ms: int = 0) -> None:
        """Count the values of one batch, each of them with `more_ms` on top."""
        ordered = sorted(values_ms)
        below = [bisect_right(ordered, bound - more_ms) for bound in self._bounds_ms]
        batch_ms = sum(ordered) + more_ms * len(ordered)
        with self._lock:
            self._counts = [had + more for had, more in zip(self._counts, below, strict=True)]
            self._total += len(ordered)
            self._sum_ms += batch_ms

    @property
    def bounds_seconds(self) -> tuple[float, ...]:
        """The bounds of the buckets but the last."""
        return tuple(bound / 1000 for bound in self._bounds_ms)

    def counted(self) -> tuple[int, ...]:
        """How many values lie up to each bound, and how many there are."""
        with self._lock:
            return (*self._counts, self._total)

    def describe(self) -> Iterable[Metric]:
        """The family without values, by which a registry finds clashing names."""
        return [HistogramMetricFamily(self._name, self._documentation)]

    def collect(self) -> Iterable[Metric]:
        """The family with the counts of this moment."""
        with self._lock:
            counts, total, sum_ms = self._counts, self._total, self._sum_ms
        bounds = [str(bound / 1000) for bound in self._bounds_ms]
        buckets = [*zip(bounds, map(float, counts), strict=True), ("+Inf", float(total))]
        family = HistogramMetricFamily(self._name, self._documentation)
        family.add_metric([], buckets=buckets, sum_value=sum_ms / 1000)
        return [family]
