"""What a worker reads comes to it through Faust's agents, and by no other way."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.tenants.policy import TenantPolicy
from tests.acceptance.harness.receiver import Receiver
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = pytest.mark.slow

STREAMS = ("requests", "tenant-inputs", "policies", "deliveries", "history")
AGENTS = {f"belfry.{name}" for name in STREAMS}
STAMPED = {"message.timestamp.type": "LogAppendTime"}
# Python runs this at the start of the worker: it notes each batch that an agent passes on, and
# makes one of the agents lose its batches.
WATCH = """
import os
from belfry.group.batch_agent import BatchAgent

hand_over = BatchAgent.hand_over

def watched(self, partition, offset, pass_on, topic=None):
    def noted():
        with open(os.environ["AGENTS_SEEN"], "a") as seen:
            seen.write(self.name + "\\n")
        if self.name != os.environ["AGENT_LOST"]:
            pass_on()

    hand_over(self, partition, offset, noted, topic)

BatchAgent.hand_over = watched
"""


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers, which posts to this machine as well."""
    private = {"WEBHOOK_PRIVATE_NETWORKS": '["127.0.0.0/8"]', "LIFECYCLE": "ALL"}
    return Site(kafka, unique("agents"), tmp_path, **private)


def watched(site: Site, tmp_path: Path, lost: str = "") -> tuple[Worker, Path]:
    """A worker whose agents are watched, and where it is noted what they passed on."""
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    seen = tmp_path / "seen"
    seen.touch()
    worker = site.worker()
    path = f"{tmp_path}:{Path(__file__).parents[2] / 'app'}"
    worker.settings |= {"PYTHONPATH": path, "AGENTS_SEEN": str(seen), "AGENT_LOST": lost}
    return worker, seen


def test_every_stream_of_a_worker_comes_through_its_agent(site: Site, tmp_path: Path) -> None:
    with site, Receiver() as receiver:
        worker, seen = watched(site, tmp_path)
        site.create_topics([site.topic("schedules.mine")], STAMPED)
        worker.start().wait_ready()
        TenantPolicies(Cluster(site.bootstrap), site.prefix).put(TenantPolicy("hooked"))
        target = {"url": receiver.url("/ok"), "timeout_ms": 10_000}
        site.ask("hooked", "posted", at=now_ms(), payload=b"1", http_targets=[target])
        value = request("mine", "own", at=now_ms(), payload=b"2")
        site.producer.produce(site.topic("schedules.mine"), value)
        site.producer.flush(10)
        assert [record.value for record in site.wait_fired("mine", 1)] == [b"2"]
        wait_for("the post", lambda: receiver.at("/ok"))
        wait_for("all agents", lambda: set(seen.read_text().split()) == AGENTS)


def test_what_the_agent_of_requests_loses_never_comes_to_be(site: Site, tmp_path: Path) -> None:
    with site:
        worker, seen = watched(site, tmp_path, lost="belfry.requests")
        worker.start().wait_ready()
        site.ask("t", "lost", at=now_ms(), payload=b"1")
        wait_for("the batch", lambda: "belfry.requests" in seen.read_text())
        time.sleep(2.0)
        assert not site.read(site.topic("lifecycle"))
