"""The properties of partitions' producers and consumers; operators' own properties win.

The times belong together, from the shortest to the longest: a record is given up after 8 s, a
commit after a little more, and the broker ends a transaction after its time-out (10 s by default).
So a step that cannot be sent is rolled back by its owner, and not by the broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from belfry.kafka.row_signing import BATCH_BYTES, BATCH_RECORDS
from belfry.settings import Settings

# A record that was not acknowledged within this time has failed.
MESSAGE_TIMEOUT_MS: Final = 8_000
# The longest that librdkafka takes: shorter than the time-out of a message.
LINGER_MS: Final = 7_900
# A topic that the brokers do not know counts as new for this time.
PROPAGATION_MS: Final = 400


def producer_properties(settings: Settings, role: str) -> dict[str, Any]:
    """Properties of a transactional producer; `role` ends its transactional id."""
    return {
        "compression.type": "lz4",
        **settings.kafka_properties(),
        # A commit sends the rest at once. Records that leave before that need many requests: each
        # holds the records of one partition. And rows that are signed by content have to leave in
        # one batch with their fillers (`row_signing.py`), so operators cannot change these.
        "linger.ms": LINGER_MS,
        "batch.size": BATCH_BYTES,
        "batch.num.messages": BATCH_RECORDS,
        "transactional.id": f"{settings.cluster.app_id}.{role}",
        "transaction.timeout.ms": settings.transaction_timeout_ms,
        # Shorter than a commit waits: a record that cannot be sent rolls its step back.
        "message.timeout.ms": MESSAGE_TIMEOUT_MS,
        # A missing topic is found at once, instead of after the time-out above; belfry waits for
        # topics that it creates before it uses them.
        "topic.metadata.propagation.max.ms": PROPAGATION_MS,
        "partitioner": "murmur2_random",
        # Each topic has its own limit, which is checked when a request is accepted.
        "message.max.bytes": 100_000_000,
        "queue.buffering.max.messages": 1_000_000,
        # A step with more than this waits until some of it has been sent.
        "queue.buffering.max.kbytes": 64 * 1024,
    }


def transactional_ids(properties: Mapping[str, Any]) -> tuple[str, str]:
    """The two ids of a partition. A take-over fences both; one of them may be enough to write
    (`transactions/alternating.py`).
    """
    first = str(properties["transactional.id"])
    return first, f"{first}.b"


def untold(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a client that is not polled while idle: its figures would pile up in it."""
    told = ("stats_cb", "statistics.interval.ms")
    return {name: value for name, value in properties.items() if name not in told}


def consumer_properties(settings: Settings) -> dict[str, Any]:
    """Properties of a consumer of one partition."""
    return {
        "fetch.wait.max.ms": 100,
        # A full queue delays the next fetch: by default for a second, which a partition with much
        # to read waited for. With a short delay the queue may be small.
        "queued.max.messages.kbytes": 2 * 1024,
        "fetch.queue.backoff.ms": 5,
        **settings.kafka_properties(),
    }
