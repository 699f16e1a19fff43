"""A tenant whose events cannot leave is told of everywhere, and no longer once they can."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness.commands import belfry
from tests.acceptance.harness.http import Http, place
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = pytest.mark.slow

TOLD_S = 10.0
REASON = "its topic is missing"


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers."""
    return Site(kafka, unique("seen"), tmp_path)


def doctor(worker: Worker) -> list[dict[str, Any]]:
    """What `belfry doctor` says of tenants."""
    env = {**os.environ, **worker.settings}
    env["BELFRY_HTTP_URL"] = f"http://127.0.0.1:{worker.http_port}"
    command = [*belfry(), "doctor", "--output", "jsonl"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    checks = [json.loads(line) for line in ran.stdout.splitlines()]
    return [each for each in checks if each["check"] == "tenants"]


class Surfaces:
    """All that tells of a tenant."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._http = Http(worker)

    def metrics(self) -> str:
        return self._worker.get("/metrics")[1]

    def ready(self) -> list[dict[str, Any]]:
        status, answer, _ = self._http("GET", "/healthz/ready")
        assert status == 200
        found: list[dict[str, Any]] = answer["tenants_waiting"]
        return found

    def listed(self) -> dict[str, dict[str, Any]]:
        _, answer, _ = self._http("GET", "/v1/tenants")
        assert answer["tenants"] == [each["tenant"] for each in answer["figures"]]
        return {each["tenant"]: each for each in answer["figures"]}

    def schedule(self, tenant: str, schedule_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._http("GET", place(tenant, schedule_id))[1]
        return found

    def page(self) -> str:
        return self._worker.get("/console/tenants")[1]


def series(page: str, name: str, **labels: str) -> float | None:
    """The value of a series on a page of metrics."""
    for line in page.splitlines():
        told, _, value = line.rpartition(" ")
        shown = told.removesuffix("}").partition("{")
        wanted = {f'{key}="{text}"' for key, text in labels.items()}
        if shown[0] == name and set(filter(None, shown[2].split(","))) == wanted:
            return float(value)
    return None


def check_told(told: Surfaces, worker: Worker) -> None:
    """Each surface tells of `sick`, with the cause."""
    sick, well = told.listed()["sick"], told.listed()["well"]
    assert (sick["pending"], sick["fired"], sick["has_policy"]) == (2, 0, False)
    assert (well["pending"], well["fired"], well["wait"]) == (0, 1, None)
    assert sick["wait"]["cause"] == "output_topic"
    assert sick["wait"]["waiting_for"] == "tenant_blocked"
    assert REASON in sick["wait"]["reason"]
    assert sick["wait"]["oldest_due_at"] is not None
    assert sick["wait"]["since"] is not None
    assert told.ready() == [sick["wait"]]
    page = told.metrics()
    assert series(page, "belfry_tenants_waiting", cause="output_topic") == 1
    waited = series(page, "belfry_tenant_waiting_seconds", tenant="sick", cause="output_topic")
    assert waited is not None
    assert waited > 0
    assert series(page, "belfry_tenant_pending_schedules", tenant="sick") == 2
    assert series(page, "belfry_tenant_fired_total", tenant="well") == 1
    rows = [series(page, "belfry_store_rows", partition=f"{each}") for each in range(4)]
    assert sum(each or 0 for each in rows) > 0
    assert (series(page, "belfry_process_cpu_seconds_total") or 0) > 0
    shown = told.schedule("sick", "b")
    assert (shown["waiting_for"], shown["waiting_cause"]) == ("tenant_blocked", "output_topic")
    assert REASON in shown["waiting_reason"]
    assert shown["waiting_since"] == sick["wait"]["since"]
    assert "sick</a></strong> waits because its topic is missing" in told.page()
    (found,) = doctor(worker)
    assert found["status"] == "problem"
    assert "sick" in found["detail"]
    assert REASON in found["detail"]


def check_not_told(told: Surfaces, worker: Worker) -> None:
    """No surface tells of anybody any more."""
    assert told.listed()["sick"]["fired"] == 2
    assert told.ready() == []
    page = told.metrics()
    assert series(page, "belfry_tenants_waiting", cause="output_topic") == 0
    assert "belfry_tenant_waiting_seconds{" not in page
    assert "waiting_for" not in told.schedule("sick", "b")
    assert "waits because" not in told.page()
    assert [each["status"] for each in doctor(worker)] == ["ok"]


def test_a_tenant_without_a_topic_is_told_of_until_it_has_one(site: Site) -> None:
    with site:
        site.worker().start().wait_ready()
        site.fired_topics(["well"])
        worker = site.worker(CREATE_TOPICS="false")
        told = Surfaces(worker)
        asked_ms = now_ms()
        site.workers[0].stop()
        worker.start().wait_ready()
        site.ask("well", "a", at=asked_ms)
        site.ask("sick", "b", at=asked_ms + 1)
        site.ask("sick", "c", at=asked_ms + 2)
        site.wait_fired("well", 1)

        def waits() -> bool:
            found = told.listed().get("sick")
            return found is not None and found["wait"] is not None and found["wait"]["waiting"] == 2

        wait_for("the list of tenants", waits, TOLD_S)
        check_told(told, worker)

        site.fired_topics(["sick"])
        assert len(site.wait_fired("sick", 2)) == 2
        wait_for("the end of the wait", lambda: told.listed()["sick"]["wait"] is None, TOLD_S)
        check_not_told(told, worker)
