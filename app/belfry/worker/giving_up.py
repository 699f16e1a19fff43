"""Giving a producer up, so that nothing of it stays behind."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer

LONGEST_S: Final = 1.0
# The fate of what was given up: nobody refused it.
PURGED: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})


def give_up(producer: Producer) -> None:
    """Forget what it has not sent, and hear of that.

    A message whose fate has not been told holds its callback, and that whoever holds the producer:
    its threads and connections would outlive it in a circle that Python cannot see.
    """
    # One that has failed for good may say so once more.
    with suppress(KafkaException):
        producer.purge()
        producer.flush(LONGEST_S)
