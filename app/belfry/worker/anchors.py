"""The anchor: the identity of each partition's state, kept where the changelog's loss leaves it.

It is the metadata of an offset that a group without members has committed for `belfry.tenants`:
that topic is compacted and is nobody's input or state, and Kafka keeps offsets elsewhere again.  An
offset is forgotten some days after its last commit (`offsets.retention.minutes`), so it is said
again every hour.  The anchor is asked only where the changelog does not tell by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from belfry.settings import Settings
from belfry.store.identity import Identity, identity_of, identity_text

ANSWER_S: Final = 5.0


class Anchors:
    """Reads and writes anchors; ConnectionError where the cluster does not answer."""

    def __init__(self, admin: AdminClient, settings: Settings) -> None:
        self._admin = admin
        self._topic = settings.topic("tenants")
        self.group = f"{settings.cluster.app_id}.identity"

    def read(self, partition: int) -> Identity | None:
        """The identity that was kept last, or None for none."""
        asked: Any = ConsumerGroupTopicPartitions(
            self.group, [TopicPartition(self._topic, partition)]
        )
        try:
            answers = self._admin.list_consumer_group_offsets([asked], request_timeout=ANSWER_S)
            found = answers[self.group].result(ANSWER_S).topic_partitions[0]
        except (KafkaException, TimeoutError) as error:
            raise ConnectionError(f"group {self.group}: {error}") from error
        if found.error is not None:
            raise ConnectionError(f"group {self.group}: {found.error.str()}")
        return identity_of(found.metadata) if found.offset >= 0 and found.metadata else None

    def write(self, identities: Mapping[int, Identity]) -> None:
        """Keep the identities of these partitions."""
        told = [
            TopicPartition(self._topic, partition, 0, metadata=identity_text(identity))
            for partition, identity in identities.items()
        ]
        given: Any = ConsumerGroupTopicPartitions(self.group, told)
        try:
            answers = self._admin.alter_consumer_group_offsets([given], request_timeout=ANSWER_S)
            written = answers[self.group].result(ANSWER_S).topic_partitions
        except (KafkaException, TimeoutError) as error:
            raise ConnectionError(f"group {self.group}: {error}") from error
        failed = [each.error.str() for each in written if each.error is not None]
        if failed:
            raise ConnectionError(f"group {self.group}: {failed[0]}")
