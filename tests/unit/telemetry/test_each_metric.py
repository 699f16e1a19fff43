"""Each metric is counted by something: what happens, and what its series say then.

What is not counted here has a test of its own, which `ELSEWHERE` names.  A metric that is added
and stands in neither fails here, and so does one that nothing counts any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry

from belfry.engine.drained import Drained
from belfry.engine.effects import Effects, MoveEnd
from belfry.engine.tenant_figures import TenantFigures
from belfry.partitions.gauges import Gauges
from belfry.schedules.outcomes import Outcome
from belfry.telemetry.families import FAMILIES
from belfry.telemetry.metrics import Metrics
from belfry.telemetry.tenant_metrics import TenantLook
from belfry.tenants.waits import Wait, Why
from tests.architecture.tree import ROOT

STORE: Final = {"rows": 1, "disk_bytes": 2, "memory_bytes": 3, "merge_bytes": 4, "errors": 5}
WAIT: Final = Wait(Why("ack_lock", "ack_lock", "why"), 0, 1, 1_000)
OF_TENANT: Final = TenantFigures(3, 4, 5_000, 6, WAIT, 7)
LABELLED: Final = "{tenant=demo}"
# What is looked at where the process tells it by itself: any value but 0.
SOME: Final = -1.0


def step(**given: Any) -> Callable[[Metrics], None]:
    """A committed step that did this, in 0.5 s, begun 500 ms before its end."""

    def commit(metrics: Metrics) -> None:
        effects = Effects()
        for name, value in given.items():
            held = getattr(effects, name)
            if hasattr(held, "update"):
                held.update(value)
            else:
                setattr(effects, name, value)
        Gauges(metrics).committed(effects, 0.5, 500)

    return commit


def held(**given: Any) -> Callable[[Metrics], None]:
    """A partition that is held, as it is looked at."""

    def look(metrics: Metrics) -> None:
        waits = {"firing": 2.0, "ack_lock": 9.0}
        figures: Any = {"pending": 3, "waiting_seconds": waits, "ingest_lag_records": 4} | given
        metrics.held.partition(1, **figures)
        metrics.held.stale(1, 2, 600.0)
        metrics.held.unread({1: 7})
        metrics.held.stores({1: STORE})
        metrics.held.standbys(5)
        metrics.held.recovery(1.5)

    return look


def tenants(metrics: Metrics) -> None:
    metrics.tenants(TenantLook.of({(0, 1): {"demo": OF_TENANT}}, 61_000.0))
    metrics.delivered({}, {"demo": 8})


def canary(metrics: Metrics) -> None:
    gauges = Gauges(metrics)
    for number, what in enumerate(("asked", "registered", "fired", "fired_in_time"), 2):
        gauges.probed(what, number)
    gauges.probe_lateness(1_500)


def surroundings(metrics: Metrics) -> None:
    gauges = Gauges(metrics)
    gauges.topics_to_make(6)
    gauges.looked_up("unanswered")
    gauges.payloads("stored", 3)
    gauges.day_files.files("written")
    gauges.day_files.payloads("aside", 5)
    gauges.day_files.awaited(3, 2)
    gauges.open_transactions({("belfry.changelog", 2): 40.5})
    gauges.foreign("belfry.changelog", 3)
    metrics.clock_skew(-0.25)
    metrics.firing_paused(paused=True)
    metrics.readiness(ready=True)
    metrics.disk(2_000, 1_000)
    metrics.silent_hosts(2)
    metrics.agent("belfry.requests", "failed")
    metrics.audited("lost", 3)
    metrics.traced("dropped", 4)


def deliveries(metrics: Metrics) -> None:
    metrics.delivered({"FAILED": 2}, {})
    metrics.deliveries_removed("deliveries", 7)
    metrics.target_answered("http", 0.25)


def port(metrics: Metrics) -> None:
    metrics.http(("GET", "/v1/tenants", "200"), 0.25)


def groups(metrics: Metrics) -> None:
    metrics.moves.stand(1, 2, 3)


def nothing(_metrics: Metrics) -> None:
    """It tells by itself."""


MISSED: Final = {Outcome.MISSED: 2, Outcome.COMPLETED: 3, Outcome.FAILED: 4, Outcome.ACCEPTED: 5}
DRAINED: Final = [Drained(b"demo", 0, 0, 1_500)]
Case = tuple[Callable[[Metrics], None], dict[str, float]]
# What happens, and the series that it leads to.
CASES: Final[dict[str, Case]] = {
    "belfry_requests_total": (step(outcomes=MISSED), {"{outcome=ACCEPTED}": 5}),
    "belfry_rejected_total": (step(rejections={"bad_cron": 2}), {"{code=bad_cron}": 2}),
    "belfry_fired_total": (step(lateness={"demo": [1, 2]}), {"": 2}),
    "belfry_fire_lateness_seconds": (
        step(lateness={"demo": [1_000]}),
        {"_sum": 1.5, "_count": 1, "_bucket{le=1.0}": 0, "_bucket{le=2.0}": 1},
    ),
    "belfry_missed_total": (step(outcomes=MISSED), {"": 2}),
    "belfry_completed_total": (step(outcomes=MISSED), {"": 3}),
    "belfry_unacknowledged_total": (step(outcomes=MISSED), {"": 4}),
    "belfry_rederived_total": (step(rederived=2), {"": 2}),
    "belfry_unreadable_total": (step(unreadable=[(b"demo/a", "why")]), {"": 1}),
    "belfry_bucket_drained_lateness_seconds": (step(drained=DRAINED), {"_sum": 1.5, "_count": 1}),
    "belfry_metered_periods_total": (step(metered=[1, 2]), {"": 2}),
    "belfry_transaction_seconds": (step(), {"_sum": 0.5, "_count": 1}),
    "belfry_bulk_schedules_total": (
        step(bulk={("CANCEL", Outcome.CANCELLED): 3}),
        {"{action=CANCEL,outcome=CANCELLED}": 3},
    ),
    "belfry_deliveries_total": (deliveries, {"{outcome=FAILED}": 2, "{outcome=DELIVERED}": 0}),
    "belfry_deliveries_removed_total": (deliveries, {"{topic=deliveries}": 7}),
    "belfry_delivery_seconds": (deliveries, {"_sum{kind=http}": 0.25, "_count{kind=http}": 1}),
    "belfry_slo_asked_total": (canary, {"": 2}),
    "belfry_slo_registered_total": (canary, {"": 3}),
    "belfry_slo_fired_total": (canary, {"": 4}),
    "belfry_slo_fired_in_time_total": (canary, {"": 5}),
    "belfry_slo_lateness_seconds": (canary, {"_sum": 1.5, "_count": 1}),
    "belfry_tenant_pending_schedules": (tenants, {LABELLED: 3}),
    "belfry_tenant_fired_total": (tenants, {LABELLED: 4}),
    "belfry_tenant_lateness_seconds_total": (tenants, {LABELLED: 5}),
    "belfry_tenant_rejected_total": (tenants, {LABELLED: 6}),
    "belfry_tenant_accepted_total": (tenants, {LABELLED: 7}),
    "belfry_tenant_delivered_total": (tenants, {LABELLED: 8}),
    "belfry_tenant_waiting_seconds": (tenants, {"{cause=ack_lock,tenant=demo}": 60}),
    "belfry_tenants_waiting": (tenants, {"{cause=ack_lock}": 1, "{cause=rate}": 0}),
    "belfry_tenants_waiting_longest_seconds": (tenants, {"{cause=ack_lock}": 60}),
    "belfry_partition_owned": (held(), {"{partition=1}": 1}),
    "belfry_pending_schedules": (held(), {"{partition=1}": 3}),
    "belfry_oldest_due_seconds": (held(), {"{partition=1}": 9}),
    "belfry_waiting_seconds": (held(), {"{partition=1,waiting_for=firing}": 2}),
    "belfry_ingest_lag_records": (held(), {"{partition=1}": 4}),
    "belfry_stale_schedules": (held(), {"{partition=1}": 2}),
    "belfry_stale_longest_seconds": (held(), {"{partition=1}": 600}),
    "belfry_changelog_lag_records": (held(), {"{partition=1}": 7}),
    "belfry_standbys_warm": (held(), {"": 5}),
    "belfry_recovery_seconds": (held(), {"_sum": 1.5, "_count": 1}),
    **{
        f"belfry_store_{name}": (held(), {"{partition=1}": float(value)})
        for name, value in STORE.items()
    },
    "belfry_key_group_moves_total": (
        step(move_ends=[MoveEnd(7, 0, 2), MoveEnd(9, 1, 2, "job: one goes on")]),
        {"{outcome=moved}": 1, "{outcome=stayed}": 1},
    ),
    "belfry_key_groups_away": (groups, {"": 1}),
    "belfry_key_groups_moving": (groups, {"": 2}),
    "belfry_key_group_requests_waiting": (groups, {"": 3}),
    "belfry_topics_to_make": (surroundings, {"": 6}),
    "belfry_day_files_total": (surroundings, {"{outcome=written}": 1}),
    "belfry_day_file_payloads_total": (surroundings, {"{way=aside}": 5}),
    "belfry_day_files_awaited": (surroundings, {"{partition=3}": 2}),
    "belfry_payloads_stored_total": (surroundings, {"{outcome=stored}": 3}),
    "belfry_registry_lookups_total": (surroundings, {"{outcome=unanswered}": 1}),
    "belfry_open_transaction_seconds": (
        surroundings,
        {"{partition=2,topic=belfry.changelog}": 40.5},
    ),
    "belfry_foreign_records_total": (surroundings, {"{topic=belfry.changelog}": 3}),
    "belfry_clock_skew_seconds": (surroundings, {"": -0.25}),
    "belfry_firing_paused": (surroundings, {"": 1}),
    "belfry_ready": (surroundings, {"": 1}),
    "belfry_disk_free_bytes": (surroundings, {"": 2_000}),
    "belfry_disk_reserve_bytes": (surroundings, {"": 1_000}),
    "belfry_webhook_hosts_silent": (surroundings, {"": 2}),
    "belfry_agent_events_total": (surroundings, {"{agent=belfry.requests,event=failed}": 1}),
    "belfry_audit_events_total": (surroundings, {"{outcome=lost}": 3, "{outcome=written}": 0}),
    "belfry_spans_total": (surroundings, {"{outcome=dropped}": 4, "{outcome=exported}": 0}),
    "belfry_http_requests_total": (port, {"{method=GET,route=/v1/tenants,status=200}": 1}),
    "belfry_http_request_seconds": (port, {"_sum{route=/v1/tenants}": 0.25}),
    "belfry_build_info": (nothing, {"{app_id=mine,version=1.2.3}": 1}),
    **{
        f"belfry_process_{name}": (nothing, {"": SOME})
        for name in (
            *("cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes", "open_fds"),
            *("max_fds", "start_time_seconds", "threads"),
        )
    },
}
# The beginning of a metric's name, and the files whose tests count what begins so.
ELSEWHERE: Final = {
    "belfry_client_": ["tests/unit/telemetry/test_client_figures.py"],
    "belfry_api_key": ["tests/unit/api/test_key_uses.py"],
    "belfry_checkpoint": [
        "tests/unit/recovery/checkpoints.py",
        "tests/unit/recovery/test_checkpoint_making.py",
    ],
    "belfry_restores": ["tests/unit/recovery/checkpoints.py"],
    "belfry_mirror_": ["tests/unit/mirror/test_following.py"],
    "belfry_verify_": ["tests/unit/cli/test_verify_service.py"],
}


def series(registry: CollectorRegistry, metrics: Metrics) -> dict[str, float]:
    """All series by name and labels: ``belfry_ready``, ``belfry_x_total{outcome=FAILED}``."""
    found = [*registry.collect(), *metrics._of_tenants.collect()]
    return {
        sample.name + _labels(sample.labels): sample.value
        for family in found
        for sample in family.samples
    }


def _labels(given: dict[str, str]) -> str:
    told = ",".join(f"{name}={value}" for name, value in sorted(given.items()))
    return f"{{{told}}}" if told else ""


@pytest.mark.parametrize("name", CASES)
def test_it_is_counted(name: str) -> None:
    happens, expected = CASES[name]
    registry = CollectorRegistry()
    metrics = Metrics(registry, version="1.2.3", app_id="mine")
    happens(metrics)
    found = series(registry, metrics)
    for labels, value in expected.items():
        assert name + labels in found
        if value == SOME:
            assert found[name + labels] > 0
        else:
            assert found[name + labels] == pytest.approx(value)


def test_each_metric_is_counted_by_a_test() -> None:
    names = {family.name for family in FAMILIES}
    assert set(CASES) <= names
    for name in names - set(CASES):
        files = [path for start, path in ELSEWHERE.items() if name.startswith(start)]
        assert files, f"say in CASES what counts {name}"
        # Files of clients call them by the end of their names.
        called = name.removeprefix("belfry_client_").removesuffix("_total")
        assert any(called in (ROOT / path).read_text("utf-8") for path in files[0]), name
