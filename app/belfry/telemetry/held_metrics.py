"""The partitions that a worker holds: their waiting events, how far they are, their stores.

These are gauges.  `process/view.py` sets them when somebody looks, from what the partitions are at
that moment:

    12:00:00   look   partition 3 owned 1, pending 7, oldest due 0; standbys warm 4
    12:00:05          partition 3 goes to another worker: `lost(3)`
    12:00:10   look   partition 3 owned 0; of it nothing else is shown

A partition that has gone takes its figures along, for its new owner shows them, and two workers
would count it twice.  Figures whose partitions come and go without a word (changelogs that are
read, stores that are open) are cleared at each look and set anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from belfry.telemetry.metric_maker import MetricMaker

RECOVERY_BOUNDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
STORE: Final = ("rows", "disk_bytes", "memory_bytes", "merge_bytes", "errors")


class HeldMetrics:
    """Shows partitions that are owned, stood by for, or taken over."""

    def __init__(self, make: MetricMaker) -> None:
        self._owned = make.gauge("belfry_partition_owned")
        self._pending = make.gauge("belfry_pending_schedules")
        self._oldest_due = make.gauge("belfry_oldest_due_seconds")
        self._waiting = make.gauge("belfry_waiting_seconds")
        self._lag = make.gauge("belfry_ingest_lag_records")
        self._stale = make.gauge("belfry_stale_schedules")
        self._stale_longest = make.gauge("belfry_stale_longest_seconds")
        self._unread = make.gauge("belfry_changelog_lag_records")
        self._standbys = make.gauge("belfry_standbys_warm")
        self._recovery = make.histogram("belfry_recovery_seconds", RECOVERY_BOUNDS)
        self._stores = {name: make.gauge(f"belfry_store_{name}") for name in STORE}

    def partition(
        self,
        partition: int,
        *,
        pending: int,
        waiting_seconds: Mapping[str, float],
        ingest_lag_records: int,
    ) -> None:
        """Show the figures of an owned partition; `waiting_seconds` by the cause of the wait."""
        label = str(partition)
        self._owned.labels(label).set(1)
        self._pending.labels(label).set(pending)
        self._oldest_due.labels(label).set(max([0.0, *waiting_seconds.values()]))
        self._waiting.remove_by_labels({"partition": label})
        for reason, seconds in waiting_seconds.items():
            self._waiting.labels(label, reason).set(max(0.0, seconds))
        self._lag.labels(label).set(ingest_lag_records)

    def stale(self, partition: int, schedules: int, longest_s: float) -> None:
        """Show how many schedules of a partition do not fire though their rules say so."""
        self._stale.labels(str(partition)).set(schedules)
        self._stale_longest.labels(str(partition)).set(max(0.0, longest_s))

    def lost(self, partition: int) -> None:
        """Take back the figures of a partition: its new owner shows them."""
        label = str(partition)
        self._owned.labels(label).set(0)
        gauges = self._pending, self._oldest_due, self._waiting, self._lag, self._stale
        for gauge in (*gauges, self._stale_longest):
            gauge.remove_by_labels({"partition": label})

    def unread(self, left: Mapping[int, int]) -> None:
        """Show what is still to be read of the changelogs: partition to number of offsets."""
        self._unread.clear()
        for partition, records in left.items():
            self._unread.labels(str(partition)).set(max(0, records))

    def stores(self, figures: Mapping[int, Mapping[str, int]]) -> None:
        """Show figures of the local stores that are open now: partition to figures by name."""
        for name, gauge in self._stores.items():
            gauge.clear()
            for partition, each in figures.items():
                gauge.labels(str(partition)).set(each[name])

    def standbys(self, warm: int) -> None:
        """Show for how many partitions this worker stands by, and could take them over at once."""
        self._standbys.set(warm)

    def recovery(self, seconds: float) -> None:
        """Count one partition that was taken over, and how long it took."""
        self._recovery.observe(seconds)
