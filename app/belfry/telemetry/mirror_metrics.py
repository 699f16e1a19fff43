"""The metrics of `belfry mirror run`: carried records, how far behind it is, and failures.

    a turn        carried(records)
    every 5 s     looked(behind, level_ms, now_ms)     how far behind, in records and in seconds
    a failure     failed()                             the instant of the last look grows old

Invariants: seconds behind are those since the instant up to which all that the source had appended
is carried in each partition, so one that stands still shows, however the others go on.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, disable_created_metrics

from belfry.telemetry.metric_maker import MetricMaker


class MirrorMetrics:
    """The metrics of one mirror, in the registry that it is given."""

    def __init__(self, registry: CollectorRegistry, began_s: float) -> None:
        """`began_s` is when the process began (epoch s)."""
        # Each counter would get a second series with its birth, under a name nobody promised.
        disable_created_metrics()
        make = MetricMaker(registry)
        self._carried = make.counter("belfry_mirror_carried_records_total")
        self._failures = make.counter("belfry_mirror_failures_total")
        self._behind = make.gauge("belfry_mirror_behind_records")
        self._behind_s = make.gauge("belfry_mirror_behind_seconds")
        self._looked = make.gauge("belfry_mirror_last_look_timestamp_seconds")
        self._looked.set(began_s)

    def carried(self, records: int) -> None:
        """So many records were carried, in a transaction that was committed."""
        self._carried.inc(records)

    def failed(self) -> None:
        """Something failed, and is tried again."""
        self._failures.inc()

    def looked(self, behind: int, level_ms: int, now_ms: int) -> None:
        """So many offsets are still to be carried; instants are epoch ms."""
        self._behind.set(behind)
        self._behind_s.set(max(0, now_ms - level_ms) / 1000 if behind else 0.0)
        self._looked.set(now_ms / 1000)
