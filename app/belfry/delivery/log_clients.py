"""Properties of the two Kafka clients of a `DeliveryLog`: the producer, and the consumer.

`apart` is empty for the topic of deliveries, and tells each other topic's group, transactional id
and file in the data directory apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from belfry.kafka.client_properties import MESSAGE_TIMEOUT_MS
from belfry.settings import DeliverySettings

# Readers of requests wait for open transactions, so a dead process's must end soon.
TRANSACTION_MS: Final = 5_000


def producer_properties(settings: DeliverySettings, apart: str) -> dict[str, Any]:
    """A short transaction time-out, and one transactional id for each data directory."""
    own = _own_id(settings.data_dir, apart)
    return {
        "linger.ms": 5,
        "compression.type": "lz4",
        **settings.kafka_properties(),
        "transactional.id": f"{settings.cluster.app_id}.deliver{apart}.{own}",
        "transaction.timeout.ms": TRANSACTION_MS,
        "message.timeout.ms": min(MESSAGE_TIMEOUT_MS, TRANSACTION_MS),
        "partitioner": "murmur2_random",
        "message.max.bytes": 4_000_000,
    }


def consumer_properties(settings: DeliverySettings, apart: str) -> dict[str, Any]:
    """A static member (KIP-345) that reads committed records and does not commit by itself."""
    return {
        "fetch.wait.max.ms": 100,
        "queued.max.messages.kbytes": 16 * 1024,
        **settings.kafka_properties(),
        "group.id": f"{settings.cluster.app_id}.deliver{apart}",
        # A restarted process gets its partitions back at once, instead of waiting for its old
        # member.
        "group.instance.id": _own_id(settings.data_dir, apart),
        "session.timeout.ms": max(settings.session_timeout_ms, 6_000),
        "heartbeat.interval.ms": settings.heartbeat_interval_ms,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        # Records that are not in the log any more are not passed over in silence: `_begin` counts
        # them.
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
    }


def _own_id(data_dir: Path, apart: str) -> str:
    """A name of this data directory's own, the same after a restart; one for each topic read."""
    path = data_dir / f"deliverer{apart}"
    if not path.exists():
        path.write_text(uuid4().hex)
    return path.read_text()
