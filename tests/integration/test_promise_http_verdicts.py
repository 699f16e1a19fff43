"""An accepted write is answered when it is committed, not when readers of the topic may see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.acceptance.harness.http import Http, place, schedules
from tests.acceptance.harness.site import Site

pytestmark = pytest.mark.slow


@contextmanager
def held_up(site: Site) -> Iterator[None]:
    """Nobody who reads what is committed sees what comes into the lifecycle topic meanwhile."""
    topic = site.topic("lifecycle")
    stranger = Producer({"bootstrap.servers": site.bootstrap, "transactional.id": site.name})
    stranger.init_transactions(20)
    stranger.begin_transaction()
    for partition in stranger.list_topics(topic, timeout=20).topics[topic].partitions:
        stranger.produce(topic, b"never committed", partition=partition)
    assert stranger.flush(20) == 0
    try:
        yield
    finally:
        stranger.abort_transaction(20)


def test_a_stranger_to_the_topic_holds_up_no_answer(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    tenant = unique("t")
    with Site(kafka, unique("verdicts"), tmp_path) as site:
        http = Http(site.worker().start().wait_ready())
        with held_up(site):
            body = {"schedule_id": "a", "delay_ms": 3_600_000, "payload_text": "x"}
            assert http("POST", schedules(tenant), body)[0] == 201
            assert http("GET", place(tenant, "a"))[0] == 200
            assert http("POST", schedules(tenant), {**body, "delay_ms": -1})[0] == 422
            assert http("DELETE", place(tenant, "a"))[0] == 200
            assert http("DELETE", place(tenant, "a"))[0] == 404
        assert http("POST", schedules(tenant), body)[0] == 201
