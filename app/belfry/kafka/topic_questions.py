"""What the cluster is asked about output topics: how large a record each takes, and who may write.

What cannot be told in time is logged and left out: the next look asks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import structlog
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclOperation,
    AdminClient,
    ConfigResource,
)

from belfry.kafka.causes import cause_of

ADMIN_S: Final = 10.0
TOPICS_AT_ONCE: Final = 500
BATCH_OVERHEAD_BYTES: Final = 1024

log = structlog.get_logger(__name__)


def largest_records(admin: AdminClient, topics: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Topics, and the bytes that a record may have in each."""
    for some in _shares(topics):
        resources = [ConfigResource("topic", topic) for topic in some]
        for resource, answer in admin.describe_configs(resources).items():
            try:
                limit = int(answer.result(ADMIN_S)["max.message.bytes"].value)
            except (KafkaException, TimeoutError) as error:
                log.warning("topic not described", topic=resource.name, reason=cause_of(error))
                continue
            yield resource.name, limit - BATCH_OVERHEAD_BYTES


def not_writable(admin: AdminClient, topics: Iterable[str]) -> set[str]:
    """Those of these topics that belfry may not write to."""
    barred: set[str] = set()
    for some in _shares(topics):
        answers = admin.describe_topics(
            TopicCollection(some), include_authorized_operations=True, request_timeout=ADMIN_S
        )
        for topic, answer in answers.items():
            try:
                allowed = answer.result(ADMIN_S).authorized_operations
            except (KafkaException, TimeoutError) as error:
                log.warning("topic not described", topic=topic, reason=cause_of(error))
                continue
            if allowed is not None and AclOperation.WRITE not in allowed:
                barred.add(topic)
    return barred


def _shares(topics: Iterable[str]) -> Iterator[list[str]]:
    """These topics, as many at a time as a broker tells of within the time for an answer."""
    asked = sorted(set(topics))
    for start in range(0, len(asked), TOPICS_AT_ONCE):
        yield asked[start : start + TOPICS_AT_ONCE]
