"""Giving up what a partition's owner held, so that nothing of it stays behind.

An owner ends in all sorts of ways: in order, fenced, or amid an error. What it held are threads,
connections and a locked store, and the next owner of the partition may be in the same process a
moment later. So each of them is closed, and none keeps the others from it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog
from confluent_kafka import KafkaError, KafkaException, Producer

LONGEST_S: Final = 1.0
# The fate of what was given up: nobody refused it.
PURGED: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})

log = structlog.get_logger(__name__)


def give_up(producer: Producer) -> None:
    """Forget what it has not sent, and hear of that.

    A message whose fate has not been told holds its callback, and that holds the owner of the
    producer: its threads and connections would outlive it in a circle that Python cannot see.
    """
    # One that has failed for good may say so once more; where that comes while it tells the fate of
    # messages, confluent-kafka has the error pending in their callbacks: a SystemError for Python.
    with suppress(KafkaException, SystemError):
        producer.purge()
        producer.flush(LONGEST_S)


def close_all(*closings: Callable[[], None]) -> None:
    """Close one after the other, whatever becomes of one.

    A store that stayed open would be in the way of its next owner until the process ends.
    """
    for close in closings:
        try:
            close()
        except Exception:
            log.exception("not everything was closed in order")
