"""What is metered of each tenant is what an auditor counts, whatever happens to the workers."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.harness.commands import belfry
from tests.acceptance.harness.http import Http
from tests.acceptance.harness.load import TENANTS, Load, Shape
from tests.acceptance.harness.reading import lifecycle_of, read_all
from tests.acceptance.harness.receiver import Receiver
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.usage_audit import UsageAudit, metered
from tests.acceptance.harness.worker import Worker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# No shorter one is allowed.
LENGTH_MS = 10_000
READY_S = 120.0
SETTINGS = {"METERING_INTERVAL_MS": str(LENGTH_MS), "LIFECYCLE": "ALL"}


def usage(worker: Worker, *options: str) -> subprocess.CompletedProcess[str]:
    """What `belfry tenant usage` says, as docs/metering.md has it typed."""
    env = {**os.environ, **worker.settings}
    command = [*belfry(), "tenant", "usage", *options]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def judged(site: Site, load: Load) -> UsageAudit:
    """An audit of all that lies in the topics now."""
    fired = [site.topic(f"fired.{tenant}") for tenant in TENANTS]
    told = [lifecycle_of(each) for each in read_all(site.bootstrap, site.topic("lifecycle"))]
    audit = UsageAudit(load.sent, told, read_all(site.bootstrap, *fired), LENGTH_MS)
    audit.run(read_all(site.bootstrap, site.topic("metering")))
    return audit


def test_usage_is_what_an_auditor_counts_though_workers_are_killed(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("metering"), tmp_path, **SETTINGS) as site:
        site.schedules_topic()
        site.fired_topics(TENANTS)
        first, second = site.worker(), site.worker()
        assert usage(first, "alpha").returncode == 3, "there is no topic yet"
        load = Load(site, Shape(60, (1.0, 6.0), 11))
        load.start()
        first.start().wait_ready(READY_S)
        time.sleep(6)
        first.kill()
        second.start("S5:kill:40").child.wait(READY_S)
        second.kill()
        first.start().wait_ready(READY_S)
        time.sleep(6)
        first.kill()
        second.start().wait_ready(READY_S)
        time.sleep(3)
        load.stop()
        # Until the period is over in which the last one fires.
        over_ms = load.last_due_ms + 2 * LENGTH_MS
        wait_for("the last period", lambda: now_ms() > over_ms, 60.0)
        wait_for("all that was used", lambda: not judged(site, load).findings or None, 60.0)
        audit = judged(site, load)
        assert sum(each["fired"] for each in audit.counted.values()) > 500
        assert len({begin for _, begin in audit.counted}) >= 3
        ran = usage(second, "alpha", "--since", "10m", "--output", "jsonl")
        assert ran.returncode == 0, ran.stderr
        told = [json.loads(each) for each in ran.stdout.splitlines()]
        counted = [
            counts for (tenant, _), counts in sorted(audit.counted.items()) if tenant == "alpha"
        ]
        assert [each["held_byte_ms"] for each in told] == [each["held_byte_ms"] for each in counted]
        assert [each["fired"] for each in told] == [each["fired"] for each in counted]
        assert "byte-hours" in usage(second, "--since", "10m").stderr
        since = now_ms() - 600_000
        status, answer, _ = Http(second)("GET", f"/v1/tenants/alpha/usage?since={since}")
        assert status == 200, answer
        assert [{"tenant": "alpha", **each} for each in answer["periods"]] == told
        assert second.stop() == 0


def test_each_delivery_is_metered_once_though_the_dispatcher_is_killed(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    more = {**SETTINGS, "WEBHOOK_PRIVATE_NETWORKS": '["127.0.0.0/8"]'}
    with Site(kafka, unique("metered"), tmp_path, **more) as site, Receiver() as receiver:
        first = site.worker().start().wait_ready(READY_S)
        due_ms = now_ms() + 3_000
        for number in range(40):
            path = "/flaky/1" if number % 10 == 0 else "/ok"
            target = {"url": receiver.url(path), "timeout_ms": 10_000, "max_attempts": 5}
            at = due_ms + 50 * number
            site.ask("hooked", f"d{number}", at=at, http_targets=[target], payload=b"{}")
        wait_for("first posts", lambda: len(receiver.received) >= 10, 60.0)
        first.kill()
        site.worker().start().wait_ready(READY_S)

        def delivered() -> int:
            told = map(lifecycle_of, site.read(site.topic("lifecycle")))
            return sum(each["outcome"] == "DELIVERED" for each in told)

        wait_for("all deliveries", lambda: delivered() == 40, 60.0)
        used = metered(site.read(site.topic("metering")))
        assert sum(each["delivered"] for each in used.values()) == 40
        assert {tenant for (tenant, _), each in used.items() if each["delivered"]} == {"hooked"}
