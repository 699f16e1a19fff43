"""A producer's full queue: the producer waits, because the records in it are on their way.

librdkafka bounds the bytes that it holds, and refuses more. A step that is larger than the queue is
sent bit by bit: `flush` sends without linger and serves acknowledgements. If a broker takes nothing
in all that time, the step is rolled back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from belfry.host import machine

# Seconds for room in the queue, and for one flush.
LONGEST_S: Final = 8.0
LOOK_S: Final = 0.1
# The field in which `produce_batch` puts the error of a row that it did not take.
_ERROR: Final = "_error"


def produce_in_time(producer: Producer, produce: Callable[[], Any]) -> None:
    """Produce a record that the queue has just refused; BufferError if the queue stays full."""
    deadline = machine.monotonic() + LONGEST_S
    while True:
        producer.flush(LOOK_S)
        try:
            produce()
        except BufferError:
            if machine.monotonic() > deadline:
                raise
        else:
            return


def produce_rows(
    producer: Producer, topic: str, partition: int, rows: list[tuple[bytes, bytes | None]]
) -> bool:
    """Produce all these rows, keys and values; BufferError if the queue stays full.

    False if they were taken in several parts, so that they may lie in another order.
    """
    deadline = machine.monotonic() + LONGEST_S
    messages: list[dict[str, Any]] = [{"key": key, "value": value} for key, value in rows]
    left = messages
    while (taken := producer.produce_batch(topic, left, partition=partition)) != len(left):
        left = [row for row in left if _ERROR in row]
        for row in left:
            error = row.pop(_ERROR)
            if error.code() != KafkaError._QUEUE_FULL:
                raise KafkaException(error)
        if not taken and machine.monotonic() > deadline:
            raise BufferError(f"the producer's queue has no room for {len(left)} rows")
        producer.flush(LOOK_S)
    return left is messages
