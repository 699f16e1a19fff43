"""The figures of one run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import orjson

from belfry.bench.plan import BenchPlan


@dataclass(frozen=True, slots=True)
class Result:
    """One line of figures; None where one does not apply; `varied` is a curve's x."""

    bench: str
    events: int
    seconds: float
    events_per_second: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    cpu_seconds: float | None = None
    peak_rss_mb: float | None = None
    partitions: int = 0
    payload_bytes: int = 0
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
        """The same, with what the workers used."""
        return replace(self, cpu_seconds=cpu_seconds, peak_rss_mb=peak_rss_mb)

    def late(self, lateness_ms: list[float]) -> Result:
        """The same, with the percentiles of how late events were seen."""
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
