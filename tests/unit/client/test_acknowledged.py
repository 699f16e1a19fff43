"""What Kafka said of requests that were handed over, whichever thread heard it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from belfry.client import acknowledged
from belfry.client.acknowledged import HandedOver, Place
from belfry.client.errors import Unavailable
from belfry.client.kafka import Cluster
from belfry.client.verdict import Verdict
from belfry.client.writing import RequestWriter
from belfry.wire.claims import signature
from belfry.wire.quick_writing import Ready
from belfry.wire.record import SIGNATURE

SENT = [Verdict("t", name, None, name) for name in "abc"]
LOST = KafkaError(KafkaError._MSG_TIMED_OUT)


class Polled:
    """A producer that tells of one record a poll."""

    def __init__(self) -> None:
        self.tells: list[Callable[[], None]] = []
        self.polls = 0

    def poll(self, _timeout_s: float) -> int:
        self.polls += 1
        if not self.tells:
            return 0
        self.tells.pop(0)()
        return 1

    flush = poll


def handed(*failing: int) -> tuple[HandedOver, Polled]:
    """Three requests, told of from the last to the first."""
    producer: Any = Polled()
    found = HandedOver(producer, SENT)
    found.sizes += [1, 2, 3]
    for number in (2, 1, 0):
        told = found.callback(number)
        message = Message(topic="s", partition=number, offset=7 + number)
        error = LOST if number in failing else None
        producer.tells.append(lambda told=told, error=error, message=message: told(error, message))
    return found, producer


def test_each_request_has_its_own_place() -> None:
    some, producer = handed()
    some.heard(Cluster("nowhere:1"), 5.0)
    assert producer.polls == 3, "and not one more"
    assert some.places == [Place(None, "s", number, 7 + number) for number in range(3)]
    assert not some.failed
    placed = list(RequestWriter(Cluster("nowhere:1"), "s", None).placed(some))
    assert [(each.schedule_id, each.source_topic, each.source_offset) for each in placed] == [
        ("a", "s", 7), ("b", "s", 8), ("c", "s", 9)
    ]  # fmt: skip


def test_one_that_failed_is_known_before_anybody_asks_where_it_lies() -> None:
    some, _ = handed(1)
    some.heard(Cluster("nowhere:1"), 5.0)
    assert some.failed
    with pytest.raises(Unavailable, match="t/b"):
        list(RequestWriter(Cluster("nowhere:1"), "s", None).placed(some))


@pytest.mark.parametrize("way", ["heard", "flushed"])
def test_what_is_never_told_of_counts_as_not_written(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledged, "POLL_S", 0.0)
    some, producer = handed()
    del producer.tells[1:]
    getattr(some, way)(Cluster("nowhere:1"), 0.01)
    assert some.failed
    with pytest.raises(Unavailable, match="has not confirmed the request on t/a"):
        list(RequestWriter(Cluster("nowhere:1"), "s", None).placed(some))


def test_a_ready_request_is_signed_as_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, produced = Cluster("nowhere:1"), list[dict[str, Any]]()

    class Producing:
        def produce(self, topic: str, value: bytes, key: bytes, **how: Any) -> None:
            produced.append({"topic": topic, "value": value, "key": key, **how})

    monkeypatch.setattr(cluster, "producer", Producing)
    monkeypatch.setattr(cluster, "partitions", lambda *_: [0])
    writer = RequestWriter(cluster, "s", None, secrets={"t": b"secret"})
    writer.hand_over([(Ready("t", "a", b"", b""), SENT[0])])
    (record,) = produced
    signed = signature(b"secret", "t", record["key"], record["value"], None)
    assert record["headers"] == [(SIGNATURE, signed)]
