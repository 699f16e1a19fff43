"""Metrics: one object that counts.

Their names and meanings are in `families.py`.  Counting is meant for once per transaction, never
once per event.  The registry is injected, so two workers in one process (as in tests) count apart.

Invariants: units are seconds; no schedule id is ever a label, for a label's values live as long as
the process.  Tenants are labels in `tenant_metrics.py` alone, which shows only some of them, and
only to callers who may see all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import active_count
from typing import Any, Final, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from belfry import __version__
from belfry.telemetry.client_figures import ClientFigures, ClientMetrics
from belfry.telemetry.collectors import BulkHistogram, KeyFigures, KeyMetrics
from belfry.telemetry.families import BY_NAME, FAMILIES, described
from belfry.telemetry.tenant_metrics import MOST_TENANTS, TenantLook, TenantMetrics, registered
from belfry.tenants.waits import CAUSES

# A millisecond to ten minutes; what waits longer shows in the oldest due instant.
LATENESS_BOUNDS_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000),
)
TRANSACTION_BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
HTTP_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30)
RECOVERY_BOUNDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


LOOKUPS: Final = ("belfry_registry_lookups_total", "answered", "unanswered")
STATES: Final = ("ready", "disk_free_bytes", "disk_reserve_bytes", "webhook_hosts_silent")
STORE: Final = ("rows", "disk_bytes", "memory_bytes", "merge_bytes", "errors")
KEY_STATES: Final = ("valid", "expiring", "expired")
_Kind = TypeVar("_Kind", Counter, Gauge, Histogram)
COUNTED_OF_STEPS: Final = (
    *("belfry_rederived_total", "belfry_unreadable_total", "belfry_completed_total"),
    *("belfry_bulk_schedules_total", "belfry_metered_periods_total"),
)


class Metrics:
    """The metrics of one worker, in the registry that it is given."""

    def __init__(
        self,
        registry: CollectorRegistry,
        version: str = __version__,
        app_id: str = "",
        most_tenants: int = MOST_TENANTS,
    ) -> None:
        """Register every family; names that the registry holds already are an error.

        At most `most_tenants` are told apart.
        """
        # Each counter would get a second series with its birth, under a name nobody promised.
        disable_created_metrics()
        self._registry = registry
        asked = ("belfry_requests_total", "belfry_rejected_total", "belfry_fired_total")
        self._requests, self._rejected, self._fired = (self._make(Counter, name) for name in asked)
        ends = ("belfry_missed_total", "belfry_unacknowledged_total")
        self._missed, self._unacknowledged = (self._make(Counter, name) for name in ends)
        self._rederived, self._unreadable, self._completed, self._bulk, self._metered = (
            self._make(Counter, name) for name in COUNTED_OF_STEPS
        )
        self._deliveries = self._make_outcomes(
            "belfry_deliveries_total", "DELIVERED", "RETRIED", "FAILED"
        )
        self._audit = self._make_outcomes("belfry_audit_events_total", "written", "lost")
        self._lookups = self._make_outcomes(*LOOKUPS)
        self._spans = self._make_outcomes("belfry_spans_total", "exported", "dropped", "failed")
        meanings = {family.name: family.meaning for family in FAMILIES}
        self._keys = KeyMetrics(meanings, KEY_STATES)
        registry.register(self._keys)
        # In a registry of its own: strangers are shown the other one.
        self._of_tenants, self._tenants = registered(TenantMetrics(most_tenants))
        waits = ("belfry_tenants_waiting", "belfry_tenants_waiting_longest_seconds")
        self._tenants_waiting, self._longest = (self._make(Gauge, name) for name in waits)
        self._slo, self._slo_lateness = self._make_slo()
        self._lateness = self._make_lateness("belfry_fire_lateness_seconds")
        self._drained = self._make_lateness("belfry_bucket_drained_lateness_seconds")
        fires = ("belfry_pending_schedules", "belfry_oldest_due_seconds")
        self._pending, self._oldest_due = (self._make(Gauge, name) for name in fires)
        self._waiting = self._make(Gauge, "belfry_waiting_seconds")
        self._lag = self._make(Gauge, "belfry_ingest_lag_records")
        self._open = self._make(Gauge, "belfry_open_transaction_seconds")
        names = ("belfry_foreign_records_total", "belfry_agent_events_total")
        self._foreign, self._agents = (self._make(Counter, name) for name in names)
        self._transaction = self._make(
            Histogram, "belfry_transaction_seconds", buckets=TRANSACTION_BOUNDS
        )
        self._recovery = self._make(Histogram, "belfry_recovery_seconds", buckets=RECOVERY_BOUNDS)
        held = ("belfry_partition_owned", "belfry_standbys_warm", "belfry_changelog_lag_records")
        self._owned, self._standbys, self._unread = (self._make(Gauge, name) for name in held)
        self._http = (
            self._make(Counter, "belfry_http_requests_total"),
            self._make(Histogram, "belfry_http_request_seconds", buckets=HTTP_BOUNDS),
        )
        gauges = ("belfry_clock_skew_seconds", "belfry_topics_to_make", "belfry_firing_paused")
        self._skew, self._to_make, self._paused = (self._make(Gauge, name) for name in gauges)
        self._states = {name: self._make(Gauge, f"belfry_{name}") for name in STATES}
        self._clients = ClientMetrics(self._make)
        self._stores = {name: self._make(Gauge, f"belfry_store_{name}") for name in STORE}
        self._make_process(version, app_id)

    def _make_lateness(self, name: str) -> BulkHistogram:
        made = BulkHistogram(*described(name), LATENESS_BOUNDS_MS)
        self._registry.register(made)
        return made

    def _make_process(self, version: str, app_id: str) -> None:
        """Which belfry this is, and what Linux says of its process; of that nothing elsewhere."""
        self._make(Gauge, "belfry_build_info").labels(version, app_id).set(1)
        ProcessCollector(namespace="belfry", registry=self._registry)
        self._make(Gauge, "belfry_process_threads").set_function(active_count)

    def _make_slo(self) -> tuple[dict[str, Counter], BulkHistogram]:
        whats = ("asked", "registered", "fired", "fired_in_time")
        counters = {what: self._make(Counter, f"belfry_slo_{what}_total") for what in whats}
        return counters, self._make_lateness("belfry_slo_lateness_seconds")

    def _make_outcomes(self, name: str, *outcomes: str) -> Counter:
        """A counter by outcome, of which each is 0 from the start."""
        made = self._make(Counter, name)
        for outcome in outcomes:
            made.labels(outcome)
        return made

    def _make(self, kind: type[_Kind], name: str, **options: Any) -> _Kind:
        family = BY_NAME[name]
        return kind(name, family.meaning, family.labels, registry=self._registry, **options)

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
        """Count what bulk jobs did in one transaction: action and outcome to schedules."""
        for (action, outcome), count in touched.items():
            self._bulk.labels(action, outcome).inc(count)

    def agent(self, name: str, event: str) -> None:
        """Count what went wrong with a Faust agent: "failed" or "restarted"."""
        self._agents.labels(name, event).inc()

    def delivered(self, outcomes: Mapping[str, int], tenants: Mapping[str, int]) -> None:
        """Count attempts at deliveries that one transaction told of: by outcome, and those that
        arrived by tenant.
        """
        for outcome, count in outcomes.items():
            self._deliveries.labels(outcome).inc(count)
        self._tenants.delivered(tenants)

    def audited(self, outcome: str, count: int) -> None:
        """Count events of the audit log: ``written`` or ``lost``."""
        self._audit.labels(outcome).inc(count)

    def traced(self, outcome: str, spans: int) -> None:
        """Count spans: ``exported``, ``dropped`` or ``failed``."""
        self._spans.labels(outcome).inc(spans)

    def looked_up(self, outcome: str) -> None:
        """Count a lookup at the schema registry: ``answered`` or ``unanswered``."""
        self._lookups.labels(outcome).inc()

    def readiness(self, *, ready: bool) -> None:
        """Show whether all owned partitions fire."""
        self._states["ready"].set(1 if ready else 0)

    def disk(self, free_bytes: int, reserve_bytes: int) -> None:
        """Show the free space of the data directory's disk, and what has to be left."""
        self._states["disk_free_bytes"].set(free_bytes)
        self._states["disk_reserve_bytes"].set(reserve_bytes)

    def silent_hosts(self, hosts: int) -> None:
        """Show how many hosts of webhooks do not answer."""
        self._states["webhook_hosts_silent"].set(hosts)

    def api_keys(self, figures: Callable[[], list[KeyFigures]]) -> None:
        """Show API keys as `figures` tells them at each look."""
        self._keys.figures = figures

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

    def probed(self, what: str, events: int = 1) -> None:
        """Count events of the canary: ``asked``, ``registered``, ``fired``, ``fired_in_time``."""
        self._slo[what].inc(events)

    def probe_lateness(self, late_ms: int) -> None:
        """Count how late a reader had an event of the canary."""
        self._slo_lateness.add([late_ms])

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

    def recovery(self, seconds: float) -> None:
        """Count one partition that was taken over, and how long it took."""
        self._recovery.observe(seconds)

    def partition(
        self,
        partition: int,
        *,
        pending: int,
        waiting_seconds: Mapping[str, float],
        ingest_lag_records: int,
    ) -> None:
        """Show the figures of an owned partition; `waiting_seconds` by what is waited for."""
        label = str(partition)
        self._owned.labels(label).set(1)
        self._pending.labels(label).set(pending)
        self._oldest_due.labels(label).set(max([0.0, *waiting_seconds.values()]))
        self._waiting.remove_by_labels({"partition": label})
        for reason, seconds in waiting_seconds.items():
            self._waiting.labels(label, reason).set(max(0.0, seconds))
        self._lag.labels(label).set(ingest_lag_records)

    def partition_lost(self, partition: int) -> None:
        """Take back the figures of a partition: its new owner shows them."""
        label = str(partition)
        self._owned.labels(label).set(0)
        for gauge in (self._pending, self._oldest_due, self._waiting, self._lag):
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

    def open_transactions(self, ages_s: Mapping[tuple[str, int], float]) -> None:
        """Show transactions that stay open: which of belfry's topics and partition, to seconds."""
        self._open.clear()
        for (topic, partition), seconds in ages_s.items():
            self._open.labels(topic, str(partition)).set(seconds)

    def foreign(self, topic: str, records: int) -> None:
        """Count records in one of belfry's topics that were skipped as somebody else's."""
        self._foreign.labels(topic).inc(records)

    def topics_to_make(self, topics: int) -> None:
        """Show how many output topics are still to be made."""
        self._to_make.set(topics)

    def clock_skew(self, seconds: float) -> None:
        """Show how far this machine's clock is ahead of the broker's."""
        self._skew.set(seconds)

    def firing_paused(self, *, paused: bool) -> None:
        """Show whether the clock guard holds back firing."""
        self._paused.set(1 if paused else 0)

    def client(self, kind: str, interval_ms: int) -> ClientFigures:
        """What all Kafka clients of a kind tell their figures, librdkafka's every so often.

        Make one of each kind.
        """
        return ClientFigures(self._clients, kind, interval_ms)

    def value(self, name: str) -> float:
        """Present value of a metric without labels; 0 before it was first counted."""
        return self._registry.get_sample_value(name) or 0.0

    def http(self, request: tuple[str, str, str], seconds: float) -> None:
        """Count a request over HTTP (method, route, status), and how long it took."""
        requests, durations = self._http
        requests.labels(*request).inc()
        durations.labels(request[1]).observe(seconds)

    def tenants(self, look: TenantLook) -> None:
        """Show tenants as they are at this look."""
        self._tenants.look = look
        numbers, longest = look.by_cause()
        for cause in CAUSES:
            self._tenants_waiting.labels(cause).set(numbers[cause])
            self._longest.labels(cause).set(longest[cause])

    def exposition(self, *, tenants: bool = True) -> bytes:
        """All metrics in the text format of Prometheus; those of single tenants may be left out."""
        found = generate_latest(self._registry)
        return found + generate_latest(self._of_tenants) if tenants else found
