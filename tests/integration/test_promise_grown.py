"""A belfry is given more partitions under a load, and groups lie in them: nothing is lost or early.

Two homes become four partitions. Groups of tenants move into the new ones while requests come in
and events fire; the owner of all of them is killed, and everything is audited. One group moves on
from one new partition to the other, and one goes home again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from belfry.devstack import Stack
from belfry.partitions.forwarding import BEYOND, OVER
from belfry.placement.key_groups import KeyGroups
from tests.acceptance.harness.follow import Follower
from tests.acceptance.harness.load import Load, Shape
from tests.acceptance.harness.rebalancing import ended, partitions, rebalance, told
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.verifying import assert_verified

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

HOMES, GROWN = 2, 4
TENANTS: Final = tuple(f"t-{number:02}" for number in range(8))
GIVEN: Final = {
    "KEY_GROUP_MOVES": "true",
    "HTTP_WORKER_SECRET": "what workers of this test share",
    "CLUSTER__PARTITIONS": f"{HOMES}",
}
READY_S: Final = 240.0
TOPICS: Final = ("homes", "changelog", "schedules")


def put(site: Site, schedule_id: str, partition: int) -> None:
    """A request of tenant t, due soon, on a partition that its sender names."""
    at = str(now_ms() + 500).encode()
    headers = [("belfry-tenant", b"t"), ("belfry-id", schedule_id.encode()), ("belfry-at", at)]
    site.send(b"1", headers=headers, partition=partition)


def test_a_belfry_grows_under_load_and_nothing_is_lost(
    kafka: str, idle_stack: Stack, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("grown"), tmp_path, **GIVEN) as site:
        site.schedules_topic(HOMES)
        site.fired_topics(TENANTS)
        worker, other = site.worker(), site.worker()
        worker.start().wait_ready(READY_S)
        other.start().wait_ready(READY_S)
        load = Load(site, Shape(60, (1.0, 8.0), 5), tenants=TENANTS, partitions=HOMES)
        load.start()

        would = told(worker, "grow", "--partitions", f"{GROWN}", "--dry-run")
        assert [each["to"] for each in would["steps"]] == [HOMES, GROWN, GROWN]
        assert partitions(site, *TOPICS) == [0, HOMES, HOMES]
        done = told(worker, "grow", "--partitions", f"{GROWN}", "--limit", f"{READY_S}", "--yes")
        assert (done["homes"], done["partitions"], done["done"]) == (HOMES, GROWN, True)
        assert partitions(site, *TOPICS) == [HOMES, GROWN, GROWN]
        # Once more is nothing more.
        assert told(worker, "grow", "--partitions", f"{GROWN}", "--yes")["steps"] == []

        # From here on requests come in at the new partitions too, by key and by chance.
        time.sleep(3.0)
        load.partitions = GROWN
        groups = KeyGroups(HOMES)
        first, second = TENANTS[0], TENANTS[1]
        assert told(worker, "move", first, "--to", "2", "--limit", "120", "--yes")["moved"] == 1
        assert told(worker, "move", second, *TENANTS[2:4], "--to", "3", "--yes")["moved"]
        owners = [worker, other]
        for each in owners:
            each.kill()
        for each in owners:
            each.start()
        for each in owners:
            each.wait_ready(READY_S)

        def moved(tenant: str, to: int) -> bool:
            code, out, _ = ended(worker, "move", tenant, "--to", f"{to}", "--yes")
            return code == 0 and json.loads(out)["moved"] == 1

        # On from one new partition to the other, and home again.
        wait_for("the group moves on", lambda: moved(first, 3), READY_S)
        wait_for(
            "the group goes home", lambda: moved(second, groups.home(groups.of(second))), READY_S
        )
        lies = {each["group"]: each for each in told(worker, "status")["key_groups"]}
        assert lies[groups.of(first)]["lies"] == 3
        assert groups.of(second) not in lies

        follower = Follower(site, load.stop(), TENANTS, idle_stack.kafka.log_dir)
        report = follower.drain(max(load.last_due_ms, now_ms()))
        follower.close()
        assert not report.findings, report.summary()
        assert report.fired > 100
        for each in owners:
            assert each.stop() == 0
        assert_verified(site)


def test_a_kill_of_the_command_and_of_a_worker_amid_growth_costs_nothing(
    kafka: str, idle_stack: Stack, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """The changelog has more partitions than the input then; given again, the command ends it."""
    words = ("grow", "--partitions", f"{GROWN}", "--yes")
    with Site(kafka, unique("halfway"), tmp_path, **GIVEN) as site:
        site.schedules_topic(HOMES)
        site.fired_topics(TENANTS)
        worker, other = site.worker(), site.worker()
        for each in (worker, other):
            each.start()
        for each in (worker, other):
            each.wait_ready(READY_S)
        load = Load(site, Shape(60, (1.0, 5.0), 7), tenants=TENANTS, partitions=HOMES)
        load.start()
        with rebalance(worker, *words) as command:
            wait_for("more state", lambda: partitions(site, "changelog") != [HOMES], READY_S)
            command.kill()
        other.kill()
        found = partitions(site, *TOPICS)
        other.start()
        assert found == [HOMES, GROWN, HOMES]
        # Nobody holds what was added, and nothing goes there, until all of it is done.
        assert told(worker, *words)["done"]
        assert partitions(site, *TOPICS) == [HOMES, GROWN, GROWN]
        assert told(worker, "move", TENANTS[0], "--to", "3", "--yes")["moved"] == 1
        # Some come in at the new partitions too, before nothing more does.
        load.partitions = GROWN
        time.sleep(1.0)
        follower = Follower(site, load.stop(), TENANTS, idle_stack.kafka.log_dir)
        report = follower.drain(max(load.last_due_ms, now_ms()))
        follower.close()
        assert not report.findings, report.summary()
        assert report.fired > 100
        assert worker.stop() == other.stop() == 0
        assert_verified(site)


def test_a_partition_that_sent_requests_on_comes_to_hold_schedules(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """Its topic of requests was altered long before: what was sent on is not sent on once more."""
    with Site(kafka, unique("regrown"), tmp_path, **GIVEN) as site:
        site.schedules_topic(HOMES)
        worker = site.worker()
        worker.start().wait_ready(READY_S)
        admin = AdminClient({"bootstrap.servers": site.bootstrap})
        for future in admin.create_partitions([NewPartitions(site.topic("schedules"), 3)]).values():
            future.result(10)
        worker.stop()
        worker.start().wait_ready(READY_S)
        put(site, "x", partition=2)
        assert len(site.wait_fired("t", 1)) == 1
        told(worker, "grow", "--partitions", "3", "--limit", f"{READY_S}", "--yes")
        assert told(worker, "move", "t", "--to", "2", "--yes")["moved"] == 1
        put(site, "y", partition=2)
        assert len(site.wait_fired("t", 2)) == 2
        assert worker.stop() == 0
        assert_verified(site)
        # A worker whose broker does not know of it yet is told that nothing is sent on any more.
        group = {"bootstrap.servers": kafka, "group.id": f"{site.name}.ingress"}
        with closing(Consumer(group)) as consumer:
            place = TopicPartition(site.topic("schedules"), 2)
            (kept,) = consumer.committed([place], timeout=10)
        assert (kept.offset, kept.metadata) == (BEYOND, f"{OVER}1")


def test_growth_is_refused_where_groups_may_not_move(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    given = {name: value for name, value in GIVEN.items() if name != "KEY_GROUP_MOVES"}
    with Site(kafka, unique("stays"), tmp_path, **given) as site:
        site.schedules_topic(HOMES)
        worker = site.worker()
        worker.start().wait_ready(READY_S)
        code, _, error = ended(worker, "grow", "--partitions", f"{GROWN}", "--yes")
        assert code == 4
        assert "moves_not_allowed" in error
        code, _, error = ended(worker, "grow", "--partitions", "1", "--yes")
        assert code == 4
        assert "fewer_partitions" in error
        assert partitions(site, *TOPICS) == [0, HOMES, HOMES]
