"""The fence of a partition by librdkafka: both of its transactional ids get a new epoch.

    init_transactions(belfry.3)     the former owner's transaction is aborted, and it is refused
    init_transactions(belfry.3.b)   the same for the id that belfry's own writer uses in turn

The second id belongs to a producer that is given up at once: librdkafka only writes with the first
one (`transactions/alternating.py` says why there are two).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from belfry.kafka import librdkafka
from belfry.kafka.client_properties import transactional_ids, untold
from belfry.kafka.giving_up import give_up

# Seconds for each of the two.
FENCE_S: Final = 30.0


def fence(producer: librdkafka.Producer, properties: Mapping[str, Any]) -> None:
    """Fence the writer that had the ids before.  Raises KafkaException.

    `properties` are those that `producer` was made with.
    """
    producer.init_transactions(FENCE_S)
    _, second = transactional_ids(properties)
    other = librdkafka.Producer({**untold(properties), "transactional.id": second})
    try:
        other.init_transactions(FENCE_S)
    finally:
        give_up(other)
