"""Short texts that Kafka keeps for each partition: the metadata of offsets of a group.

The group has no members, and the offsets mean nothing. Kafka does not keep such a text with the
records of the topic, and any client that may describe the group can read all texts by one request.
A text is forgotten some days after it was last written (`offsets.retention.minutes`), or when its
topic is deleted.

    write {0: "cluster-a …"}  ─► OffsetCommit(group, topic, partition 0, offset 0, metadata)
    read [0, 1]               ─► OffsetFetch(group, …) ─► {0: "cluster-a …"}

This does not use an admin client of librdkafka: its version 2.16 ends the whole process if a broker
answers a request for offsets with "not the coordinator". A broker does so if it has just started,
or has just handed the group over to another broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.kafka import offset_client
from belfry.kafka.causes import cause_of
from belfry.settings import SharedSettings

T = TypeVar("T")
# Seconds for one answer of the coordinator.
ANSWER_S: Final = 5.0


class OffsetNotes:
    """Reads and writes a group's texts; ConnectionError if the cluster does not answer.

    Any thread may use it. It connects when it is first used, and anew after a missing answer.
    """

    def __init__(
        self,
        settings: SharedSettings,
        group: str,
        topic: str,
        connect: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        """`group` and `topic` are full names; `connect` makes another client."""
        properties = {**settings.kafka_properties(), "group.id": group}
        properties["socket.timeout.ms"] = int(ANSWER_S * 1000)
        self._client = (connect or offset_client.OffsetClient)(properties)
        self._topic = topic
        self.group = group

    def read(self, partitions: Iterable[int]) -> dict[int, str]:
        """The texts of those partitions that have one."""
        asked = [TopicPartition(self._topic, partition) for partition in partitions]
        found = self._told(lambda client: client.committed(asked, timeout=ANSWER_S))
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
        """Keep these texts; returns why some were refused, by partition."""
        told = [
            TopicPartition(self._topic, partition, 0, metadata=text)
            for partition, text in texts.items()
        ]
        found = self._told(lambda client: client.commit(offsets=told, asynchronous=False))
        return {each.partition: each.error.str() for each in found if each.error is not None}

    def _told(self, ask: Callable[[Any], T]) -> T:
        try:
            return ask(self._client)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._TIMED_OUT:
                # The connection may be dead: the next request makes another one.
                self._client.close()
            raise ConnectionError(f"group {self.group}: {cause_of(error)}") from error
