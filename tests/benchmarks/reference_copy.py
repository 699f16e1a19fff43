"""The yardstick's yardstick: a transactional copy as the client's documentation shows it.

    python reference_copy.py BOOTSTRAP SOURCE TARGET PARTITIONS RECORDS

Prints the seconds from the first record to the last commit, and the CPU seconds of all of it.  It
shares no code with `belfry bench`.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition


def main(bootstrap: str, source: str, target: str, partitions: int, records: int) -> None:
    """Copy so many records in transactions of 10 000."""
    worked = time.process_time()
    name = f"reference-{time.time_ns()}"
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "enable.auto.commit": False,
            # By default the client looks once a second whether its full queue has room again.
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign([TopicPartition(source, each, 0) for each in range(partitions)])
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "linger.ms": 5,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.init_transactions()
    began, copied = 0.0, 0
    while copied < records:
        batch = consumer.consume(10_000, 1.0)
        if not copied:
            began = time.perf_counter()
        producer.begin_transaction()
        for record in batch:
            producer.produce(target, record.value(), record.key(), record.partition() or 0)
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
        producer.commit_transaction()
        copied += len(batch)
    sys.stdout.write(f"{time.perf_counter() - began} {time.process_time() - worked}\n")
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
