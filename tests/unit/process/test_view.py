"""What a worker shows of its local stores: those that it owns, and those that it stands by for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from belfry.api.workers.view import WorkerIdentity
from belfry.delivery.answers import Answer, End
from belfry.delivery.silent_hosts import SilentHosts
from belfry.delivery.view import DeliveryView
from belfry.engine.groups import GroupFigures
from belfry.engine.ownership import Ownership
from belfry.engine.stale import NONE_STALE, StaleSchedules
from belfry.host.clock import SystemClock
from belfry.host.rocks import StoreFigures
from belfry.process.view import Running, View, stores
from belfry.telemetry.metrics import Metrics

OWNED, STOOD_BY = StoreFigures(1, 2, 3, 4, 5), StoreFigures(6, 7, 8, 9, 10)


def owners(**parts: Any) -> Any:
    given = {"runners": list, "standbys": list, **parts}
    return SimpleNamespace(**given)


def runner(partition: int, figures: StoreFigures | None, *, owned: bool = True) -> Any:
    rows = SimpleNamespace(rows=SimpleNamespace(figures=lambda: figures))
    return SimpleNamespace(partition=partition, owned=rows if owned else None)


def test_stores_of_owned_partitions_and_of_standbys_are_shown() -> None:
    standby = SimpleNamespace(partition=3, store=lambda: STOOD_BY)
    found = stores(owners(runners=lambda: [runner(1, OWNED)], standbys=lambda: [standby]))
    assert found == {1: OWNED._asdict(), 3: STOOD_BY._asdict()}


def test_what_has_no_store_just_now_is_left_out() -> None:
    lost = [runner(1, None), runner(2, OWNED, owned=False)]
    cold = SimpleNamespace(partition=3, store=lambda: None)
    assert stores(owners(runners=lambda: lost, standbys=lambda: [cold])) == {}


def view() -> tuple[View, Metrics, CollectorRegistry]:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    return View(WorkerIdentity("one", "belfry", 0), SystemClock(), metrics), metrics, registry


def test_a_worker_that_waits_at_its_start_says_for_what() -> None:
    shown, _, registry = view()
    assert shown.readiness().problems == ["the worker starts"]
    shown.awaits("no Kafka broker answers yet at k:1: Connection refused")
    (problem,) = shown.readiness().problems
    assert problem == "the worker starts: no Kafka broker answers yet at k:1: Connection refused"
    shown.refresh()
    assert registry.get_sample_value("belfry_ready") == 0


def test_a_dispatcher_that_waits_at_its_start_says_for_what() -> None:
    shown = DeliveryView(WorkerIdentity("one", "belfry", 0), Metrics(CollectorRegistry()))
    shown.awaits("no Kafka broker answers yet at k:1")
    found = shown.readiness()
    assert (found.ready, found.started) == (False, False)
    assert found.problems == ["it starts: no Kafka broker answers yet at k:1"]


def test_a_dispatcher_measures_its_readiness_and_its_hosts() -> None:
    registry = CollectorRegistry()
    shown = DeliveryView(WorkerIdentity("one", "belfry", 0), Metrics(registry))
    shown.refresh()
    assert registry.get_sample_value("belfry_ready") == 0
    silent = SilentHosts(lambda: 0.0, lambda: 0.0)
    silent.after(Answer(End.POSTPONED, "http://h:1/x", "host_silent", "silent"))
    dispatcher: Any = SimpleNamespace(ready=True, silent=silent)
    shown.show(dispatcher)
    shown.refresh()
    assert registry.get_sample_value("belfry_ready") == 1
    assert registry.get_sample_value("belfry_webhook_hosts_silent") == 1
    assert "webhook hosts do not answer: h:1" in shown.readiness().warnings[0]


def firing(partition: int, stale: StaleSchedules) -> Any:
    engine = SimpleNamespace(
        pending=1,
        position=0,
        oldest_due_ms=dict,
        tenants=dict,
        stale=SimpleNamespace(found=stale),
        groups=lambda: GroupFigures(1, 2, partition + 3),
    )
    rows = SimpleNamespace(figures=lambda: None)
    owned = SimpleNamespace(engine=engine, rows=rows, epoch=1, source=SimpleNamespace(end=0))
    arrivals, failures = SimpleNamespace(problem=""), SimpleNamespace(problem="")
    return SimpleNamespace(
        partition=partition,
        state=Ownership.FIRING,
        owned=owned,
        arrivals=arrivals,
        failures=failures,
    )


def test_stale_schedules_are_a_warning_and_a_metric() -> None:
    shown, _, registry = view()
    runners = [firing(0, NONE_STALE), firing(1, StaleSchedules(2, 1_000, "demo/a"))]
    parts: Any = {
        "owners": owners(runners=lambda: runners, answered=True, assigned=lambda: {0, 1}),
        "guard": SimpleNamespace(may_fire=True, skew_ms=0.0),
        "group": None,
        "process": SimpleNamespace(self_check=SimpleNamespace(reason="")),
        "concerns": SimpleNamespace(found=list, show=lambda _metrics: None),
    }
    shown.show(Running(**parts))
    found = shown.readiness()
    assert found.ready
    assert found.warnings[0].startswith("2 recurring schedules have not fired")
    shown.refresh()
    longest = [
        registry.get_sample_value("belfry_stale_longest_seconds", {"partition": number})
        for number in "01"
    ]
    assert longest[0] == 0
    assert (longest[1] or 0) > 1_000_000
    assert registry.get_sample_value("belfry_stale_schedules", {"partition": "1"}) == 2
    of_groups = ("groups_away", "groups_moving", "group_requests_waiting")
    values = [registry.get_sample_value(f"belfry_key_{name}") for name in of_groups]
    assert values == [2, 4, 7]
