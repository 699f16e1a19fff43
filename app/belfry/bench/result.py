"""The figures of one run, the spread of several runs, and both as text.

The figure of a single run says little on a machine with other work. So there are several runs, and
the median is shown with the range. Runs are compared by their rate; runs of `lateness` by their
median lateness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import orjson

from belfry.bench.plan import BenchPlan


@dataclass(frozen=True, slots=True)
class Result:
    """One line of figures; None where a figure does not apply; `varied` is a curve's x."""

    bench: str
    # Events of the run, which took `seconds`.
    events: int
    seconds: float
    events_per_second: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    # CPU of all workers together.
    cpu_seconds: float | None = None
    # Largest resident memory of a worker, in MB (2^20 bytes).
    peak_rss_mb: float | None = None
    partitions: int = 0
    payload_bytes: int = 0
    # The varied value of a curve: a point of its x axis.
    varied: int | None = None

    @classmethod
    def of(cls, plan: BenchPlan, events: int, seconds: float) -> Result:
        """A rate: so many events in so many seconds."""
        return cls(
            plan.bench,
            events,
            seconds,
            events / seconds,
            partitions=plan.partitions,
            payload_bytes=plan.payload_bytes,
        )

    def using(self, cpu_seconds: float, peak_rss_mb: float) -> Result:
        """The same, with the CPU and the memory of the workers."""
        return replace(self, cpu_seconds=cpu_seconds, peak_rss_mb=peak_rss_mb)

    def late(self, lateness_ms: list[float]) -> Result:
        """The same, with percentiles of the lateness."""
        late = sorted(lateness_ms)
        return replace(
            self,
            p50_ms=late[len(late) // 2],
            p99_ms=late[int(len(late) * 0.99)],
            p999_ms=late[int(len(late) * 0.999)],
        )

    def line(self) -> str:
        """The result as one line of JSON."""
        fields = [(k, v) for k, v in asdict(self).items() if k != "varied" or v is not None]
        return orjson.dumps(
            {name: round(v, 3) if isinstance(v, float) else v for name, v in fields}
        ).decode()


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
    """Several runs of one benchmark; there is at least one."""

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
    """The figure that orders runs: median lateness in ms if there is one, else events a second."""
    return result.p50_ms if result.p50_ms is not None else result.events_per_second
