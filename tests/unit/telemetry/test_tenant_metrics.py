"""Metrics of tenants: the foremost by name, the rest as one, and counters that never fall."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from belfry.engine.tenant_figures import TenantFigures, merged
from belfry.schedules.request import TENANT
from belfry.telemetry import tenant_metrics
from belfry.telemetry.metrics import Metrics
from belfry.telemetry.tenant_metrics import OTHER, TenantLook, foremost
from belfry.tenants.waits import CAUSES, Wait, Why

NOW_MS = 100_000.0
HELD = Why("tenant_blocked", "output_topic", "its topic is missing")
LOCKED = Why("ack_lock", "ack_lock", "a fire is not acknowledged")


def figures(**given: Any) -> TenantFigures:
    return TenantFigures(**given)


def shown(metrics: Metrics, name: str, label: str = "tenant") -> dict[str, float]:
    return {
        sample.labels[label]: sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
        if sample.name == name
    }


def metrics_of(most: int) -> Metrics:
    return Metrics(CollectorRegistry(), most_tenants=most)


def test_the_rest_are_one_and_no_tenant_has_its_name() -> None:
    metrics = metrics_of(2)
    found = {
        "a": figures(pending=5, fired=9),
        "b": figures(pending=4, fired=8),
        "other": figures(pending=3, fired=7),
        "": figures(rejected=6),
    }
    metrics.tenants(TenantLook.of({(0, 1): found}, NOW_MS))
    assert shown(metrics, "belfry_tenant_pending_schedules") == {"a": 5, "b": 4, OTHER: 3}
    assert shown(metrics, "belfry_tenant_fired_total") == {"a": 9, "b": 8, OTHER: 7}
    assert shown(metrics, "belfry_tenant_rejected_total")[OTHER] == 6
    assert not TENANT.fullmatch(OTHER)


def test_a_tenant_named_other_is_not_the_rest() -> None:
    metrics = metrics_of(1)
    found = {"other": figures(pending=5, fired=9), "b": figures(pending=4, fired=8)}
    metrics.tenants(TenantLook.of({(0, 1): found}, NOW_MS))
    assert shown(metrics, "belfry_tenant_fired_total") == {"other": 9, OTHER: 8}


def test_none_is_told_apart_where_a_setting_says_so() -> None:
    metrics = metrics_of(0)
    metrics.tenants(TenantLook.of({(0, 1): {"a": figures(pending=5, fired=9)}}, NOW_MS))
    assert shown(metrics, "belfry_tenant_fired_total") == {OTHER: 9}


def test_who_comes_and_goes_takes_nothing_from_a_counter() -> None:
    metrics = metrics_of(1)
    looks = [
        (1, {"a": 10, "b": 5}, {"a": 10, OTHER: 5}),
        (1, {"a": 11, "b": 20}, {"b": 15, OTHER: 6}),
        (1, {"a": 40, "b": 21}, {"a": 29, OTHER: 7}),
        # Another owner has begun anew.
        (2, {"a": 3, "b": 1}, {"a": 32, OTHER: 8}),
        (2, {"a": 4, "b": 1}, {"a": 33, OTHER: 8}),
    ]
    for epoch, given, told in looks:
        found = {name: figures(fired=count) for name, count in given.items()}
        metrics.tenants(TenantLook.of({(0, epoch): found}, NOW_MS))
        assert shown(metrics, "belfry_tenant_fired_total") == told


def test_a_partition_that_comes_and_goes_moves_no_counter() -> None:
    metrics = metrics_of(1)
    mine, yours, anew = ({"a": figures(fired=count)} for count in (1_000, 900, 950))
    for owners, told in (
        ({(0, 1): mine, (1, 1): yours}, 1_900),
        ({(0, 1): mine}, 1_900),
        ({(0, 1): mine, (1, 3): anew}, 2_850),
    ):
        metrics.tenants(TenantLook.of(owners, NOW_MS))
        assert shown(metrics, "belfry_tenant_fired_total")["a"] == told


def test_lateness_is_a_sum_in_seconds() -> None:
    metrics = metrics_of(1)
    metrics.tenants(TenantLook.of({(0, 1): {"a": figures(fired=2, late_ms=500)}}, NOW_MS))
    assert shown(metrics, "belfry_tenant_lateness_seconds_total")["a"] == 0.5


def test_who_waits_is_shown_by_cause_with_the_age_of_the_oldest() -> None:
    metrics = metrics_of(9)
    found = {
        "a": figures(wait=Wait(HELD, 90_000, 2, 60_000)),
        "b": figures(wait=Wait(HELD, 95_000, 0, None)),
        "c": figures(wait=Wait(LOCKED, 99_000, 1, 99_000)),
        "d": figures(pending=1),
    }
    metrics.tenants(TenantLook.of({(0, 1): found}, NOW_MS))
    assert shown(metrics, "belfry_tenant_waiting_seconds") == {"a": 40, "b": 0, "c": 1}
    causes = shown(metrics, "belfry_tenant_waiting_seconds", "cause")
    assert causes.keys() == {"output_topic", "ack_lock"}
    waiting = shown(metrics, "belfry_tenants_waiting", "cause")
    assert waiting == {**dict.fromkeys(CAUSES, 0), "output_topic": 2, "ack_lock": 1}
    assert shown(metrics, "belfry_tenants_waiting_longest_seconds", "cause")["output_topic"] == 40
    metrics.tenants(TenantLook.of({}, NOW_MS))
    assert shown(metrics, "belfry_tenant_waiting_seconds") == {}
    assert not any(shown(metrics, "belfry_tenants_waiting", "cause").values())


@pytest.mark.parametrize(
    "figure", [{"pending": 1}, {"fired": 1}, {"rejected": 1}, {"late_ms": 1}], ids=str
)
def test_whoever_is_first_by_a_figure_is_among_the_foremost(figure: dict[str, int]) -> None:
    found = {f"t{number}": figures() for number in range(9)} | {"first": figures(**figure)}
    assert foremost(TenantLook.of({(0, 1): found}, NOW_MS), 1) == ["first"]


@pytest.mark.parametrize("most", [0, 1, 5, 30])
def test_as_many_as_wanted_are_chosen_though_figures_agree_on_some(most: int) -> None:
    """Each figure names its largest, in turn; who was named already is not named twice."""
    found = {f"t{n:02}": figures(pending=n % 4, fired=n, late_ms=40 - n) for n in range(40)}
    by_pending = sorted((-(n % 4), f"t{n:02}") for n in range(40) if n % 4)
    by_fired = [f"t{n:02}" for n in range(39, 0, -1)]
    by_lateness = [f"t{n:02}" for n in range(40)]
    in_turn = zip([name for _, name in by_pending], by_fired, by_lateness, strict=False)
    names = dict.fromkeys(name for names in in_turn for name in names)
    assert foremost(TenantLook.of({(0, 1): found}, NOW_MS), most) == list(names)[:most]


def test_who_waits_comes_before_all_others() -> None:
    found = {
        "busy": figures(pending=9, fired=9),
        "late": figures(wait=Wait(HELD, 1, 1, 1)),
        "later": figures(wait=Wait(HELD, 1, 1, 2)),
    }
    assert foremost(TenantLook.of({(0, 1): found}, NOW_MS), 1) == ["late"]


def test_strangers_are_shown_no_tenant() -> None:
    metrics = metrics_of(9)
    metrics.tenants(TenantLook.of({(0, 1): {"shop": figures(fired=1)}}, NOW_MS))
    assert b"shop" in metrics.exposition()
    assert b"shop" not in metrics.exposition(tenants=False)


def test_figures_of_several_partitions_are_added_up() -> None:
    found = merged(
        [
            TenantFigures(1, 2, 3, 4, Wait(HELD, 5, 1, 70)),
            TenantFigures(10, 20, 30, 40, Wait(LOCKED, 6, 2, 60)),
            TenantFigures(100),
        ]
    )
    assert found == TenantFigures(111, 22, 33, 44, Wait(LOCKED, 6, 3, 60))


def test_two_belfrys_are_told_apart() -> None:
    metrics = Metrics(CollectorRegistry(), "1.2.3", "bells")
    assert b'belfry_build_info{app_id="bells",version="1.2.3"} 1.0' in metrics.exposition()


def test_what_was_accepted_and_delivered_is_shown_of_the_tenant() -> None:
    metrics = metrics_of(2)
    metrics.tenants(TenantLook.of({(0, 1): {"a": figures(accepted=5, fired=9)}}, NOW_MS))
    metrics.delivered({"DELIVERED": 2, "FAILED": 1}, {"b": 2})
    assert shown(metrics, "belfry_tenant_accepted_total") == {"a": 5, "b": 0, OTHER: 0}
    metrics.delivered({"DELIVERED": 3}, {"b": 1, "c": 2})
    assert shown(metrics, "belfry_tenant_delivered_total") == {"a": 0, "b": 3, OTHER: 2}
    assert shown(metrics, "belfry_deliveries_total", "outcome") == {
        "DELIVERED": 5,
        "RETRIED": 0,
        "FAILED": 1,
        "SETTLED": 0,
    }


def test_names_of_deliveries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_metrics, "MOST_DELIVERED", 1)
    metrics = metrics_of(5)
    for name in ("a", "b", "a", "c"):
        metrics.delivered({}, {name: 1})
    assert shown(metrics, "belfry_tenant_delivered_total") == {"a": 2, OTHER: 2}
