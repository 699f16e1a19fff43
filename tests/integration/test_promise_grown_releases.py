"""A belfry grows, and a worker of a release that knows of no growth is there, or comes back.

That release takes what was added to the input for partitions that hold no schedules, and sends
their requests on. In the group it is seen, and growth refused; one that was away meanwhile finds no
position from which it could send on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from belfry.partitions.forwarding import BEYOND
from tests.acceptance.harness.failover import owned
from tests.acceptance.harness.rebalancing import ended, partitions, told
from tests.acceptance.harness.requests import policy, request
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.verifying import assert_verified
from tests.acceptance.harness.worker import Worker
from tests.integration.test_promise_versions import of_release

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HOMES, GROWN = 2, 3
TENANTS: Final = ("t-00", "t-01", "t-02", "t-03")
TOPICS: Final = ("homes", "changelog", "schedules")
GIVEN: Final = {
    "KEY_GROUP_MOVES": "true",
    "HTTP_WORKER_SECRET": "what workers of this test share",
    "CLUSTER__PARTITIONS": f"{HOMES}",
}
READY_S: Final = 120.0
# It counts homes alone, says nothing of them, and reads positions without what is said beside them.
EARLIER: Final = [
    {
        "file": "belfry/placement/partition_count.py",
        "old": "return max(self._seen)",
        "new": "return self.homes",
    },
    {
        "file": "belfry/api/routes/key_groups.py",
        "old": "            homes=moves.counted.homes,\n",
        "new": "",
    },
    {
        "file": "belfry/partitions/forwarding.py",
        "old": "if told.startswith(OVER):",
        "new": "if not told and told:",
    },
    {
        "file": "belfry/partitions/term.py",
        "old": "self.tenant_inputs is None and self.world.holds_schedules",
        "new": "self.world.changed",
    },
]


def both(site: Site, folder: Path) -> tuple[Worker, Worker]:
    """A worker of this release, and one of the earlier one, that share the homes."""
    site.schedules_topic(HOMES)
    site.fired_topics(TENANTS)
    site.create_topics([site.topic("tenants")], {"cleanup.policy": "compact"})
    for tenant in TENANTS:
        # Nothing is left of what is over: a request that is sent on once more fires once more.
        body = policy(tenant, remember_ms=0)
        site.producer.produce(site.topic("tenants"), body, tenant.encode())
    assert site.producer.flush(20) == 0
    new, earlier = site.worker(), of_release(site, EARLIER, folder)
    for each in (new, earlier):
        each.start()
    for each in (new, earlier):
        each.wait_ready(READY_S)
    wait_for("both to have a share", lambda: owned(new) and owned(earlier), READY_S)
    return new, earlier


def test_growth_is_refused_beside_a_worker_that_does_not_know_of_it(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    words = ("grow", "--partitions", f"{GROWN}", "--yes")
    with Site(kafka, unique("beside"), tmp_path, **GIVEN) as site:
        new, earlier = both(site, tmp_path / "earlier")
        code, _, error = ended(new, *words)
        assert (code, "mixed_releases" in error) == (4, True), error
        assert "does not know of growth" in error
        assert partitions(site, *TOPICS) == [0, HOMES, HOMES]
        assert earlier.stop() == 0
        assert told(new, *words)["done"]
        assert new.stop() == 0


def test_one_that_was_away_while_it_grew_sends_nothing_on_twice(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("back"), tmp_path, **GIVEN) as site:
        new, earlier = both(site, tmp_path / "earlier")
        # One that was paused comes to what was added some minutes later, when its client of the
        # group asks for metadata. A real one would not start.
        earlier.kill()
        told(new, "grow", "--partitions", f"{GROWN}", "--yes")
        assert told(new, "move", TENANTS[0], "--to", "2", "--yes")["moved"] == 1
        # Requests that came in at the partition that was added, of groups there and elsewhere.
        site.producer = Producer({"bootstrap.servers": kafka, "enable.idempotence": True})
        for tenant in TENANTS:
            site.send(request(tenant, "a", at=now_ms() + 300, payload=b"a"), partition=2)
        sent = len(TENANTS)
        wait_for("all to fire", lambda: len(site.fired(*TENANTS)) == sent, READY_S)
        new.kill()
        earlier.start()
        wait_for("it to come to the added one", lambda: f"{BEYOND}" in said(earlier), READY_S)
        wait_for("it to have the homes", lambda: owned(earlier) == set(range(HOMES)), READY_S)
        site.ask(TENANTS[0], "b", at=now_ms() + 300, payload=b"b")
        assert earlier.stop() == 0
        new.start().wait_ready(READY_S)
        wait_for("the last", lambda: len(site.fired(*TENANTS)) > sent, READY_S)
        assert len(site.fired(*TENANTS)) == sent + 1
        assert new.stop() == 0
        assert_verified(site)


def said(worker: Worker) -> str:
    """All of its log."""
    return worker.log.read_text("utf-8", errors="replace")
