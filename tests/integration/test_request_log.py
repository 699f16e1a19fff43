"""Requests come from a broker in order, whatever packed them, and nothing that was rolled back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from time import monotonic

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from belfry.kafka.log_bounds import AheadOfLog
from belfry.wire.record import SourceRecord
from tests.acceptance.harness.site import wait_for
from tests.integration.fetched_requests import FetchedRequests

pytestmark = pytest.mark.slow

COUNT = 3_000


@pytest.fixture
def log(kafka: str, unique: Callable[[str], str]) -> Iterator[FetchedRequests]:
    """A reader of an empty topic."""
    topic, admin = unique("requests"), AdminClient({"bootstrap.servers": kafka})
    for made in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        made.result(30)
    with closing(FetchedRequests({"bootstrap.servers": kafka}, topic, 0)) as found:
        wait_for("a leader", lambda: has_leader(found))
        yield found


def has_leader(log: FetchedRequests) -> bool:
    """Whether the topic, made just now, can be read."""
    try:
        return log.ends() == (0, 0)
    except ConnectionError:
        return False


def read(log: FetchedRequests, end: int) -> list[SourceRecord]:
    """All records up to an offset."""
    found: list[SourceRecord] = []
    deadline = monotonic() + 60
    while log.position < end and monotonic() < deadline:
        found += log.read(1_000, 0.2)
    assert log.position == end
    return found


def test_every_codec_is_read_from_where_it_was_left_off(kafka: str, log: FetchedRequests) -> None:
    log.seek(0)
    values = [b"%d" % number * 20 for number in range(COUNT)]
    for turn, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        producer = Producer({"bootstrap.servers": kafka, "compression.type": codec})
        for value in values:
            producer.produce(log.topic, value, b"key", headers=[("name", value[:3])])
        assert producer.flush(60) == 0
        begin = turn * COUNT
        found = read(log, begin + COUNT)
        assert [(each[0], each[3]) for each in found] == [*enumerate(values, begin)]
        assert found[7][2::2] == (b"key", [("name", b"777")])


def test_transactions_count_once_they_are_committed(kafka: str, log: FetchedRequests) -> None:
    log.seek(0)
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": log.topic})
    producer.init_transactions(60)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for _ in range(10):
            producer.produce(log.topic, end.__name__)
        producer.flush(60)
        before = log.position
        assert log.read(100, 0.3) == []
        assert log.position <= before + 11
        end(60)
    found = read(log, 22)
    assert [each[3] for each in found] == [b"commit_transaction"] * 10


def test_an_offset_beyond_the_end_is_told(log: FetchedRequests) -> None:
    with pytest.raises(AheadOfLog, match="ends at offset 0, but offset 5 was read before"):
        log.seek(5)
