"""Metrics: one object that counts.

    Metrics.steps      what committed steps did to requests and events (`step_metrics.py`)
    Metrics.held       the partitions that are owned or stood by for (`held_metrics.py`)
    Metrics.client()   Kafka clients of a kind (`client_figures.py`)
    Metrics.checkpoints   copies of stores, and where state came from (`checkpoint_metrics.py`)
    Metrics            everything else of the worker: deliveries, HTTP, keys, spans, its states

Their names and meanings are in `families.py`.  Counting is meant for once per transaction, never
once per event.  The registry is injected, so two workers in one process (as in tests) count apart.

    a step commits ─► Gauges (`partitions/`) ─► steps.requests, steps.fired, …     pushed
    a scrape       ─► View (`process/`) ─► held.partition, clock_skew, tenants     looked at then

Counters are pushed when something has happened.  Most gauges are set when somebody looks, so they
cost nothing in between and are never older than the look.

Invariants: units are seconds; no schedule id is ever a label, for a label's values live as long as
the process.  Tenants are labels in `tenant_metrics.py` alone, which shows only some of them, and
only to callers who may see all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import active_count
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from belfry import __version__
from belfry.telemetry.checkpoint_metrics import CheckpointMetrics
from belfry.telemetry.client_figures import ClientFigures, ClientMetrics
from belfry.telemetry.collectors import KeyFigures, KeyMetrics
from belfry.telemetry.day_file_metrics import DayFileMetrics
from belfry.telemetry.families import BY_NAME
from belfry.telemetry.held_metrics import HeldMetrics
from belfry.telemetry.metric_maker import MetricMaker
from belfry.telemetry.move_metrics import MoveMetrics
from belfry.telemetry.step_metrics import StepMetrics
from belfry.telemetry.tenant_metrics import MOST_TENANTS, TenantLook, TenantMetrics, registered
from belfry.tenants.waits import CAUSES

HTTP_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30)
# Gauges without labels, each of which says one thing of the worker.
STATES: Final = (
    *("ready", "disk_free_bytes", "disk_reserve_bytes", "webhook_hosts_silent"),
    *("topics_to_make", "clock_skew_seconds", "firing_paused"),
)
PROBED: Final = ("asked", "registered", "fired", "fired_in_time")
# Topics that dispatchers read.
DELIVERED_FROM: Final = ("deliveries", "rejected")
KEY_STATES: Final = ("valid", "expiring", "expired")


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
        make = MetricMaker(registry)
        self._registry = registry
        self.steps = StepMetrics(make)
        self.held = HeldMetrics(make)
        self.checkpoints = CheckpointMetrics(make)
        self.moves = MoveMetrics(make)
        self.day_files = DayFileMetrics(make)
        self._clients = ClientMetrics(make)
        self._deliveries = make.outcomes(
            "belfry_deliveries_total", "DELIVERED", "RETRIED", "FAILED", "SETTLED"
        )
        self._removed = make.counter("belfry_deliveries_removed_total")
        for topic in DELIVERED_FROM:
            self._removed.labels(topic)
        self._targets = make.histogram("belfry_delivery_seconds", HTTP_BOUNDS)
        self._audit = make.outcomes("belfry_audit_events_total", "written", "lost")
        self._lookups = make.outcomes("belfry_registry_lookups_total", "answered", "unanswered")
        self._payloads = make.outcomes("belfry_payloads_stored_total", "stored", "failed")
        self._spans = make.outcomes("belfry_spans_total", "exported", "dropped", "failed")
        self._keys = KeyMetrics({name: each.meaning for name, each in BY_NAME.items()}, KEY_STATES)
        registry.register(self._keys)
        # In a registry of its own: strangers are shown the other one.
        self._of_tenants, self._tenants = registered(TenantMetrics(most_tenants))
        self._tenants_waiting = make.gauge("belfry_tenants_waiting")
        self._longest = make.gauge("belfry_tenants_waiting_longest_seconds")
        self._slo = {what: make.counter(f"belfry_slo_{what}_total") for what in PROBED}
        self._slo_lateness = make.lateness("belfry_slo_lateness_seconds")
        self._open = make.gauge("belfry_open_transaction_seconds")
        self._foreign = make.counter("belfry_foreign_records_total")
        self._agents = make.counter("belfry_agent_events_total")
        self._http_requests = make.counter("belfry_http_requests_total")
        self._http_seconds = make.histogram("belfry_http_request_seconds", HTTP_BOUNDS)
        self._states = {name: make.gauge(f"belfry_{name}") for name in STATES}
        make.gauge("belfry_build_info").labels(version, app_id).set(1)
        # The figures of Linux for the process; other systems have none.
        ProcessCollector(namespace="belfry", registry=registry)
        make.gauge("belfry_process_threads").set_function(active_count)

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

    def deliveries_removed(self, topic: str, offsets: int) -> None:
        """Count what was removed before a dispatcher read it: ``deliveries`` or ``rejected``."""
        self._removed.labels(topic).inc(offsets)

    def target_answered(self, kind: str, seconds: float) -> None:
        """Count an answer of a target of a kind (``http``, ``kafka``), and how long it took."""
        self._targets.labels(kind).observe(seconds)

    def audited(self, outcome: str, count: int) -> None:
        """Count events of the audit log: ``written`` or ``lost``."""
        self._audit.labels(outcome).inc(count)

    def traced(self, outcome: str, spans: int) -> None:
        """Count spans: ``exported``, ``dropped`` or ``failed``."""
        self._spans.labels(outcome).inc(spans)

    def payloads(self, outcome: str, objects: int) -> None:
        """Count large payloads at their store: ``stored`` or ``failed``."""
        self._payloads.labels(outcome).inc(objects)

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

    def probed(self, what: str, events: int = 1) -> None:
        """Count events of the canary: ``asked``, ``registered``, ``fired``, ``fired_in_time``."""
        self._slo[what].inc(events)

    def probe_lateness(self, late_ms: int) -> None:
        """Count how late a reader had an event of the canary."""
        self._slo_lateness.add([late_ms])

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
        self._states["topics_to_make"].set(topics)

    def clock_skew(self, seconds: float) -> None:
        """Show how far this machine's clock is ahead of the broker's."""
        self._states["clock_skew_seconds"].set(seconds)

    def firing_paused(self, *, paused: bool) -> None:
        """Show whether the clock guard holds back firing."""
        self._states["firing_paused"].set(1 if paused else 0)

    def client(self, kind: str, interval_ms: int) -> ClientFigures:
        """What all Kafka clients of a kind tell their figures, librdkafka's every so often.

        Make one of each kind.
        """
        return ClientFigures(self._clients, kind, interval_ms)

    def value(self, name: str) -> float:
        """Present value of a metric without labels; 0 before it was first counted."""
        # Of that one alone: a registry that is asked for a value collects all that it has.
        for family in self._registry.restricted_registry((name,)).collect():
            for sample in family.samples:
                if sample.name == name and not sample.labels:
                    return float(sample.value)
        return 0.0

    def http(self, request: tuple[str, str, str], seconds: float) -> None:
        """Count a request over HTTP (method, route, status), and how long it took."""
        self._http_requests.labels(*request).inc()
        self._http_seconds.labels(request[1]).observe(seconds)

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
