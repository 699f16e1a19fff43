"""What a committed step counts in the metrics of its worker."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from belfry.engine.effects import Effects, MoveEnd
from belfry.engine.step import Step
from belfry.history.layout import HOUR_MS
from belfry.partitions.gauges import Gauges
from belfry.schedules.outcomes import Outcome
from belfry.telemetry.metrics import Metrics


def test_what_bulk_jobs_did_is_counted_by_action_and_outcome() -> None:
    registry = CollectorRegistry()
    gauges = Gauges(Metrics(registry))
    effects = Effects()
    effects.bulk["CANCEL", Outcome.CANCELLED] += 3
    effects.bulk["MOVE", Outcome.REJECTED] += 1
    gauges.committed(effects, 0.1)
    gauges.committed(effects, 0.1)

    def counted(action: str, outcome: str) -> float | None:
        labels = {"action": action, "outcome": outcome}
        return registry.get_sample_value("belfry_bulk_schedules_total", labels)

    assert counted("CANCEL", "CANCELLED") == 6
    assert counted("MOVE", "REJECTED") == 2
    assert registry.get_sample_value("belfry_requests_total", {"outcome": "CANCELLED"}) is None


def test_how_a_move_of_a_key_group_has_ended_is_told() -> None:
    effects = Effects(move_ends=[MoveEnd(7, 0, 2), MoveEnd(9, 1, 2, "job: a bulk job goes on")])
    with capture_logs() as told:
        Gauges(Metrics(CollectorRegistry())).committed(effects, 0.1)
    assert [(each["log_level"], each["group"], each.get("cause")) for each in told] == [
        ("info", 7, None),
        ("warning", 9, "job: a bulk job goes on"),
    ]


def test_where_a_check_has_failed_is_in_the_log() -> None:
    with capture_logs() as told:
        Gauges(Metrics(CollectorRegistry())).committed(Effects(failed_checks=["checks.py"]), 0.1)
    assert [(each["log_level"], each["where"]) for each in told] == [("error", "checks.py")]


def test_what_fired_is_counted_by_tenant_and_hour_where_a_clock_is_given() -> None:
    gauges = Gauges(Metrics(CollectorRegistry()), None, lambda: 8.0 * HOUR_MS)
    step = Step.alone(8 * HOUR_MS - 1, Effects(lateness={"t": [0, 1_001], "u": [0]}))
    gauges.committed(step.effects, 0.1)
    gauges.committed(Effects(), 0.1)
    assert gauges.fire_hours is not None
    assert gauges.fire_hours.of_tenant("t")[0] == {7: (2, 1)}
    assert Gauges(Metrics(CollectorRegistry())).fire_hours is None
