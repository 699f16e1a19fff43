"""Kafka clients of the library: how they are made, and questions to a cluster.

Clients are made by `Cluster`, which gives each of them the user's properties over belfry's own.
Consumers of this module never join a group unless they commit, and never make a topic.

    cluster = Cluster("broker:9092", {"security.protocol": "SASL_SSL", …})
    cluster.partitions(consumer, topic)     [0, 1, 2, 3]; MissingTopic, or Unavailable in 5 s
    cluster.ends(consumer, topic)           where each of them ends now

Any failure is raised as an error in words, which says what failed, where, why, and what to do
(`faults.py`). A missing right is named with the command that gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic, sleep
from typing import Any, Final, TypeVar

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from belfry.client.errors import Unavailable
from belfry.client.faults import ABSENT, FAILED_FOR_GOOD, MOVING, Faults, bad_property, missing
from belfry.client.reconnecting import reconnecting
from belfry.client.watermarks import LEADERLESS, look_for_leaders
from belfry.kafka.denials import sentence, user_of
from belfry.kafka.rights import GROUP, TOPIC
from belfry.wire.record import Headers

# The group of consumers that read without one; they never commit.
NO_GROUP: Final = "belfry-reads-without-a-group"
# Seconds: until a broker counts as unreachable, and between two tries for leaders of a new topic.
REACH_S: Final = 5.0
RETRY_S: Final = 0.05
# How long a broker waits for records before it tells a reader that it has reached the end. Such a
# reader waits for that at the end of each partition, twice half a second by librdkafka's default.
SOON_MS: Final = 10
_C = TypeVar("_C", Producer, Consumer, AdminClient)


class Cluster:
    """One Kafka cluster and the properties that reach it: makes clients, explains their errors.

    `properties` are librdkafka's and win over belfry's own. Making a client connects nothing yet.
    Methods that ask raise `Unavailable`, or `MissingTopic`; methods that make raise `BadProperty`.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, Any] | None = None) -> None:
        self.faults = Faults()
        given = properties or {}
        self._properties: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": "belfry-client",
            **reconnecting(given),
            "log_level": 0,  # Errors that the client would log are raised instead, in words.
            **given,
            "error_cb": self.faults,
        }
        if "debug" in self._properties and "log_level" not in given:
            del self._properties["log_level"]
        self.servers: str = self._properties["bootstrap.servers"]

    def producer(self) -> Producer:
        """A producer whose writes are acknowledged by all replicas, in order and once.

        A key goes to the partition that Java's clients choose for it (murmur2). A record that is
        not acknowledged in 10 s has failed, and its callback is told.
        """
        return self._made(
            Producer,
            {
                "acks": "all",
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "message.timeout.ms": 10_000,
                **self._properties,
            },
        )

    def transactional(self, transactional_id: str) -> Producer:
        """A producer of transactions; it ends those that an earlier one of this id left open."""
        given = {**self._properties, "transactional.id": transactional_id}
        return self._made(Producer, {"partitioner": "murmur2_random", **given})

    def consumer(
        self,
        group: str,
        *,
        commits: bool = False,
        from_beginning: bool = False,
        tells_ends: bool = False,
        uncommitted: bool = False,
    ) -> Consumer:
        """A consumer of committed records; without `commits` the group leaves no trace.

        With `tells_ends` a message whose error is _PARTITION_EOF says that no record follows. A
        reader of `uncommitted` records sees those behind open transactions, and where the log ends.
        """
        return self._made(
            Consumer,
            {
                **({"fetch.wait.max.ms": SOON_MS} if tells_ends else {}),
                **self._properties,
                "group.id": group,
                "auto.offset.reset": "earliest" if from_beginning else "latest",
                "isolation.level": "read_uncommitted" if uncommitted else "read_committed",
                "enable.auto.commit": commits,
                "enable.partition.eof": tells_ends,
                "enable.auto.offset.store": False,
                "allow.auto.create.topics": False,
                "topic.metadata.refresh.interval.ms": 5_000,
            },
        )

    def admin(self) -> AdminClient:
        """An admin client; it does not create a topic by asking for its name."""
        return self._made(AdminClient, self._properties | {"allow.auto.create.topics": False})

    def _made(self, kind: Callable[[dict[str, Any]], _C], properties: dict[str, Any]) -> _C:
        """A client, or `BadProperty` in librdkafka's words."""
        try:
            return kind(properties)
        except (KafkaException, ValueError, TypeError) as error:
            detail = error.args[0]
            text = detail.str() if isinstance(detail, KafkaError) else str(detail)
            raise bad_property(text) from None

    def reach(self, client: Producer | Consumer | AdminClient) -> Any:
        """Metadata of the cluster once a broker answers; `Unavailable` within `REACH_S`."""
        try:
            return client.list_topics(timeout=REACH_S)
        except KafkaException as error:
            client.poll(0)
            raise self.unavailable(error.args[0]) from None

    def partitions(self, client: Producer | Consumer | AdminClient, topic: str) -> list[int]:
        """Partitions of a topic; raises `MissingTopic` or `Unavailable` within `REACH_S`."""
        try:
            found = client.list_topics(topic, timeout=REACH_S).topics[topic]
        except KafkaException as error:
            client.poll(0)
            raise self.unavailable(error.args[0]) from None
        if found.error is not None:
            if found.error.code() in ABSENT:
                raise missing(topic, self.servers)
            operation = "Write" if isinstance(client, Producer) else "Read"
            raise self.unavailable(found.error, topic, operation=operation)
        return sorted(found.partitions)

    def ends(self, consumer: Consumer, topic: str) -> list[TopicPartition]:
        """Where each partition of a topic ends now, as positions to read from."""
        wanted = [TopicPartition(topic, p, OFFSET_END) for p in self.partitions(consumer, topic)]
        deadline = monotonic() + REACH_S
        while True:
            try:
                return _offsets(consumer, wanted)
            except KafkaException as error:
                # A topic that was created this moment has leaders that do not know it yet.
                code = error.args[0].code()
                if code not in MOVING | {LEADERLESS} or monotonic() > deadline:
                    raise self.unavailable(error.args[0], topic) from None
            sleep(RETRY_S)
            look_for_leaders(consumer, [topic])

    def denied(self, operation: str, kind: str, name: str) -> str:
        """That this user may not do something, and the command by which it may."""
        return sentence(user_of(self._properties), operation, kind, name, self.servers)

    def refused(self, operation: str, kind: str, name: str) -> Unavailable:
        """The error for a right that this user lacks."""
        told = self.denied(operation, kind, name)
        return Unavailable(f"Kafka at {self.servers} does not let this user in: {told}")

    def fatal(self) -> KafkaException:
        """The error with which a new producer fails, before it has written a record."""
        try:
            self.producer().poll(REACH_S)
        except KafkaException as error:
            return error
        return KafkaException(KafkaError(FAILED_FOR_GOOD))

    def cause(self, error: KafkaError) -> KafkaError:
        """The cause of an error: a producer that has failed for good says only that it has."""
        found: KafkaError = self.fatal().args[0] if error.code() == FAILED_FOR_GOOD else error
        return found

    def unavailable(
        self, error: KafkaError, topic: str = "", group: str = "", operation: str = "Read"
    ) -> Unavailable:
        """An error of librdkafka in words: what failed, where, why, what to do.

        `operation` is the one tried on the topic; a group is always read. If the brokers deny
        something else, this function knows the user's name only.
        """
        error = self.cause(error)
        # A producer of idempotent writes is denied the cluster where it may write to no topic.
        written = error.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED and operation == "Write"
        if topic and (written or error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED):
            return self.refused(operation, TOPIC, topic)
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED and group:
            return self.refused("Read", GROUP, group)
        user = user_of(self._properties)
        return Unavailable(self.faults.words(error, self.servers, user))


def _offsets(consumer: Consumer, wanted: list[TopicPartition]) -> list[TopicPartition]:
    """Offsets of partitions; raises KafkaException for the first that has none."""
    # The "time" that is looked up is the logical offset "end": one request to each broker.
    found = consumer.offsets_for_times(wanted, timeout=REACH_S)
    for each in found:
        if each.error is not None:
            raise KafkaException(each.error)
    return found


def headers_of(message: Message) -> Headers:
    """Headers of a record; those with a name that is no UTF-8 come back as one that says so.

    confluent-kafka leaves such an error pending, and the next call of anything meets it.  `map`
    looks for pending errors after each call, where a plain call does not.
    """
    calls: Any = map(Message.headers, (message,))
    try:
        return next(calls) or []
    except (SystemError, UnicodeDecodeError):
        return [("belfry-unreadable", b"a header name of this record is no UTF-8")]
