"""`belfry rebalance plan`, as docs/rebalance.md has it: what it says of a running belfry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belfry.schedules.identity import partition_of
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

READY_S = 60.0
# Of four partitions, shop and cars live in 0, music lives in 1.
WAITING = {"shop": 8, "cars": 6, "music": 1}


def rebalance(worker: Worker, *options: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **worker.settings}
    env["BELFRY_HTTP_URL"] = f"http://127.0.0.1:{worker.http_port}"
    command = [sys.executable, "-m", "belfry.cli", "rebalance", "plan", *options]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_the_plan_tells_what_lies_where_and_changes_nothing(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("even"), tmp_path) as site:
        worker = site.worker().start().wait_ready(READY_S)
        for tenant, waiting in WAITING.items():
            for number in range(waiting):
                site.ask(tenant, f"s{number}", at=now_ms() + 3_600_000)

        def told() -> dict[str, Any] | None:
            ran = rebalance(worker, "--over", "0", "--output", "json")
            assert ran.returncode == 0, ran.stderr
            found: dict[str, Any] = json.loads(ran.stdout)
            waits = sum(each["pending"] for each in found["partitions"])
            return found if waits == sum(WAITING.values()) else None

        found = wait_for("all that waits", told, 30.0)
        assert found is not None
        assert [each["pending"] for each in found["partitions"]] == [14, 1, 0, 0]
        (cars, *others) = found["moves"]
        assert (cars["tenants"], cars["from"], cars["pending"]) == (["cars"], 0, 6)
        assert all(each["from"] != each["to"] for each in (cars, *others))
        assert partition_of(b"cars", 4) == 0
        people = rebalance(worker, "--over", "1", "--partitions", "8")
        assert people.returncode == 0, people.stderr
        assert "Counting fires for 1 s" in people.stderr
        assert "cars" in people.stdout
        assert told() == found
