"""Reads what canaries have written down, for `belfry slo`.

Rows are compacted under partition, hour and process, so the topic holds a row for each of them and
is read as a whole, from its begin to the end that it has now.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from belfry.canary.slots import HOUR_MS, CanarySlots, decode_row
from belfry.client.faults import permanent
from belfry.client.kafka import NO_GROUP, Cluster

POLL_S: Final = 0.5
AT_ONCE: Final = 1_000


def slots_until(cluster: Cluster, topic: str, from_ms: int, until_ms: int) -> CanarySlots:
    """All rows of a time; raises `MissingTopic` where nothing was ever measured.

    Rows of the hour before are among them: they say how often was asked.
    """
    slots = CanarySlots()
    hours = range(from_ms // HOUR_MS - 1, until_ms // HOUR_MS + 1)
    with closing(cluster.consumer(NO_GROUP)) as consumer:
        left = {each.partition: each.offset for each in cluster.ends(consumer, topic)}
        places = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in left]
        consumer.assign(places)
        while left:
            for message in consumer.consume(AT_ONCE, POLL_S):
                _take(message, slots, hours, cluster)
            left = {p: end for p, end in left.items() if not _reached(consumer, topic, p, end)}
    return slots


def _take(message: Any, slots: CanarySlots, hours: range, cluster: Cluster) -> None:
    error = message.error()
    if error is not None:
        if permanent(error):
            raise cluster.unavailable(error)
        return
    row = decode_row(message.value())
    if row is not None and row.hour in hours:
        slots.add(row)


def _reached(consumer: Any, topic: str, partition: int, end: int) -> bool:
    """Whether a partition was read to its end, also one of which nothing is left to read."""
    place = TopicPartition(topic, partition)
    if consumer.position([place])[0].offset >= end:
        return True
    first, _ = consumer.get_watermark_offsets(place, 10.0, cached=False)
    return bool(first >= end)
