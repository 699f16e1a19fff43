"""Taking requests in from a partition that holds no schedules.

The number of homes is fixed by the changelog. Partitions that are added to the source later only
take requests: their owner re-routes each one, and the position moves in the same transaction, as an
offset of a consumer group that has no members. `open` fences the former owner first, so the
position that is read after that is final.

    four homes, and partition 4 was added to the input later; tenant shop is at home on partition 2
    12:00:00.000  a client that counts five partitions writes a request of shop to 4, offset 17
    12:00:00.008  owner of 4: the request goes to 2, with 4@17 in its headers ┐ one transaction
                  position of 4: 18                                           ┘
    12:00:00.015  owner of 2 takes it in; its verdict names 4@17, where the sender wrote it

A kill before the commit leaves position and request as they were, so the request is sent on once.
No schedule lives here, so there is no changelog, no store, and nothing fires.

The changelog may get the partition as well (`belfry rebalance grow`). Then its first owner that
keeps state fences the owner that sent its requests on, and notes beside the position that sending
on is over. A worker whose broker has not heard of the changelog's partitions yet reads that note,
and sends nothing on again. A release that does not know of growth reads the position alone: no log
can reach that position, so such a worker, back from a long pause, sends nothing on again either.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException, TopicPartition

from belfry.engine.effects import Effects
from belfry.kafka import librdkafka
from belfry.kafka.error_ends import end_of
from belfry.kafka.fetch_position import Where
from belfry.kafka.step_producer import ProducerSurroundings, Receipt
from belfry.kafka.transactions import COMMIT_S, PartitionProducer

# Seconds for the group's coordinator to answer with a position.
COMMITTED_S: Final = 10.0
# Kafka forgets offsets of a group without members after some days: commit them again now and then.
RENEW_MS: Final = 3_600_000.0
# The note beside the position where nothing is sent on any more; the first such offset follows.
OVER: Final = "holds schedules from "
# The position in that case: no log has it, so a worker that reads it alone stops there.
BEYOND: Final = 2**62


class SentOn(NamedTuple):
    """Requests before `offset` were sent on; `over`: the partition has held schedules since."""

    offset: int
    over: bool = False


class ForwardingProducer(PartitionProducer):
    """A producer that keeps a source position instead of a changelog.

    Its transactional id ends with the partition, as that of each owner does; the part before is the
    name of the group.
    """

    def __init__(
        self, properties: dict[str, Any], partition: int, surroundings: ProducerSurroundings
    ) -> None:
        super().__init__(properties, partition, surroundings)
        self.group = str(properties["transactional.id"]).rpartition(".")[0]
        self._member = librdkafka.Consumer({**_connection(properties), "group.id": self.group})

    def _record(self, effects: Effects) -> float:
        assert effects.manifest is not None, "a step is sealed before it is committed"
        position = TopicPartition(
            self._output_topics.schedules, self._partition, effects.manifest.position
        )
        self._producer.send_offsets_to_transaction(
            [position], self._member.consumer_group_metadata()
        )
        return self._clock.wall_ms()

    def end_at(self, offset: int) -> None:
        """Note that from this offset on nothing is sent on; the only call after `open`."""
        topic, over = self._output_topics.schedules, f"{OVER}{offset}"
        place = TopicPartition(topic, self._partition, BEYOND, over)
        try:
            self._producer.begin_transaction()
            self._producer.send_offsets_to_transaction(
                [place], self._member.consumer_group_metadata()
            )
            self._producer.commit_transaction(COMMIT_S)
        except KafkaException as error:
            raise end_of(error, during="the end of sending on", final=True) from error

    def _receipt(self, sent_ms: float) -> Receipt:
        return Receipt(0, sent_ms, None, *self._clock.both_ms())

    def close(self) -> None:
        """Close the producer and the member of the group."""
        super().close()
        self._member.close()


_OF_PRODUCERS: Final = (
    "transaction", "linger.", "batch.", "compression.", "message.", "partitioner", "queue.buffering"
)  # fmt: skip


def _connection(properties: dict[str, Any]) -> dict[str, Any]:
    """The properties that a consumer shares with a producer."""
    return {key: value for key, value in properties.items() if not key.startswith(_OF_PRODUCERS)}


class TenantInputProducer(ForwardingProducer):
    """Commits the positions of many topics with the requests that are handed over."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.positions: dict[Where, int] = {}

    def _record(self, _effects: Effects) -> float:
        behind = [TopicPartition(*where, offset) for where, offset in self.positions.items()]
        self._producer.send_offsets_to_transaction(behind, self._member.consumer_group_metadata())
        return self._clock.wall_ms()


def committed_position(properties: dict[str, Any], topic: str, partition: int) -> SentOn | None:
    """The position that the last owner committed, None where there is none."""
    consumer = librdkafka.Consumer({**properties, "isolation.level": "read_committed"})
    try:
        found = consumer.committed([TopicPartition(topic, partition)], COMMITTED_S)[0]
    except KafkaException as error:
        raise ConnectionError(f"{topic}/{partition}: {error.args[0].str()}") from error
    finally:
        consumer.close()
    told = str(found.metadata or "")
    if told.startswith(OVER):
        return SentOn(int(told.removeprefix(OVER)), over=True)
    return SentOn(found.offset) if found.offset >= 0 else None
