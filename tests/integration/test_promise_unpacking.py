"""No compressed batch stops a partition's intake, or takes a worker's memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.acceptance.harness.bombs import as_one_batch, outcomes_of, peak_mb, refused
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

RECORD_BYTES = 900_000
# How many megabytes one batch unpacks to: a thousand times its size, or 255 times, or 22 times. Of
# all of them a third would be more than a worker may grow by; gzip takes long to make more.
BOMBS = {"zstd": 900, "gzip": 300, "lz4": 900, "snappy": 200}
LARGE = {
    "message.timestamp.type": "LogAppendTime",
    "cleanup.policy": "delete",
    "max.message.bytes": "12000000",
}
GROWTH_MB = 100
SOON_S = 40.0
# Beyond what is kept of a batch.
LEAST_MB = 80


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers, but with its request topic, which takes large batches."""
    site = Site(kafka, unique("unpacked"), tmp_path)
    site.create_topics([site.topic("schedules")], LARGE)
    site.schedules_topic()
    return site


def bomb(site: Site, topic: str, partition: int, megabytes: int, codec: str = "zstd") -> int:
    """Send zeros as one batch; how many refusals answer it."""
    count = megabytes * 1_000_000 // RECORD_BYTES
    producer = Producer({"bootstrap.servers": site.bootstrap, **as_one_batch(codec, count)})
    told: list[Any] = []
    value = bytes(RECORD_BYTES)
    for _ in range(count):
        producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: told.append(error)
        )
    assert producer.flush(60) == 0
    assert told == [None] * count
    return outcomes_of(count, RECORD_BYTES)


@pytest.mark.parametrize("codec", BOMBS)
def test_what_unpacks_to_much_takes_no_memory(site: Site, codec: str) -> None:
    with site:
        site.fired_topics(["good"])
        worker = site.worker().start().wait_ready()
        home = site.ask("good", "before", at=now_ms() + 500, payload=b"before").partition()
        site.wait_fired("good", 1)
        before_mb = peak_mb(worker)
        count = bomb(site, site.topic("schedules"), home, BOMBS[codec], codec)
        started = time.monotonic()
        site.ask("good", "behind", at=now_ms() + 500, payload=b"behind")
        fired = site.wait_fired("good", 2, timeout_s=60)
        took_s = time.monotonic() - started
        assert {record.value for record in fired} == {b"before", b"behind"}
        assert refused(worker) == count
        assert took_s < SOON_S
        assert peak_mb(worker) - before_mb <= GROWTH_MB
        assert "rolled back" not in worker.log.read_text()


def test_a_worker_that_is_killed_amid_such_a_batch_answers_each_record_once(site: Site) -> None:
    with site:
        site.fired_topics(["good"])
        worker = site.worker(STEP_BYTES="1000000").start().wait_ready()
        home = site.ask("good", "before", at=now_ms() + 500, payload=b"before").partition()
        count = bomb(site, site.topic("schedules"), home, LEAST_MB)
        site.ask("good", "behind", at=now_ms() + 500, payload=b"behind")
        wait_for("the first refusals", lambda: refused(worker) > 5)
        worker.kill()
        worker.start().wait_ready()
        fired = site.wait_fired("good", 2, timeout_s=60)
        assert {record.value for record in fired} == {b"before", b"behind"}
        offsets = [dict(record.headers)["belfry-error-offset"] for record in site.rejected()]
        assert len(offsets) == len(set(offsets)) == count


@pytest.mark.parametrize("codec", ["zstd", "gzip"])
def test_a_tenants_own_topic_is_read_on_behind_it(site: Site, codec: str) -> None:
    with site:
        topics = [site.topic("schedules.mine"), site.topic("schedules.other")]
        site.create_topics(topics, LARGE)
        worker = site.worker().start().wait_ready()
        before_mb = peak_mb(worker)
        count = bomb(site, topics[0], 0, BOMBS[codec], codec)
        for topic, tenant in zip(topics, ["mine", "other"], strict=True):
            value = request(tenant, "behind", at=now_ms(), payload=b"behind")
            site.producer.produce(topic, value, partition=0)
        site.producer.flush(10)
        assert [record.value for record in site.wait_fired("other", 1)] == [b"behind"]
        assert [record.value for record in site.wait_fired("mine", 1, 60)] == [b"behind"]
        assert wait_for("the refusals", lambda: refused(worker) == count)

        assert peak_mb(worker) - before_mb <= GROWTH_MB
