"""Partitions that are added to the input later take requests, and their owner sends them home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from tests.acceptance.harness.site import Site, now_ms


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers."""
    return Site(kafka, unique("added"), tmp_path)


def test_a_request_on_an_added_partition_fires_once(site: Site) -> None:
    with site:
        site.worker().start().wait_ready().kill()
        servers: dict[str, Any] = {"bootstrap.servers": site.bootstrap}
        topic = site.topic("schedules")
        admin = AdminClient(servers)
        for future in admin.create_partitions([NewPartitions(topic, 6)]).values():
            future.result(10)
        site.worker().start().wait_ready()
        producer = Producer(servers)
        at = str(now_ms() + 500).encode()
        headers: Any = [("belfry-tenant", b"t"), ("belfry-id", b"x"), ("belfry-at", at)]
        producer.produce(topic, b"1", headers=headers, partition=5)
        producer.flush(10)
        assert len(site.wait_fired("t", 1)) == 1
