"""Policies are written by one producer, which is given up once something has failed."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from belfry.client.errors import Unavailable
from belfry.client.policy_writing import PolicyWriter
from belfry.wire.policies import reason_of

TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT)


class Kafka:
    """A cluster of one partition, and each producer that it was asked for; `fails` as they do."""

    def __init__(self) -> None:
        self.made = 0
        self.fails: KafkaError | None = None
        self.written: list[str] = []
        self.headers: list[Any] = []

    def producer(self) -> Kafka:
        self.made += 1
        return self

    def partitions(self, _client: object, _topic: str) -> list[int]:
        return [0]

    def produce(
        self, _topic: str, _value: object, key: bytes, on_delivery: Any, **more: Any
    ) -> None:
        self.headers.append(more["headers"])
        if self.fails is None:
            self.written.append(key.decode())
        on_delivery(self.fails, None)

    def poll(self, _timeout_s: float) -> int:
        return 0

    def flush(self, _timeout_s: float) -> int:
        return 0

    def unavailable(self, error: KafkaError, *_: object, **__: object) -> Unavailable:
        return Unavailable(error.str())


def test_one_producer_writes_as_long_as_nothing_fails() -> None:
    kafka = Kafka()
    writer = PolicyWriter(kafka, "belfry.tenants", b"")  # type: ignore[arg-type]
    writer.write({"a": b"1"})
    writer.write({"b": b"2"})
    assert (kafka.made, kafka.written) == (1, ["a", "b"])


def test_the_reason_goes_along_as_a_header_that_the_audit_log_reads() -> None:
    kafka = Kafka()
    writer = PolicyWriter(kafka, "belfry.tenants", b"")  # type: ignore[arg-type]
    writer.write({"a": None}, "éclair \ud800")
    writer.write({"a": b"1"})
    assert [reason_of(each) for each in kafka.headers] == ["éclair ?", None]


def test_what_has_failed_writes_no_more() -> None:
    kafka = Kafka()
    writer = PolicyWriter(kafka, "belfry.tenants", b"")  # type: ignore[arg-type]
    writer.write({"a": b"1"})
    kafka.fails = TIMED_OUT
    with pytest.raises(Unavailable):
        writer.write({"a": b"2"})
    kafka.fails = None
    writer.write({"a": b"2"})
    assert (kafka.made, kafka.written) == (2, ["a", "a"])
