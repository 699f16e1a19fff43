"""Who stands by is warm, who is unfit lets go, and who cannot read a changelog does not guess."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient

from belfry.balance.heartbeat import read_heartbeat
from tests.acceptance.harness.failover import divided, owned
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = pytest.mark.slow


def cluster(worker: Worker) -> dict[str, Any]:
    """What a worker says of its cluster."""
    status, page = worker.get("/v1/cluster")
    return dict(json.loads(page)) if status == 200 else {"members": [], "standbys": []}


def heartbeats(site: Site) -> dict[str, frozenset[int]]:
    """Which workers keep a heartbeat that vouches for partitions, and for which."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    group = ConsumerGroupTopicPartitions(f"{site.name}.heartbeats")
    (asked,) = admin.list_consumer_group_offsets([group]).values()
    try:
        told = [read_heartbeat(each.metadata) for each in asked.result(10).topic_partitions]
    except UnicodeDecodeError:
        # This client now and then reads a text beyond its end: its callers look again.
        return {}
    return {beat.worker: beat.well for beat in told if beat is not None and beat.well}


def moved(worker: Worker, cause: str) -> dict[int, str | None]:
    """From whom it says that it took partitions over for this cause, with how long it took."""
    told = cluster(worker)["workers"][0]["take_overs"]
    found = [each for each in told if each["cause"] == cause]
    assert all(0 <= each["took_seconds"] < 60 for each in found)
    return {each["partition"]: each["former"] for each in found}


def all_warm(worker: Worker) -> bool:
    """Whether it stands by for two partitions, and could take over at once."""
    standbys = cluster(worker)["standbys"]
    return len(standbys) == 2 and all(each["warm"] for each in standbys)


def beside_each_other(members: list[dict[str, Any]]) -> bool:
    """Whether there are two, and each stands by for what the other one owns."""
    if len(members) != 2:
        return False
    pairs = (members, members[::-1])
    return all(sorted(a["stands_by"]) == sorted(b["owns"]) for a, b in pairs)


def test_a_standby_takes_over_long_before_the_session_is_over(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """The session is a minute, so it is not the group that notices."""
    given = {"SESSION_TIMEOUT_MS": "60000", "CLIENT_STATISTICS_INTERVAL_MS": "200"}
    with Site(kafka, unique("warm"), tmp_path, **given) as site:
        one, other = site.worker().start(), site.worker().start()
        wait_for("everybody to have a share", lambda: divided([one, other]), 60)
        wait_for("warm standbys", lambda: all_warm(one) and all_warm(other), 30)
        told = 'belfry_client_disconnects_total{broker="1",client="changelog"}'
        wait_for("figures of its readers", lambda: told in other.get("/metrics")[1], 20)
        # The map is told with an assignment; the one that made two and two may be on its way.
        wait_for(
            "an assignment map of two", lambda: beside_each_other(cluster(other)["members"]), 30
        )
        wait_for("heartbeats of both", lambda: len(heartbeats(site)) == 2, 30)
        for number in range(16):
            site.ask(f"t{number}", "x", at=now_ms() + 2_000, payload=b"%d" % number)
        left, name = owned(one), cluster(one)["workers"][0]["worker_id"]
        one.kill()
        wait_for("the standby to own all", lambda: owned(other) == set(range(4)), 30)
        assert moved(other, "owner_silent") == dict.fromkeys(left, name)
        tenants = [f"t{number}" for number in range(16)]
        wait_for("all of them", lambda: len(site.fired(*tenants)) == 16, 30)
        assert other.stop() == 0


def test_a_former_owner_that_fences_late_is_fenced_in_turn(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """It last looked at the group before the partitions moved, and fenced after the successor did.

    Its successor would not hear of that for half a minute, until its next commit.
    """
    with Site(kafka, unique("late"), tmp_path, SESSION_TIMEOUT_MS="60000") as site:
        one = site.worker().start("R1:late:12")
        wait_for("a take-over", lambda: '"event":"assigned"' in one.log.read_text(), 30)
        other = site.worker().start()
        wait_for("a late fence", lambda: "fenced off by another" in other.log.read_text(), 50)
        wait_for("warm standbys", lambda: all_warm(one) and all_warm(other), 15)
        assert divided([one, other])


def test_a_worker_that_counts_as_unfit_lets_go(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """No disk has so much room; the other worker takes all, and the unfit one says why."""
    with Site(kafka, unique("unfit"), tmp_path, SESSION_TIMEOUT_MS="6000") as site:
        fit = site.worker().start().wait_ready()
        unfit = site.worker(DISK_RESERVE_MB="1000000", UNFIT_LIMIT_MS="1000").start()
        wait_for("the unfit one to leave", lambda: "is unfit and gives" in unfit.said(), 60)
        wait_for(
            "everything to be with the other",
            lambda: owned(fit) == set(range(4)) and not owned(unfit),
            60,
        )
        status, page = unfit.get("/healthz/ready")
        assert status == 503
        assert "BELFRY_DISK_RESERVE_MB" in page
        assert unfit.get("/healthz/live")[0] == 200
        site.ask("t", "x", at=now_ms(), payload=b"1")
        assert len(site.wait_fired("t", 1)) == 1


def test_a_record_of_a_later_version_stops_its_partition_and_no_other(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("later"), tmp_path) as site:
        worker = site.worker().start().wait_ready()
        place = site.ask("t", "x", at=now_ms(), payload=b"1")
        site.wait_fired("t", 1)
        home = place.partition()
        assert worker.stop() == 0
        _write_as_a_later_version(site, home)
        worker.start()
        wait_for("a sentence", lambda: "Run the version that wrote it" in problems(worker), 40)
        wait_for("the others to fire", lambda: owned(worker) == set(range(4)) - {home}, 40)
        assert worker.ready is False


def problems(worker: Worker) -> str:
    """What a worker's readiness says is missing."""
    return worker.get("/healthz/ready")[1]


def _write_as_a_later_version(site: Site, partition: int) -> None:
    """A transaction of a format that no release knows yet: a row, and its manifest."""
    producer = Producer({"bootstrap.servers": site.bootstrap, "transactional.id": site.name})
    producer.init_transactions(10)
    producer.begin_transaction()
    for key, value in ((b"t/new", b"\t\1what it means"), (b"\0m\0\x63", b"\t\4and this")):
        producer.produce(site.topic("changelog"), value, key, partition=partition)
    producer.commit_transaction(10)
