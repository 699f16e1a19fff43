"""What strangers write into the changelog becomes no state and stops nobody, where workers sign."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from belfry.cli.check import Check, Status
from belfry.cli.doctor_changelog import changelog_checks
from belfry.settings import Settings
from belfry.store.signatures import is_signed
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = pytest.mark.slow

SECRET = "the first secret of all workers"
OTHER = "the second secret of all workers"
TENANTS = [f"t{number}" for number in range(12)]
LATER_MS = 3_600_000

Record = tuple[int, bytes | None, bytes | None]


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers."""
    return Site(kafka, unique("signed"), tmp_path, HTTP_WORKER_SECRET=SECRET)


def changelog(site: Site) -> list[Record]:
    """All records of the changelog: partition, key, value."""
    consumer = Consumer(
        {"bootstrap.servers": site.bootstrap, "group.id": "looks", "enable.partition.eof": True}
    )
    topic = site.topic("changelog")
    consumer.assign([TopicPartition(topic, each, 0) for each in range(4)])
    found: list[Record] = []
    ended = 0
    while ended < 4:
        message = consumer.poll(10)
        assert message is not None
        if message.error() is not None:
            ended += 1
            continue
        found.append((message.partition() or 0, message.key(), message.value()))
    consumer.close()
    return found


def _has_ended(worker: Worker) -> bool:
    return worker.child.exit_code() is not None


def rogue(site: Site, records: Sequence[Record]) -> None:
    """A producer that has the right to write to the changelog and knows no secret."""
    producer = Producer({"bootstrap.servers": site.bootstrap})
    for partition, key, value in records:
        producer.produce(site.topic("changelog"), value, key, partition=partition)
    producer.flush(20)


def cold(worker: Worker) -> Worker:
    """The worker once more, with nothing on its disk."""
    assert worker.stop() == 0
    shutil.rmtree(worker.data_dir)
    return worker.start().wait_ready()


def ask_all(site: Site, name: str, at: int) -> None:
    for tenant in TENANTS:
        payload = f"{tenant}/{name}".encode()
        site.ask(tenant, name, at=at, payload=payload, request_id=f"{tenant}-{name}")
    wait_for("verdicts", lambda: len(site.outcomes()) >= len(TENANTS))


def trigger_all(site: Site, name: str) -> None:
    """Fire what waits, and see that it does so once."""
    for tenant in TENANTS:
        site.ask(tenant, name, action="TRIGGER")
    wanted = Counter(f"{tenant}/{name}".encode() for tenant in TENANTS)
    wait_for("fires", lambda: Counter(r.value for r in site.fired(*TENANTS)) >= wanted)
    assert Counter(r.value for r in site.fired(*TENANTS)) == wanted


def all_signed(worker: Worker) -> None:
    """Wait until the worker has signed what was written before."""
    told = "all rows of the changelog are signed"
    wait_for(told, lambda: worker.log.read_text().count(told) >= 4)
    worker.log.write_text("")


def signatures(site: Site) -> list[Check]:
    """What `belfry doctor` says of the changelog."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", site.prefix)
        patch.setenv("BELFRY_CLUSTER__APP_ID", site.name)
        settings = Settings(bootstrap_servers=site.bootstrap)
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    return list(changelog_checks(admin.list_topics(timeout=10), settings))


def foreign(worker: Worker) -> float:
    """How many records the worker has skipped."""
    lines = worker.get("/metrics")[1].splitlines()
    name = "belfry_foreign_records_total{"
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@pytest.mark.timeout(240)
def test_twelve_events_in_the_changelog_stop_no_take_over(site: Site) -> None:
    with site:
        site.fired_topics(TENANTS)
        worker = site.worker(CHANGELOG="signed").start().wait_ready()
        ask_all(site, "kept", now_ms() + LATER_MS)
        events = [
            (number % 4, b"order/%d" % number, b"\x01\x01 an event of somebody" * 3)
            for number in range(12)
        ]
        forged = [(p, key, b"\2" + bytes(8) + (value or b"")[9:]) for p, key, value in
                  changelog(site) if key is not None and key.startswith(b"t")]  # fmt: skip
        rogue(site, forged)
        cold(worker)
        assert foreign(worker) >= len(forged)
        worker.settings["BELFRY_CHANGELOG"] = "required"
        cold(worker)
        assert [each.status for each in signatures(site)] == [Status.OK]
        rogue(site, [(2, b"t0/forged", b"\1\1 a row that nobody signed")])
        (unsigned,) = signatures(site)
        assert unsigned.status is Status.PROBLEM
        assert "1 of the newest records of partition 2 are not signed" in unsigned.detail
        rogue(site, events)
        cold(worker)
        assert foreign(worker) >= len(forged) + len(events)
        trigger_all(site, "kept")


@pytest.mark.timeout(240)
def test_a_running_belfry_goes_over_to_signed_rows_and_to_another_secret(site: Site) -> None:
    with site:
        site.fired_topics(TENANTS)
        worker = site.worker().start().wait_ready()
        ask_all(site, "kept", now_ms() + LATER_MS)
        assert not any(is_signed(value or b"") for _, _, value in changelog(site))
        worker.stop()
        worker.settings["BELFRY_CHANGELOG"] = "signed"
        worker.start().wait_ready()
        all_signed(worker)
        worker.settings["BELFRY_CHANGELOG"] = "required"
        cold(worker)
        worker.settings["BELFRY_HTTP_WORKER_SECRET"] = OTHER
        worker.settings["BELFRY_HTTP_WORKER_SECRET_ALSO"] = SECRET
        cold(worker)
        all_signed(worker)
        del worker.settings["BELFRY_HTTP_WORKER_SECRET_ALSO"]
        cold(worker)
        assert foreign(worker) > 0, "what was not signed, or with the first secret, counts no more"
        trigger_all(site, "kept")


@pytest.mark.timeout(240)
def test_a_worker_that_lacks_the_secret_takes_nothing_for_a_strangers(site: Site) -> None:
    with site:
        site.fired_topics(TENANTS)
        worker = site.worker(CHANGELOG="required").start().wait_ready()
        ask_all(site, "kept", now_ms() + LATER_MS)
        worker.stop()
        shutil.rmtree(worker.data_dir)
        for wrong in ({"HTTP_WORKER_SECRET": OTHER}, {"CHANGELOG": "trusted"}):
            other = site.worker(**{"CHANGELOG": "required", **wrong}).start()
            wait_for("a refusal", partial(_has_ended, other))
            assert "BELFRY_" in other.said()
        worker.start().wait_ready()
        trigger_all(site, "kept")
