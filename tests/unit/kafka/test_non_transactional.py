"""Records that leave beside a transaction: all acknowledged, or the step is told."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError

from belfry.engine.effects import Fired
from belfry.kafka import librdkafka
from belfry.kafka.non_transactional import NonTransactionalProducer, Undelivered

FIRED: list[Fired] = [("a", b"k", None, b"1", []), ("b", b"k", b"g", b"2", [])]


class FakeProducer:
    """Tells of what `fate` has, when it is flushed, and of the rest that it was purged."""

    fate: ClassVar[dict[str, str | None]] = {}
    made: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, properties: dict[str, Any]) -> None:
        self.made.append(properties)
        self.under_way: list[tuple[str, Callable[..., None]]] = []
        self.purged = False

    def produce(self, topic: str, *_: Any, on_delivery: Callable[..., None], **__: Any) -> None:
        self.under_way.append((topic, on_delivery))

    def flush(self, _timeout: float) -> None:
        left = []
        for topic, tell in self.under_way:
            if topic in self.fate or self.purged:
                tell(self.error(topic), SimpleNamespace(topic=lambda topic=topic: topic))
            else:
                left.append((topic, tell))
        self.under_way = left

    def error(self, topic: str) -> KafkaError | None:
        if self.purged:
            return KafkaError(KafkaError._PURGE_QUEUE, "Local: Purged in queue")
        why = self.fate[topic]
        return None if why is None else KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, why)

    def purge(self) -> None:
        self.purged = True


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> NonTransactionalProducer:
    monkeypatch.setattr(librdkafka, "Producer", FakeProducer)
    monkeypatch.setattr(FakeProducer, "made", [])
    monkeypatch.setattr(FakeProducer, "fate", {"a": None, "b": None})
    properties = {"transactional.id": "x", "transaction.timeout.ms": 1, "linger.ms": 5}
    return NonTransactionalProducer(properties, lambda _: 4)


def test_it_has_no_transaction_and_waits_for_all(producer: NonTransactionalProducer) -> None:
    producer.send(FIRED)
    producer.settle()
    (given,) = FakeProducer.made
    assert given == {"linger.ms": 5, "acks": "all", "enable.idempotence": True}


def test_a_refused_record_names_its_topic(producer: NonTransactionalProducer) -> None:
    FakeProducer.fate["b"] = "not authorised"
    producer.send(FIRED)
    with pytest.raises(Undelivered, match="b: not authorised"):
        producer.settle()
    assert producer.refused == {"b": "not authorised"}


def test_one_that_is_not_acknowledged_counts_as_lost_until_the_step_is_done_again(
    producer: NonTransactionalProducer,
) -> None:
    del FakeProducer.fate["b"]
    producer.send(FIRED)
    with pytest.raises(Undelivered, match="1 records"):
        producer.settle()
    producer.start_over()
    FakeProducer.fate["b"] = None
    producer.send(FIRED)
    producer.settle()


def test_what_was_given_up_was_not_refused(producer: NonTransactionalProducer) -> None:
    FakeProducer.fate = {}
    producer.send(FIRED)
    producer.close()
    assert producer.refused == {}
    with pytest.raises(Undelivered, match="2 records"):
        producer.settle()


def test_a_step_that_sends_nothing_hears_of_no_refusal_of_the_one_before(
    producer: NonTransactionalProducer,
) -> None:
    FakeProducer.fate = {"b": "not authorised"}
    producer.send(FIRED)
    with pytest.raises(Undelivered, match="b: not authorised"):
        producer.settle()
    producer.start_over()
    assert producer.refused == {}
