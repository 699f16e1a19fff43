"""Metrics: public names, bulk counting, and what a lost partition leaves behind."""

from __future__ import annotations

import random

import pytest
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.parser import text_string_to_metric_families

from belfry.telemetry.collectors import BulkHistogram
from belfry.telemetry.families import FAMILIES
from belfry.telemetry.held_metrics import STORE
from belfry.telemetry.metric_maker import LATENESS_BOUNDS_MS
from belfry.telemetry.metrics import Metrics
from belfry.telemetry.process_families import OF_MIRROR, OF_VERIFICATION

OF_OTHERS = (*OF_VERIFICATION, *OF_MIRROR)

CONTRACT = {
    "belfry_requests_total": ("outcome",),
    "belfry_fired_total": (),
    "belfry_fire_lateness_seconds": (),
    "belfry_pending_schedules": ("partition",),
    "belfry_oldest_due_seconds": ("partition",),
    "belfry_ingest_lag_records": ("partition",),
    "belfry_transaction_seconds": (),
    "belfry_recovery_seconds": (),
    "belfry_partition_owned": ("partition",),
    "belfry_clock_skew_seconds": (),
}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> Metrics:
    return Metrics(registry, version="1.2.3")


def test_the_names_of_the_contract_exist() -> None:
    declared = {family.name: family.labels for family in FAMILIES}
    assert CONTRACT.items() <= declared.items()


def test_what_is_shown_is_what_is_declared(metrics: Metrics) -> None:
    metrics.steps.requests({"ACCEPTED": 1})
    metrics.steps.rejected({"no_tenant": 1})
    metrics.http(("GET", "/", "200"), 0.1)
    metrics.held.partition(0, pending=1, waiting_seconds={"firing": 0.0}, ingest_lag_records=0)
    metrics.held.stale(0, 0, 0.0)
    metrics.held.stores({0: dict.fromkeys(STORE, 1)})
    shown = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in text_string_to_metric_families(metrics.exposition().decode())
    }
    assert shown == {family.name for family in FAMILIES if family not in OF_OTHERS}


def test_bulk_counts_equal_those_of_prometheus(registry: CollectorRegistry) -> None:
    values_ms = [random.Random(7).randrange(1_000_000) for _ in range(500)] + [0, 1, 2, 600_000]
    theirs = Histogram(
        "h", "Theirs.", buckets=[b / 1000 for b in LATENESS_BOUNDS_MS], registry=None
    )
    ours = BulkHistogram("h", "Ours.", LATENESS_BOUNDS_MS)
    for value in values_ms:
        theirs.observe(value / 1000)
    ours.add(values_ms[:200])
    ours.add(values_ms[200:])
    expected = {(s.name, s.labels.get("le")): s.value for f in theirs.collect() for s in f.samples}
    counted = {(s.name, s.labels.get("le")): s.value for f in ours.collect() for s in f.samples}
    assert counted == {key: pytest.approx(value) for key, value in expected.items()}


def test_fired_counts_events_and_lateness(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.steps.fired([3, 40, 700_000])
    metrics.steps.fired([])
    assert metrics.value("belfry_fired_total") == 3
    assert metrics.value("belfry_fire_lateness_seconds_sum") == pytest.approx(700.043)
    below = registry.get_sample_value("belfry_fire_lateness_seconds_bucket", {"le": "0.05"})
    assert below == 2


def test_events_are_late_until_their_commit(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.steps.fired([3, 40], commit_ms=4_000)
    assert metrics.value("belfry_fire_lateness_seconds_sum") == pytest.approx(8.043)
    for bound, below in ({"le": "2.0"}, 0), ({"le": "5.0"}, 2):
        assert registry.get_sample_value("belfry_fire_lateness_seconds_bucket", bound) == below


def test_standbys_are_those_that_could_take_over_at_once(metrics: Metrics) -> None:
    metrics.held.standbys(3)
    assert metrics.value("belfry_standbys_warm") == 3
    metrics.held.standbys(0)
    assert metrics.value("belfry_standbys_warm") == 0


def test_expected_outcomes_start_at_zero(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.steps.expect(["REJECTED"])
    assert registry.get_sample_value("belfry_requests_total", {"outcome": "REJECTED"}) == 0
    metrics.steps.requests({"REJECTED": 2})
    assert registry.get_sample_value("belfry_requests_total", {"outcome": "REJECTED"}) == 2


def test_a_lost_partition_shows_no_figures(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.held.partition(3, pending=7, waiting_seconds={"firing": -2.0}, ingest_lag_records=1)
    label = {"partition": "3"}
    assert registry.get_sample_value("belfry_oldest_due_seconds", label) == 0
    metrics.held.lost(3)
    by_reason = {**label, "waiting_for": "firing"}
    assert registry.get_sample_value("belfry_waiting_seconds", by_reason) is None
    assert registry.get_sample_value("belfry_partition_owned", label) == 0
    assert registry.get_sample_value("belfry_pending_schedules", label) is None


def test_the_oldest_is_shown_whatever_it_waits_for(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    waits = {"firing": -3.0, "ack_lock": 90.0}
    metrics.held.partition(3, pending=7, waiting_seconds=waits, ingest_lag_records=1)
    label = {"partition": "3"}
    assert registry.get_sample_value("belfry_oldest_due_seconds", label) == 90
    locked = {**label, "waiting_for": "ack_lock"}
    assert registry.get_sample_value("belfry_waiting_seconds", locked) == 90
    metrics.held.partition(3, pending=7, waiting_seconds={}, ingest_lag_records=1)
    assert registry.get_sample_value("belfry_oldest_due_seconds", label) == 0
    assert registry.get_sample_value("belfry_waiting_seconds", locked) is None


def test_stale_schedules_go_with_their_partition(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    def shown() -> list[float | None]:
        names = "belfry_stale_schedules", "belfry_stale_longest_seconds"
        return [registry.get_sample_value(name, {"partition": "3"}) for name in names]

    metrics.held.stale(3, 2, 600.5)
    assert shown() == [2, 600.5]
    metrics.held.stale(3, 0, -1.0)
    assert shown() == [0, 0]
    metrics.held.lost(3)
    assert shown() == [None, None]


def test_two_workers_in_one_process_count_apart(metrics: Metrics) -> None:
    other = Metrics(CollectorRegistry())
    metrics.steps.fired([1])
    assert other.value("belfry_fired_total") == 0


def test_gauges_and_durations(metrics: Metrics) -> None:
    metrics.clock_skew(-0.25)
    metrics.firing_paused(paused=True)
    metrics.steps.transaction(0.003)
    metrics.held.recovery(1.5)
    assert metrics.value("belfry_clock_skew_seconds") == -0.25
    assert metrics.value("belfry_firing_paused") == 1
    assert metrics.value("belfry_transaction_seconds_count") == 1
    assert metrics.value("belfry_recovery_seconds_sum") == 1.5


def test_stores_that_are_gone_are_shown_no_more(metrics: Metrics) -> None:
    metrics.held.stores({0: dict.fromkeys(STORE, 7), 1: dict.fromkeys(STORE, 8)})
    metrics.held.stores({1: dict.fromkeys(STORE, 9)})
    told = metrics.exposition().decode()
    assert 'belfry_store_disk_bytes{partition="1"} 9.0' in told
    assert 'belfry_store_disk_bytes{partition="0"}' not in told


def test_the_process_tells_of_itself(metrics: Metrics) -> None:
    told = dict(
        line.rsplit(" ", 1)
        for line in metrics.exposition().decode().splitlines()
        if line.startswith("belfry_process_")
    )
    assert float(told["belfry_process_resident_memory_bytes"]) > 10_000_000
    assert float(told["belfry_process_threads"]) >= 1
    assert float(told["belfry_process_open_fds"]) <= float(told["belfry_process_max_fds"])


def test_what_is_rarely_there_is_shown_under_its_name(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.audited("lost", 3)
    metrics.agent("belfry.requests", "failed")
    metrics.open_transactions({("belfry.changelog", 2): 40.5})
    metrics.held.unread({2: 7, 3: -1})
    metrics.held.standbys(4)
    metrics.firing_paused(paused=True)
    shown = {
        'belfry_audit_events_total{outcome="lost"}': 3,
        'belfry_agent_events_total{agent="belfry.requests",event="failed"}': 1,
        'belfry_open_transaction_seconds{partition="2",topic="belfry.changelog"}': 40.5,
        'belfry_changelog_lag_records{partition="2"}': 7,
        'belfry_changelog_lag_records{partition="3"}': 0,
        "belfry_standbys_warm": 4,
        "belfry_firing_paused": 1,
    }
    told = {
        f"{sample.name}{_labels(sample.labels)}": sample.value
        for family in registry.collect()
        for sample in family.samples
    }
    assert {name: told.get(name) for name in shown} == shown
    metrics.open_transactions({})
    metrics.held.unread({})
    again = {sample.name for family in registry.collect() for sample in family.samples}
    assert not again & {"belfry_open_transaction_seconds", "belfry_changelog_lag_records"}


def _labels(given: dict[str, str]) -> str:
    told = ",".join(f'{name}="{value}"' for name, value in sorted(given.items()))
    return f"{{{told}}}" if told else ""
