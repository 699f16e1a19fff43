"""Short texts that Kafka keeps for each partition: the metadata of offsets of a group.

The group has no members, and the offsets mean nothing.  Kafka keeps such a text elsewhere than the
records of the topic, and anybody who may look at the group can read all of them with one question.
It is forgotten some days after it was last written (`offsets.retention.minutes`), or when its topic
is deleted.

    write {0: "cluster-a …"}  ─► OffsetCommit(group, topic, partition 0, offset 0, metadata)
    read [0, 1]               ─► OffsetFetch(group, …) ─► {0: "cluster-a …"}

A consumer that is assigned nothing asks, and not an admin client.  An admin client of librdkafka
(2.16) ends the whole process where a broker answers a question for offsets with "I am not the
coordinator", as one does that has just started, or has just handed the group over to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.kafka.causes import cause_of
from belfry.kafka.client_properties import untold
from belfry.settings import SharedSettings

# Seconds for one answer of the coordinator.
ANSWER_S: Final = 5.0
# Seconds between two looks for a coordinator that moves to another broker.
LOOK_S: Final = 0.1
_MOVED: Final = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
# What a client says that knows no coordinator, or one that is gone.
_WITHOUT: Final = (
    *_MOVED,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
)
# A commit waits for a coordinator as long as a session lasts: 45 s by default.  Nobody polls it, so
# what is in the way is told by its answers.
_ASKING: Final = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "session.timeout.ms": 6_000,
    "log_level": 0,
}


class OffsetNotes:
    """Reads and writes a group's texts; ConnectionError where the cluster does not answer.

    Any thread may use it.  It connects when it is first used, and anew where it got no answer: a
    client that has met the end of a broker may wait for it longer than for another one.
    """

    def __init__(
        self,
        settings: SharedSettings,
        group: str,
        topic: str,
        connect: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        """Of a group and a topic by full names; `connect` makes another client than `Consumer`."""
        self._properties = {**untold(settings.kafka_properties()), **_ASKING, "group.id": group}
        # Looked up when one is made, so that the simulator's takes its place.
        self._connect = connect or librdkafka.Consumer
        self._lock = machine.Lock()
        self._consumer: Any = None
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
        """Keep these texts; why some were refused, by partition."""
        told = [
            TopicPartition(self._topic, partition, 0, metadata=text)
            for partition, text in texts.items()
        ]
        try:
            self._told(lambda client: client.commit(offsets=told, asynchronous=False))
        except ConnectionError as error:
            # It says that some were refused, and not which.
            kept, why = self.read(texts), str(error)
            return {number: why for number, text in texts.items() if kept.get(number) != text}
        return {}

    def _told(self, ask: Callable[[Any], Any]) -> Any:
        """The coordinator's answer; one that has just moved is asked again where it is now."""
        until, client = machine.monotonic() + ANSWER_S, self._client()
        while True:
            try:
                return ask(client)
            except KafkaException as error:
                if error.args[0].code() not in _MOVED or machine.monotonic() > until:
                    if error.args[0].code() in _WITHOUT:
                        self._leave(client)
                    raise ConnectionError(f"group {self.group}: {cause_of(error)}") from error
            machine.sleep(LOOK_S)

    def _client(self) -> Any:
        with self._lock:
            if self._consumer is None:
                self._consumer = self._connect(self._properties)
            return self._consumer

    def _leave(self, client: Any) -> None:
        """Ask another one from now on; this one goes with the last who asks it."""
        with self._lock:
            if self._consumer is client:
                self._consumer = None
