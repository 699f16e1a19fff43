"""A tenant that is content with at least once loses nothing, whenever its worker is killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.tenants.policy import TenantPolicy
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

EVENTS = 400


def test_killed_before_the_commit_it_repeats_and_others_do_not(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """S5: records that left beside the transaction are acknowledged, the commit is not sent."""
    with Site(kafka, unique("often"), tmp_path) as site:
        worker = site.worker(FIRE_CHUNK="100").start().wait_ready()
        policy = TenantPolicy("bulk", guarantee="AT_LEAST_ONCE")
        TenantPolicies(Cluster(kafka), site.prefix).put(policy)
        site.ask("bulk", "first", at=now_ms(), payload=b"first")
        site.wait_fired("bulk", 1)
        due = now_ms() + 3_000
        for number in range(EVENTS):
            for tenant in ("bulk", "dear"):
                site.ask_soon(tenant, f"{number}", at=due, payload=b"%d" % number)
        site.producer.flush(20)
        site.ask("bulk", "last", at=due + 3_600_000, request_id="last")
        assert site.outcome("last")["outcome"] == "ACCEPTED"
        worker.kill()
        # Steps of the take-over come first: the fires are under way by the eighth commit.
        worker.start("S5:kill:8")
        wait_for("the worker's end", lambda: worker.child.exit_code() is not None, 60)
        worker.start().wait_ready()
        wanted = {b"%d" % number for number in range(EVENTS)}
        wait_for("bulk", lambda: wanted <= {record.value for record in site.fired("bulk")})
        wait_for("dear", lambda: len(site.fired("dear")) >= EVENTS)
        dear = [record.value for record in site.fired("dear")]
        assert len(dear) == len(set(dear)) == EVENTS
        assert set(dear) == wanted
        bulk = site.fired("bulk")
        ids = {record.value: record.header("belfry-fire-id") for record in bulk}
        assert len(set(ids.values())) == len(ids) == EVENTS + 1
        assert all(record.header("belfry-fire-id") == ids[record.value] for record in bulk)
        assert min(r.timestamp_ms for r in bulk if r.value != b"first") >= due
        # No transaction touched the topic: control records would have taken offsets.
        for partition in {record.partition for record in bulk}:
            offsets = [record.offset for record in bulk if record.partition == partition]
            assert offsets == list(range(len(offsets)))
