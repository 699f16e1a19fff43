"""Rows of the topic in which canaries write down what they saw: one's own, and everybody's.

    key     3/495000/10000/worker-1 …    partition, hour, interval, and this run of a process
    value   the slots of that hour, a bit for each: asked, registered, fired, in time

Each run of a process has keys of its own, so nobody's row is ever overwritten by another one, and
the same row is written again as often as bits come.  Rows are compacted, so the topic holds the
last row of each key and can be read as a whole.  What is known of an hour is the OR of all rows
about it (`slots.py`), so it does not matter who saw an event, how often and in which order.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from belfry.canary.slots import (
    HOUR_MS,
    CanarySlots,
    HourRow,
    Probe,
    decode_row,
    encode_row,
    open_slots,
)
from belfry.client.faults import permanent
from belfry.client.kafka import NO_GROUP, Cluster

POLL_S: Final = 0.5
AT_ONCE: Final = 1_000


class CanaryRows:
    """What a process has seen itself, and what it knows from all others of the last hour.

    `run` names this run of a process among all that ever write rows; `partitions` is the number of
    homes, which stands in each row.
    """

    def __init__(self, topic: str, partitions: int, run: str) -> None:
        self.known = CanarySlots()
        self._mine = CanarySlots()
        self._topic = topic
        self._partitions = partitions
        self._run = run
        self._changed: dict[tuple[int, int, int], HourRow] = {}

    def mark(self, probe: Probe, what: str) -> bool:
        """Set a probe's bit; whether this process had not set it before."""
        row = self._mine.of(probe)
        row.partitions = self._partitions
        bits = getattr(row, what)
        setattr(row, what, bits | probe.bit)
        self.known.of(probe).join(row)
        if bits & probe.bit:
            return False
        self._changed[row.place] = row
        return True

    def to_ask(self, partition: int, interval_ms: int, now_ms: int) -> tuple[list[Probe], int]:
        """The events that its owner has to ask for now, and how many are owed for the first time.

        That is the present one; and at a new owner those that are not due yet, unless it is known
        that they were accepted.  A user's request would wait in the topic for the next owner, too.
        """
        now = Probe(partition, now_ms // interval_ms, interval_ms)
        if self._mine.of(now).asked & now.bit:
            return [], 0
        last = self.known.last_asked(partition, interval_ms)
        last = now.slot - 1 if last is None else last
        probes = [now._replace(slot=each) for each in open_slots(now_ms, interval_ms)]
        owed = [each for each in probes if each.slot > last or self._is_lost(each)]
        return owed, max(0, now.slot - last)

    def _is_lost(self, probe: Probe) -> bool:
        """Whether another process asked for it, and nobody has noted that it was accepted."""
        known = self.known.of(probe)
        return bool(known.asked & ~known.registered & ~self._mine.of(probe).asked & probe.bit)

    def write(self, producer: Any, now_ms: float) -> None:
        """Write what has changed; what Kafka does not take now is written with the next."""
        for place, row in list(self._changed.items()):
            key = f"{row.partition}/{row.hour}/{row.interval_ms}/{self._run}".encode()
            producer.produce(self._topic, encode_row(row), key, on_delivery=self._told(row))
            del self._changed[place]
        oldest = int(now_ms) // HOUR_MS - 1
        self._mine.forget(oldest)
        self.known.forget(oldest)

    def _told(self, row: HourRow) -> Callable[[Any, Any], None]:
        """A callback that lets a row which Kafka did not take be written again."""

        def told(error: Any, _message: Any) -> None:
            if error is not None:
                self._changed.setdefault(row.place, row)

        return told


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
            raise cluster.unavailable(error, message.topic() or "")
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
