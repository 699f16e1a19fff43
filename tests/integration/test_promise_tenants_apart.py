"""One tenant's trouble with its output topic stays its own: others fire on time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from tests.acceptance.harness.bombs import as_one_batch, outcomes_of, peak_mb, refused
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

# The promise is one second; the other one is for a machine that is busy with other tests.
ON_TIME_MS = 2_000
BOMB_RECORDS, BOMB_RECORD_BYTES = 200, 900_000
SPARE_MB = 120


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers, but with its request topic."""
    site = Site(kafka, unique("apart"), tmp_path)
    site.schedules_topic()
    return site


def neighbours(site: Site, tenant: str) -> Iterator[str]:
    """Tenants with the same home partition: whoever shares it shares its transactions."""
    home = site.ask(tenant, "home", at=now_ms() + 3_600_000).partition()
    for number in range(100):
        other = f"n{number}"
        if site.ask(other, "home", at=now_ms() + 3_600_000).partition() == home:
            yield other


def fire_each(site: Site, tenant: str, count: int, first_ms: int, step_ms: int) -> None:
    """Schedules of a tenant, evenly spaced; the payload is the due instant."""
    for number in range(count):
        due_ms = first_ms + number * step_ms
        site.ask(tenant, f"e{due_ms}", at=due_ms, payload=b"%d" % due_ms)


def lateness_ms(records: list[Record]) -> list[int]:
    """How late each record was, by the broker's clock."""
    return [record.timestamp_ms - int(record.value or b"0") for record in records]


def test_a_topic_that_goes_is_made_again_while_others_fire(site: Site) -> None:
    with site:
        good = next(neighbours(site, "gone"))
        site.fired_topics(["gone", good])
        site.worker().start().wait_ready()
        first_ms = now_ms() + 2_500
        fire_each(site, "gone", 10, first_ms, 200)
        fire_each(site, good, 30, first_ms, 200)
        admin = AdminClient({"bootstrap.servers": site.bootstrap})
        admin.delete_topics([site.topic("fired.gone")])[site.topic("fired.gone")].result(20)
        fired = site.wait_fired(good, 30)
        assert len(fired) == 30
        assert 0 <= min(lateness_ms(fired)) <= max(lateness_ms(fired)) < ON_TIME_MS
        assert len(site.wait_fired("gone", 10, timeout_s=40)) == 10


def test_a_topic_that_nobody_makes_holds_its_tenant_alone(site: Site) -> None:
    with site:
        site.worker().start().wait_ready()
        site.workers[0].stop()
        good = next(neighbours(site, "held"))
        site.fired_topics([good])
        site.worker(CREATE_TOPICS="false").start().wait_ready()
        first_ms = now_ms() + 1_500
        fire_each(site, "held", 5, first_ms, 100)
        site.ask("held", f"e{first_ms + 400}", action="TRIGGER", request_id="trigger")
        fire_each(site, good, 12, first_ms, 200)
        fired = site.wait_fired(good, 12)
        assert 0 <= min(lateness_ms(fired)) <= max(lateness_ms(fired)) < ON_TIME_MS
        assert site.outcome("trigger")["outcome"] in ("TRIGGERED", "CONFLICT", "REJECTED")
        told = site.outcome("trigger")
        site.fired_topics(["held"])
        extra = told["outcome"] == "TRIGGERED"
        fired = site.wait_fired("held", 5 + extra, timeout_s=40)
        time.sleep(1.0)
        assert len(site.fired("held")) == 5 + extra


def test_a_topic_that_shrinks_holds_its_tenant_alone(site: Site) -> None:
    """What was accepted fits no more: it waits until the topic takes it, and nothing is lost."""
    with site:
        good = next(neighbours(site, "small"))
        site.fired_topics(["small", good])
        site.worker().start().wait_ready()
        first_ms = now_ms() + 3_000
        site.ask("small", "large", at=first_ms, payload=b"x" * 50_000)
        fire_each(site, "small", 3, first_ms + 100, 100)
        fire_each(site, good, 20, first_ms, 200)
        resize(site, "small", "10000")
        fired = site.wait_fired(good, 20)
        assert 0 <= min(lateness_ms(fired)) <= max(lateness_ms(fired)) < ON_TIME_MS
        resize(site, "small", "1000000")
        found = site.wait_fired("small", 4, timeout_s=90)
        assert len({record.value for record in found}) == len(found) == 4


def resize(site: Site, tenant: str, size: str) -> None:
    """Set the size of the largest record that a tenant's topic takes."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    entry = ConfigEntry("max.message.bytes", size, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource("topic", site.topic(f"fired.{tenant}"), incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def test_a_flood_of_poison_holds_nobody_up(site: Site) -> None:
    """Unknown schema ids have to be asked for, one by one: that must not keep others waiting."""
    with site:
        good = next(neighbours(site, "flood"))
        site.fired_topics([good])
        site.worker().start().wait_ready()
        first_ms = now_ms() + 1_000
        fire_each(site, good, 20, first_ms, 200)
        home = site.ask("flood", "x", at=now_ms() + 3_600_000).partition()
        for number in range(20_000):
            site.producer.produce(
                site.topic("schedules"), b"\0" + number.to_bytes(4, "big") + b"x", partition=home
            )
            site.producer.poll(0)
        site.producer.flush()
        behind_ms = now_ms()
        site.ask(good, "behind", at=behind_ms, payload=b"%d" % behind_ms)
        fired = site.wait_fired(good, 21, timeout_s=60)
        late = {record.value: at for record, at in zip(fired, lateness_ms(fired), strict=True)}
        waited_ms = late.pop(b"%d" % behind_ms)
        assert max(late.values()) < ON_TIME_MS
        assert min(late.values()) >= 0
        assert waited_ms < 10_000, "a flood costs its own partition's ingest, but not for long"


def test_a_batch_that_unpacks_to_a_thousand_times_its_size_holds_nobody_up(site: Site) -> None:
    """It is read in slices up to a bound, and nothing is kept of them but what is refused."""
    with site:
        site.fired_topics(["good"])
        worker = site.worker().start()
        worker.wait_ready()
        home = site.ask("good", "home", at=now_ms() + 3_600_000).partition()
        packed = as_one_batch("gzip", BOMB_RECORDS)
        bomb = Producer({"bootstrap.servers": site.bootstrap, **packed})
        value = bytes(BOMB_RECORD_BYTES)
        for _ in range(BOMB_RECORDS):
            bomb.produce(site.topic("schedules"), value, partition=home)
        first_ms = now_ms() + 1_000
        fire_each(site, "good", 25, first_ms, 200)
        before_mb = peak_mb(worker)
        assert bomb.flush(20) == 0
        wanted = outcomes_of(BOMB_RECORDS, BOMB_RECORD_BYTES)
        wait_for("the refusals", lambda: refused(worker) == wanted)
        fired = site.wait_fired("good", 25)
        assert 0 <= min(lateness_ms(fired)) <= max(lateness_ms(fired)) < ON_TIME_MS
        assert peak_mb(worker) - before_mb < SPARE_MB
        assert "rolled back" not in worker.log.read_text()
