"""Deliveries removed as their topic's retention does it, and what a dispatcher says then."""

from __future__ import annotations

from typing import Final

from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.acceptance.harness.site import Site
from tests.acceptance.harness.worker import Worker

LOST: Final = "records were removed by their topic's retention before they were read"


def remove_all(site: Site) -> None:
    """Remove all deliveries that there are, as the topic's retention does."""
    topic, admin = site.topic("deliveries"), AdminClient({"bootstrap.servers": site.bootstrap})
    wanted = [TopicPartition(topic, number, OFFSET_END) for number in range(4)]
    for answer in admin.delete_records(wanted).values():
        answer.result(20)


def removed(worker: Worker) -> float:
    """How many deliveries a dispatcher found removed, since its start; 0 where nobody answers."""
    series = 'belfry_deliveries_removed_total{topic="deliveries"} '
    page = worker.get("/metrics")[1].splitlines()
    return sum(float(line.removeprefix(series)) for line in page if line.startswith(series))
