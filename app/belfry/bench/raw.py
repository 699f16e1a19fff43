"""The yardstick: a transactional copy by plain clients, over the same bytes.

It is one process, with 10 000 records and their offsets in each transaction.  The plain way waits
for each commit before it goes on.  The pipelined way has two producers in turn, which is the best
that a plain client can do: while one commits, the other gets the next records. It also looks every
5 ms whether the queue of fetched records has room. By default librdkafka looks once a second, and
so the plain way has no records to copy for two thirds of its time.

    plain       fetch produce commit······ fetch produce commit······
    pipelined   fetch produce commit······
                              fetch produce commit······       commits follow one another

A commit still waits for the one before it, so offsets never go back.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from belfry.bench.cluster import BenchCluster
from belfry.bench.plan import BenchPlan
from belfry.bench.result import Result

# Records of a transaction, as many as one of the worker's larger steps.
RAW_RECORDS: Final = 10_000
# Milliseconds between two looks whether a full queue has room for the next fetch.
ROOM_LOOKS: Final = {"fetch.queue.backoff.ms": 5}


def copied(cluster: BenchCluster, plan: BenchPlan) -> Result:
    """Copy the requests that lie in the log: from the first record to the last commit.

    The clock begins with the first batch, so that no figure includes connecting. The CPU seconds
    are those of this process.
    """
    source, target = map(cluster.settings.topic, ("schedules", "deliveries"))
    # So the garbage collector does not search the benchmark's own imports for cycles meanwhile.
    gc.freeze()
    # Fetches before the first call are work too.
    worked = time.process_time()
    consumer = _consumer(cluster, source, ROOM_LOOKS if plan.pipelined else {})
    producers = [_producer(cluster, number) for number in range(2 if plan.pipelined else 1)]
    ways, committing = cycle(producers), Future[None]()
    committing.set_result(None)
    began = 0.0
    with ThreadPoolExecutor(1) as committer:
        for messages in _batches(consumer, plan.events):
            began = began or time.monotonic()
            producer = next(ways)
            producer.begin_transaction()
            for message in messages:
                producer.produce(target, message.value(), message.key(), message.partition() or 0)
            position = consumer.position(consumer.assignment())
            committing.result()
            committing = committer.submit(_commit, producer, position, consumer)
            if not plan.pipelined:
                committing.result()
        committing.result()
    seconds, worked = time.monotonic() - began, time.process_time() - worked
    gc.unfreeze()
    consumer.close()
    name = "raw-pipelined" if plan.pipelined else "raw"
    return replace(Result.of(plan, plan.events, seconds), bench=name, cpu_seconds=worked)


def _batches(consumer: Consumer, events: int) -> Iterator[list[Any]]:
    """The records of the log, in batches; it waits for the first one."""
    seen = 0
    while seen < events:
        messages = consumer.consume(RAW_RECORDS, 1.0)
        if messages:
            yield messages
        seen += len(messages)


def _commit(producer: Producer, position: list[TopicPartition], consumer: Consumer) -> None:
    """Commit records and offsets together, as a consume-transform-produce loop does (KIP-98,
    KIP-447).
    """
    producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata())
    producer.commit_transaction()


def _consumer(cluster: BenchCluster, source: str, more: dict[str, Any]) -> Consumer:
    """A consumer of all partitions from their begin, with more properties of librdkafka."""
    consumer = Consumer(
        {
            **cluster.properties,
            "group.id": f"{cluster.settings.cluster.app_id}-raw",
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 65_536,
            **more,
        }
    )
    count = cluster.settings.cluster.partitions
    consumer.assign([TopicPartition(source, number, 0) for number in range(count)])
    return consumer


def _producer(cluster: BenchCluster, number: int) -> Producer:
    """A transactional producer with large batches; making it fences an earlier one of its name."""
    producer = Producer(
        {
            **cluster.properties,
            "transactional.id": f"{cluster.settings.cluster.app_id}-raw-{number}",
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.init_transactions()
    return producer
