"""Fired records of tenants with at-least-once: they leave beside the transaction.

A producer of its own, idempotent and without a transaction, sends them; the step commits when all
of them are acknowledged.  So none is lost, and none is seen twice unless the step is done again:
after a crash, a roll-back, or by an owner that did not know yet that it was fenced. They are cheap
because no partition of their topics joins the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, Message

from belfry.engine.effects import Fired
from belfry.kafka import librdkafka
from belfry.kafka.full_queue import produce_in_time
from belfry.kafka.giving_up import PURGED, give_up
from belfry.schedules.identity import partition_of

# Seconds for all records of a step to be acknowledged.
SETTLE_S: Final = 9.5


class Undelivered(BufferError):
    """Some records were not acknowledged: the step is rolled back."""


class NonTransactionalProducer:
    """Sends records beside a partition's transactions; only the partition's thread uses it.

    Its client is made with the first record: most partitions have none.
    """

    def __init__(self, properties: Mapping[str, Any], partitions_of: Callable[[str], int]) -> None:
        kept = {key: value for key, value in properties.items() if "transaction" not in key}
        self._properties = {**kept, "acks": "all", "enable.idempotence": True}
        self._partitions_of = partitions_of
        self._producer: librdkafka.Producer | None = None
        self._left = 0
        self.refused: dict[str, str] = {}

    def send(self, fired: Iterable[Fired]) -> None:
        """Send the records of a step; `settle` waits for them."""
        self.refused = {}
        producer = self._producer = self._producer or librdkafka.Producer(self._properties)
        produce: Any = producer.produce
        told = self._told
        for topic, key, group, value, headers in fired:
            where = {}
            try:
                if group is None:
                    produce(topic, value, key, headers=headers, on_delivery=told)
                else:
                    where = {"partition": partition_of(group, self._partitions_of(topic))}
                    produce(topic, value, key, headers=headers, on_delivery=told, **where)
            except BufferError:
                again = partial(
                    produce, topic, value, key, headers=headers, on_delivery=told, **where
                )
                produce_in_time(producer, again)
            self._left += 1

    def settle(self) -> None:
        """Wait until all are acknowledged; Undelivered if one is not."""
        if self._left and self._producer is not None:
            self._producer.flush(SETTLE_S)
        if self.refused or self._left:
            refused = "; ".join(f"{topic}: {why}" for topic, why in self.refused.items())
            raise Undelivered(refused or f"{self._left} records were not acknowledged in time")

    def start_over(self) -> None:
        """Forget records that are under way: the step that sent them is done again as a whole."""
        self.close()
        self._producer = None
        self._left = 0
        # The next step may send nothing here, and must not get the refusals of this one.
        self.refused = {}

    def serve(self) -> None:
        """Report figures that wait in the client."""
        if self._producer is not None:
            self._producer.poll(0)

    def close(self) -> None:
        """Give the producer up."""
        if self._producer is not None:
            give_up(self._producer)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        """Note the fate of a record; librdkafka calls this within `flush` and `poll`."""
        if error is not None and error.code() in PURGED:
            # Given up by belfry: neither acknowledged nor refused.
            return
        self._left -= 1
        if error is not None:
            self.refused[message.topic() or ""] = error.str()
