"""Deliveries removed as their topic's retention does it, and what a dispatcher says then."""

from __future__ import annotations

from typing import Final

from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.acceptance.harness.delivered import wait_ends
from tests.acceptance.harness.receiver import Receiver
from tests.acceptance.harness.site import Site, now_ms, wait_for
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


def lose_what_waits(site: Site, delivers: Worker, receiver: Receiver) -> None:
    """Let retention remove what waits while nobody delivers: it is counted, once."""
    assert delivers.stop() == 0
    remove_all(site)
    delivers.start().wait_ready()
    # Behind the last delivery lay ends of transactions alone.
    assert LOST not in delivers.said()
    assert delivers.stop() == 0
    for number in range(3):
        target = {"url": receiver.url("/ok/gone")}
        site.ask("demo", f"gone/{number}", at=now_ms(), http_targets=[target])
    site.wait_fired("demo", 5)
    remove_all(site)
    delivers.start().wait_ready()
    assert LOST in delivers.said()
    # Three records, and at most as many ends of transactions.
    wait_for("a count", lambda: 3 <= removed(delivers) <= 6, 30)
    site.ask("demo", "kept", at=now_ms(), http_targets=[{"url": receiver.url("/ok/kept")}])
    wait_ends(site, "demo", 3)
    assert receiver.at("/ok/gone") == []
