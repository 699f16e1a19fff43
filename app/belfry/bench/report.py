"""Results as people read them: one line a run, and the spread of several runs."""

from __future__ import annotations

from collections.abc import Sequence

from belfry.bench.plan import BenchPlan
from belfry.bench.result import Result


def lines(result: Result, plan: BenchPlan) -> str:
    """One run as a line of text."""
    parts = [
        f"{result.bench:9}",
        f"{result.events:>10,} events",
        f"{result.seconds:8.2f} s",
        f"{result.events_per_second:>10,.0f} /s",
    ]
    if result.p50_ms is not None:
        parts.append(
            f"late p50 {result.p50_ms:.1f} p99 {result.p99_ms:.1f} p99.9 {result.p999_ms:.1f} ms"
        )
    if result.cpu_seconds is not None:
        parts.append(f"cpu {result.cpu_seconds:.1f} s")
    if result.peak_rss_mb is not None:
        parts.append(f"{result.peak_rss_mb:.0f} MB a worker")
    if plan.bench != "raw":
        parts.append(f"{plan.workers} worker{'s' if plan.workers > 1 else ''}")
    return "  ".join(parts).replace(",", " ", 2)


class BenchRuns:
    """Several runs of one benchmark."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = sorted(results, key=_figure)

    def median(self) -> Result:
        """The run in the middle."""
        return self._results[len(self._results) // 2]

    def text(self) -> str:
        """Median and range as a line of text."""
        figures = [_figure(result) for result in self._results]
        unit = "ms p50" if self._results[0].p50_ms is not None else "/s"
        return (
            f"median {_figure(self.median()):,.1f} {unit} of {len(figures)} runs,"
            f" {figures[0]:,.1f} to {figures[-1]:,.1f}"
        )


def _figure(result: Result) -> float:
    return result.p50_ms if result.p50_ms is not None else result.events_per_second
