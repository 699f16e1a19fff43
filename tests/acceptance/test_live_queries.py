"""Dashboards and alerts, asked of a Prometheus that scrapes a worker: each query has an answer."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.acceptance.harness.prometheus import Prometheus, program
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.architecture.tree import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(program() is None, reason="no Prometheus here: `make alerts` fetches one"),
]

DASHBOARDS: Final = [
    json.loads(path.read_text("utf-8")) for path in sorted((ROOT / "dashboards").glob("*.json"))
]
SETTINGS: Final = {"CANARY_INTERVAL_MS": "1000", "HTTP_WORKER_SECRET": "one that workers share"}
# Metrics that have no series as long as nothing of their kind has happened.
SILENT: Final = (
    "belfry_agent_events_total",
    "belfry_bulk_schedules_total",
    "belfry_changelog_lag_records",
    "belfry_delivery_seconds",
    "belfry_checkpoint_timestamp_seconds",
    "belfry_foreign_records_total",
    "belfry_open_transaction_seconds",
    "belfry_tenant_waiting_seconds",
    # Of `belfry verify`, which is no worker.
    "belfry_verify_",
    # Of `belfry mirror run`, likewise.
    "belfry_mirror_",
)
RATES: Final = (
    "sum(rate(belfry_fired_total[1m])) > 0",
    "sum(rate(belfry_slo_fired_total[1m])) > 0",
    "rate(belfry_rejected_total[1m])",
)


def expressions(panels: list[dict[str, Any]]) -> Iterator[str]:
    """Each query, with all variables filled in."""
    for panel in panels:
        yield from expressions(panel.get("panels", []))
        for target in panel.get("targets", []):
            given = target["expr"].replace("$__rate_interval", "1m")
            yield given.replace("$instance", ".*").replace("$tenant", ".*")


@pytest.fixture(scope="module")
def prometheus(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One that has seen a worker for some seconds, in which events fired and one was refused."""
    home = tmp_path_factory.mktemp("queries")
    settings = {**SETTINGS, "DAY_STORE": (home / "days").as_uri()}
    with Site(kafka, f"queries-{uuid.uuid4().hex[:8]}", home, **settings) as site:
        worker = site.worker().start().wait_ready()
        with Prometheus(home / "prometheus", [worker.http_port]) as asked:
            site.ask("demo", "first", at=now_ms(), payload=b"first")
            site.wait_fired("demo", 1)
            wait_for("a scrape", lambda: asked.query("belfry_fired_total"))
            site.ask("demo", "later", at=now_ms() + 3_600_000, payload=b"later")
            site.ask("demo", "", at=now_ms())
            site.ask("demo", "second", at=now_ms(), payload=b"second")
            wait_for("rates", lambda: all(map(asked.query, RATES)), timeout_s=60)
            yield asked


QUERIES: Final = [each for board in DASHBOARDS for each in expressions(board["panels"])]


@pytest.mark.parametrize("expression", dict.fromkeys(QUERIES))
def test_a_query_of_a_dashboard_tells_something(prometheus: Prometheus, expression: str) -> None:
    found = prometheus.query(expression)
    silent = [name for name in SILENT if name in expression]
    assert bool(found) is not bool(silent), (expression, found)


def test_each_alert_can_be_evaluated_and_none_is_told_where_all_is_well(
    prometheus: Prometheus,
) -> None:
    rules = wait_for("evaluations", lambda: _evaluated(prometheus))
    assert {rule["health"] for rule in rules} == {"ok"}, rules
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


def _evaluated(prometheus: Prometheus) -> list[dict[str, Any]]:
    """All rules once each was evaluated; else none."""
    rules = prometheus.rules()
    return rules if all(rule["health"] != "unknown" for rule in rules) else []
