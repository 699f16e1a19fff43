"""The producer and the keys by which events of the audit log get into its topic.

An event that Kafka has confirmed lies on all replicas, once.  Events of one tenant have one key, so
they keep their order, and a reader of one tenant's events needs one partition.
"""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka import Producer

from belfry.wire.audit import AuditEvent

# An event that is not confirmed by then is given up.
CONFIRM_MS: Final = 120_000


def key_of(event: AuditEvent) -> bytes | None:
    """The tenant's name, so that its events keep their order; None for an event of no tenant."""
    return event.tenant.encode(errors="replace") if event.tenant else None


def audit_producer(properties: dict[str, Any]) -> Producer:
    """A producer for the log: it writes nothing twice, and all replicas have what it confirms.

    `properties` are Kafka's; those that this promise depends on are set here and win.
    """
    return Producer(
        {
            "linger.ms": 20,
            **properties,
            "acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": CONFIRM_MS,
        }
    )
