"""What belfry measures of itself: a worker that is stopped is an outage, and told as one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belfry.canary import objectives
from belfry.canary.objectives import Report
from belfry.canary.rows import slots_until
from belfry.canary.slots import AHEAD_MS
from belfry.client.kafka import Cluster
from belfry.tenants.canary import CANARY, SLO_TOPIC
from tests.acceptance.harness.commands import belfry
from tests.acceptance.harness.http import Http
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker
from tests.integration.test_promise_tenants_seen import series

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

OUTAGE_MS = 9_000
# What is not due yet when the next owner is there was not missed.
MISSED = 4 * (OUTAGE_MS - AHEAD_MS) / 1000
READY_S = 120.0
# So long an event may need on a busy machine.
LATE_MS = 2_000
SETTINGS = {"CANARY_INTERVAL_MS": "1000", "HTTP_WORKER_SECRET": "one that workers share"}


def slo(worker: Worker, *options: str) -> subprocess.CompletedProcess[str]:
    """What `belfry slo` says, as docs/slo.md has it typed."""
    env = {**os.environ, **worker.settings}
    command = [*belfry(), "slo", "--output", "json", *options]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def report(worker: Worker) -> dict[str, Any]:
    """The report, with objectives by name."""
    ran = slo(worker, "--since", "10m")
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found | {each["objective"]: each for each in found["objectives"]}


def measured(site: Site) -> Report:
    """What all workers have written down, up to events that may just have come out."""
    until_ms = now_ms() - AHEAD_MS - LATE_MS
    cluster = Cluster(site.bootstrap)
    book = slots_until(cluster, site.topic(SLO_TOPIC), until_ms - 600_000, until_ms)
    found = objectives.report(book.rows.values(), until_ms - 600_000, until_ms)
    assert found is not None
    return found


def counted(worker: Worker, what: str) -> float:
    """One of the canary's counters."""
    return series(worker.get("/metrics")[1], f"belfry_slo_{what}_total") or 0.0


def test_a_stopped_worker_makes_availability_fall(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("canary"), tmp_path, **SETTINGS) as site:
        first = site.worker()
        assert slo(first).returncode == 3, "nothing was measured yet"
        first.start().wait_ready(READY_S)
        wait_for("events that came out", lambda: counted(first, "fired") >= 8, 60.0)
        # A stranger's request under its name is refused: it is not signed.
        site.ask(CANARY, "0.0.0", at=now_ms(), payload=b"0/1/1000", request_id="forged")
        assert site.outcome("forged")["code"] == "unsigned"
        listed = Http(first)("GET", "/v1/tenants")[1]["tenants"]
        assert CANARY not in listed
        first.kill()
        stopped_ms = now_ms()
        wait_for("an outage", lambda: now_ms() - stopped_ms > OUTAGE_MS)

        second = site.worker().start().wait_ready(READY_S)
        wait_for("events that come out again", lambda: counted(second, "registered") >= 40, 60.0)
        asked = counted(second, "asked")
        assert asked - counted(second, "registered") >= MISSED, "as many were owed"
        stands = measured(site)
        availability, reach, _ = stands.objectives()
        assert availability.of - availability.good >= MISSED
        assert availability.good > 8
        assert not availability.met
        assert reach.met, stands
        # What is younger than half a minute is not judged.
        wait_for("a report", lambda: slo(second, "--since", "10m").returncode == 0, 60.0)
        told = report(second)
        assert told["availability"]["goal"] == 0.9995
        assert 0 < told["events"] <= measured(site).slots
        second.stop()
