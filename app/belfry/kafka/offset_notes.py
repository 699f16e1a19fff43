"""Short texts that Kafka keeps for each partition: the metadata of offsets of a group.

The group has no members, and the offsets mean nothing.  Kafka keeps such a text elsewhere than the
records of the topic, and anybody who may look at the group can read all of them with one question.
It is forgotten some days after it was last written (`offsets.retention.minutes`), or when its topic
is deleted.

The group is described before its offsets are touched.  An admin client of librdkafka (2.16) ends
the whole process where a broker answers a question for offsets with "I am not the coordinator", as
one does that has just started.  To the question for the group that answer is harmless, and makes
the client look for the coordinator anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from belfry.kafka.causes import cause_of

# Seconds for one answer of the coordinator.
ANSWER_S: Final = 5.0
# What a coordinator says of a group that it does not know, which is an answer.
NO_GROUP: Final = KafkaError.GROUP_ID_NOT_FOUND


class OffsetNotes:
    """Reads and writes a group's texts; ConnectionError where the cluster does not answer."""

    def __init__(self, admin: AdminClient, group: str, topic: str) -> None:
        self._admin = admin
        self._topic = topic
        self.group = group

    def read(self, partitions: Iterable[int]) -> dict[int, str]:
        """The texts of those partitions that have one."""
        asked: Any = ConsumerGroupTopicPartitions(
            self.group, [TopicPartition(self._topic, partition) for partition in partitions]
        )
        self._reach_coordinator()
        try:
            answers = self._admin.list_consumer_group_offsets([asked], request_timeout=ANSWER_S)
            found = answers[self.group].result(ANSWER_S).topic_partitions
        except (KafkaException, TimeoutError) as error:
            raise ConnectionError(f"group {self.group}: {cause_of(error)}") from error
        unknown = KafkaError.UNKNOWN_TOPIC_OR_PART
        for each in found:
            if each.error is not None and each.error.code() != unknown:
                raise ConnectionError(f"group {self.group}: {each.error.str()}")
        return {
            each.partition: each.metadata
            for each in found
            if each.error is None and each.offset >= 0 and each.metadata
        }

    def write(self, texts: Mapping[int, str]) -> dict[int, str]:
        """Keep these texts; why some were refused, by partition."""
        told = [
            TopicPartition(self._topic, partition, 0, metadata=text)
            for partition, text in texts.items()
        ]
        given: Any = ConsumerGroupTopicPartitions(self.group, told)
        self._reach_coordinator()
        try:
            answers = self._admin.alter_consumer_group_offsets([given], request_timeout=ANSWER_S)
            written = answers[self.group].result(ANSWER_S).topic_partitions
        except (KafkaException, TimeoutError) as error:
            raise ConnectionError(f"group {self.group}: {cause_of(error)}") from error
        return {each.partition: each.error.str() for each in written if each.error is not None}

    def _reach_coordinator(self) -> None:
        """Make the client find the group's coordinator; ConnectionError where there is none."""
        try:
            asked: Any = self._admin.describe_consumer_groups(
                [self.group], request_timeout=ANSWER_S
            )
            asked[self.group].result(ANSWER_S)
        except (KafkaException, TimeoutError) as error:
            # A coordinator that knows no such group is one.
            if isinstance(error, TimeoutError) or error.args[0].code() != NO_GROUP:
                raise ConnectionError(f"group {self.group}: {cause_of(error)}") from error
