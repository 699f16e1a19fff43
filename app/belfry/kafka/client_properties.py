"""How the producers and consumers of partitions are set up; operators' own properties win.

The times belong together, from the shortest to the longest: a record is given up after 8 s, a
commit after a little more, and the broker ends a transaction after its time-out (10 s by default).
So a step that cannot be sent is rolled back by its owner, and not by the broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from belfry.kafka.row_signing import BATCH_BYTES, BATCH_RECORDS
from belfry.settings import Settings

# After so long a record that was not acknowledged has failed.
MESSAGE_TIMEOUT_MS: Final = 8_000
# The longest that librdkafka takes: shorter than the time-out of a message.
LINGER_MS: Final = 7_900
# For so long a topic that the brokers do not know is taken for a new one.
PROPAGATION_MS: Final = 400


def producer_properties(settings: Settings, role: str) -> dict[str, Any]:
    """Of a transactional producer; `role` ends its transactional id."""
    return {
        "compression.type": "lz4",
        **settings.kafka_properties(),
        # A commit sends at once what is left.  What leaves before it leaves in many requests: each
        # of them holds the records of one partition.  And rows that are signed by content have to
        # leave in one batch with their fillers (`row_signing.py`), so these are no operator's.
        "linger.ms": LINGER_MS,
        "batch.size": BATCH_BYTES,
        "batch.num.messages": BATCH_RECORDS,
        "transactional.id": f"{settings.cluster.app_id}.{role}",
        "transaction.timeout.ms": settings.transaction_timeout_ms,
        # Shorter than a commit waits: a record that cannot be sent rolls its step back.
        "message.timeout.ms": MESSAGE_TIMEOUT_MS,
        # A topic that is gone shows at once, instead of after the time-out above; one that
        # belfry creates is waited for before it is used.
        "topic.metadata.propagation.max.ms": PROPAGATION_MS,
        "partitioner": "murmur2_random",
        # Each topic has its own limit, which is checked when a request is accepted.
        "message.max.bytes": 100_000_000,
        "queue.buffering.max.messages": 1_000_000,
        # A step with more than this waits until some of it has been sent.
        "queue.buffering.max.kbytes": 64 * 1024,
    }


def transactional_ids(properties: Mapping[str, Any]) -> tuple[str, str]:
    """The two ids of a partition.  A take-over fences both; one of them may do to write
    (`transactions/alternating.py`).
    """
    first = str(properties["transactional.id"])
    return first, f"{first}.b"


def untold(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a client that nobody polls while it is idle: its figures would pile up in it."""
    told = ("stats_cb", "statistics.interval.ms")
    return {name: value for name, value in properties.items() if name not in told}


def consumer_properties(settings: Settings) -> dict[str, Any]:
    """Of a consumer of one partition."""
    return {
        "fetch.wait.max.ms": 100,
        # A full queue keeps the next fetch back: by default for a second, which was what a
        # partition with much to read waited for.  Looked at often, it may be small.
        "queued.max.messages.kbytes": 2 * 1024,
        "fetch.queue.backoff.ms": 5,
        **settings.kafka_properties(),
    }
