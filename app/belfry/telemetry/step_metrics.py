"""The results of committed steps: requests and their verdicts, events and their lateness.

A step is one transaction of one partition.  Its effects are counted once it is committed, so what
was rolled back and done again is counted once:

    step of partition 3, committed after 40 ms
        requests    ACCEPTED 120, DUPLICATE 2
        rejected    no_tenant 1
        fired       2 400 events, each with its lateness when the step began, and 40 ms more
        drained     a minute bucket, whose last event left 1.2 s after it was due

An event is late until readers see it, and they see it with the commit.  So the length of the
transaction is added to the lateness of each (`commit_ms`).

Partitions count from threads of their own.  Each metric has a lock; what belongs to one step is
counted under one more (`partitions/gauges.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Final

from belfry.telemetry.metric_maker import MetricMaker
from belfry.telemetry.recent_lateness import RecentLateness

TRANSACTION_BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class StepMetrics:
    """Counts what committed steps did to requests and events, over all partitions of a worker."""

    def __init__(self, make: MetricMaker) -> None:
        self._requests = make.counter("belfry_requests_total")
        self._rejected = make.counter("belfry_rejected_total")
        self._bulk = make.counter("belfry_bulk_schedules_total")
        self._fired = make.counter("belfry_fired_total")
        self._lateness = lateness = make.lateness("belfry_fire_lateness_seconds")
        self.recent = RecentLateness(lateness.bounds_seconds, lateness.counted, monotonic)
        self._drained = make.lateness("belfry_bucket_drained_lateness_seconds")
        self._missed = make.counter("belfry_missed_total")
        self._completed = make.counter("belfry_completed_total")
        self._unacknowledged = make.counter("belfry_unacknowledged_total")
        self._rederived = make.counter("belfry_rederived_total")
        self._unreadable = make.counter("belfry_unreadable_total")
        self._metered = make.counter("belfry_metered_periods_total")
        self._transaction = make.histogram("belfry_transaction_seconds", TRANSACTION_BOUNDS)

    def expect(self, outcomes: Iterable[str]) -> None:
        """Show these outcomes as 0 from the start, so that the first one is seen as a rise."""
        for outcome in outcomes:
            self._requests.labels(outcome)

    def requests(self, outcomes: Mapping[str, int]) -> None:
        """Count the verdicts of one transaction: outcome to number of requests."""
        for outcome, count in outcomes.items():
            self._requests.labels(outcome).inc(count)

    def rejected(self, codes: Mapping[str, int]) -> None:
        """Count the refusals of one transaction: error code to number of requests."""
        for code, count in codes.items():
            self._rejected.labels(code).inc(count)

    def bulk(self, touched: Mapping[tuple[str, str], int]) -> None:
        """Count the changes of bulk jobs in one transaction: action and outcome to schedules."""
        for (action, outcome), count in touched.items():
            self._bulk.labels(action, outcome).inc(count)

    def fired(self, lateness_ms: Sequence[int], commit_ms: int = 0) -> None:
        """Count the events of one committed transaction.

        `lateness_ms` is how late each was when it was decided to fire it; readers see it when the
        transaction is committed, `commit_ms` after that.
        """
        self._fired.inc(len(lateness_ms))
        self._lateness.add(lateness_ms, commit_ms)

    def drained(self, lateness_ms: Sequence[int]) -> None:
        """Count minute buckets that have ended, by how late the last schedule of each left."""
        self._drained.add(lateness_ms)

    def given_up(self, missed: int, completed: int) -> None:
        """Count the missed occurrences and the completed schedules of one transaction."""
        self._missed.inc(missed)
        self._completed.inc(completed)

    def metered(self, periods: int) -> None:
        """Count records of usage that a partition wrote."""
        self._metered.inc(periods)

    def unacknowledged(self, fires: int) -> None:
        """Count fires that were not acknowledged in time."""
        self._unacknowledged.inc(fires)

    def rederived(self, occurrences: int) -> None:
        """Count pending occurrences that new time zone data has moved."""
        self._rederived.inc(occurrences)

    def unreadable(self, schedules: int) -> None:
        """Count due schedules that this version cannot fire."""
        self._unreadable.inc(schedules)

    def transaction(self, seconds: float) -> None:
        """Count one transaction and how long it was open."""
        self._transaction.observe(seconds)
