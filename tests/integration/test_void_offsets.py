"""What a real log says of offsets without records: ends, what was rolled back, what is gone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from belfry.kafka.void_offsets import VoidOffsets


def wrote(producer: Producer, topic: str, records: int, *, commit: bool) -> None:
    """A transaction of so many records in partition 0."""
    producer.begin_transaction()
    for each in range(records):
        producer.produce(topic, b"row", f"{each}".encode(), partition=0)
    producer.flush(20)
    producer.commit_transaction() if commit else producer.abort_transaction()


def test_ends_and_what_was_rolled_back_are_void_and_deleted_records_are_not(
    kafka: str, unique: Callable[[str], str]
) -> None:
    topic = unique("void")
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": topic})
    producer.init_transactions(20)
    wrote(producer, topic, 3, commit=True)
    wrote(producer, topic, 200, commit=False)
    wrote(producer, topic, 2, commit=True)
    # Rows 0 to 2 and their end; 4 to 203 and their end; rows 205 and 206 and their end.
    where = topic, 0
    with closing(VoidOffsets({"bootstrap.servers": kafka})) as asked:
        assert asked.all_void(where, 3, 205)
        assert asked.all_void(where, 100, 150)
        assert not asked.all_void(where, 2, 205)
        assert not asked.all_void(where, 3, 206)
        gone = admin.delete_records([TopicPartition(topic, 0, 150)])
        [each.result(20) for each in gone.values()]
        assert not asked.all_void(where, 3, 205)
        assert asked.all_void(where, 150, 205)
