"""Gives up an owner's resources, so that none of them stays behind.

An owner ends in several ways: in order, fenced, or amid an error. It holds threads, connections and
a locked store, and the next owner of the partition may be in the same process a moment later. So
each resource is closed, and an error with one does not keep the others from being closed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog
from confluent_kafka import KafkaError, KafkaException, Producer

LONGEST_S: Final = 1.0
# The error codes of messages that were given up: no broker refused these.
PURGED: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})

log = structlog.get_logger(__name__)


def give_up(producer: Producer) -> None:
    """Drop the unsent messages, and serve their callbacks.

    A message whose delivery is not reported yet holds its callback, and that holds the owner of the
    producer: its threads and connections would outlive it in a circle that Python cannot see.
    """
    # A producer that has failed for good may report that once more. If it does so while it reports
    # messages, confluent-kafka has the error pending in their callbacks: a SystemError for Python.
    with suppress(KafkaException, SystemError):
        producer.purge()
        producer.flush(LONGEST_S)


def close_all(*closings: Callable[[], None]) -> None:
    """Close one after the other, even if one fails.

    A store that stayed open would block its next owner until the process ends.
    """
    for close in closings:
        try:
            close()
        except Exception:
            log.exception("not everything was closed in order")
