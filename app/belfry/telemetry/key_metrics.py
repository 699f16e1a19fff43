"""Metrics of API keys, made anew at each look from what the list holds then.

A key is told by the beginning of its digest: no name, no tenant, and nothing that opens anything.
A key that leaves the list leaves the metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
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
