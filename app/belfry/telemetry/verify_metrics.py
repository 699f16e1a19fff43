"""The metrics of `belfry verify` while it runs for ever: findings, passes, how far it is.

    a pass ends      found(…), complete(now)          counted, and the instant is set
    a pass fails     failed()                         the instant stays, and grows old
    a scrape         behind, asked of the verifier    looked at then

Invariants: the kinds of findings are known beforehand, so each is 0 from the start, and no alert
misses the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, disable_created_metrics

from belfry.telemetry.metric_maker import MetricMaker

COMPLETE = "complete"
FAILED = "failed"


class VerifyMetrics:
    """The metrics of one verifying process, in the registry that it is given."""

    def __init__(self, registry: CollectorRegistry, kinds: Iterable[str], began_s: float) -> None:
        """`kinds` are all kinds of findings, `began_s` is when the process began (epoch s)."""
        # Each counter would get a second series with its birth, under a name nobody promised.
        disable_created_metrics()
        make = MetricMaker(registry)
        self._findings = make.outcomes("belfry_verify_findings_total", *kinds)
        self._passes = make.outcomes("belfry_verify_passes_total", COMPLETE, FAILED)
        self._last = make.gauge("belfry_verify_last_complete_timestamp_seconds")
        self._last.set(began_s)
        self._behind = make.gauge("belfry_verify_behind_records")

    def found(self, kind: str) -> None:
        """Count a finding."""
        self._findings.labels(kind).inc()

    def complete(self, now_s: float) -> None:
        """A pass over all topics has ended at this instant (epoch s)."""
        self._passes.labels(COMPLETE).inc()
        self._last.set(now_s)

    def failed(self) -> None:
        """A pass has failed; its findings do not count."""
        self._passes.labels(FAILED).inc()

    def follow(self, behind: Callable[[], int]) -> None:
        """Ask this at each scrape how many records are still to be read."""
        self._behind.set_function(behind)
