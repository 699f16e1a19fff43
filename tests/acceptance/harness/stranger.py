"""Somebody's transactional producer that leaves a transaction open in one of belfry's topics."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Producer

from tests.acceptance.harness.site import Site

ANSWER_S = 20.0


class Stranger:
    """One transaction with one record, open until it is ended."""

    def __init__(self, site: Site, topic: str, partition: int, name: str = "outbox") -> None:
        """`topic` is the name without belfry's prefix; `name` ends the transactional id."""
        self.name = f"{site.name}-{name}"
        self.offset = -1
        self._producer = Producer(
            {
                "bootstrap.servers": site.bootstrap,
                "transactional.id": self.name,
                "transaction.timeout.ms": 600_000,
                "log_level": 0,
            }
        )
        self._producer.init_transactions(ANSWER_S)
        self._producer.begin_transaction()
        self._producer.produce(
            site.topic(topic), b"not belfry's", b"stranger", partition, on_delivery=self._written
        )
        self._producer.flush(ANSWER_S)
        assert self.offset >= 0

    def _written(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.offset = message.offset()

    def end(self) -> None:
        """Roll it back, if nobody has done so."""
        with suppress(KafkaException):
            self._producer.abort_transaction(ANSWER_S)
