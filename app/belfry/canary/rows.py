"""Rows of the topic in which canaries write their results: those of a process, and those of all.

    key     3/495000/10000/worker-1 …    partition, hour, interval, and this run of a process
    value   the slots of that hour, a bit for each: asked, registered, fired, in time

Each run of a process has keys of its own, so no process ever overwrites the row of another one, and
a row is written again whenever it gets new bits.  Rows are compacted, so the topic holds the last
row of each key and can be read as a whole.  The result of an hour is the OR of all rows about it
(`slots.py`), so it does not matter which process saw an event, how often and in which order.
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
    """The results of a process itself, and those of all processes in the last hour.

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
        """Set a probe's bit; returns whether this process had not set it before."""
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
        """The events that the owner has to ask for now, and how many slots are new.

        That is the present event.  A new owner also asks for events that are not due yet, unless
        they are known to be accepted: a user's request would wait in the topic for the next owner,
        too.
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
        """Whether another process asked for it, and no process has noted that it was accepted."""
        known = self.known.of(probe)
        return bool(known.asked & ~known.registered & ~self._mine.of(probe).asked & probe.bit)

    def write(self, producer: Any, now_ms: float) -> None:
        """Write changed rows; a row that Kafka does not take now is written again with the next."""
        for place, row in list(self._changed.items()):
            key = f"{row.partition}/{row.hour}/{row.interval_ms}/{self._run}".encode()
            producer.produce(self._topic, encode_row(row), key, on_delivery=self._told(row))
            del self._changed[place]
        oldest = int(now_ms) // HOUR_MS - 1
        self._mine.forget(oldest)
        self.known.forget(oldest)

    def _told(self, row: HourRow) -> Callable[[Any, Any], None]:
        """A callback that marks a row for writing again if Kafka did not take it."""

        def told(error: Any, _message: Any) -> None:
            if error is not None:
                self._changed.setdefault(row.place, row)

        return told


def slots_until(cluster: Cluster, topic: str, from_ms: int, until_ms: int) -> CanarySlots:
    """All rows of a period; raises `MissingTopic` where no canary has ever run.

    Rows of the hour before are among them: they tell the interval.
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
    """Whether a partition was read to its end, even if no record is left in it."""
    place = TopicPartition(topic, partition)
    if consumer.position([place])[0].offset >= end:
        return True
    first, _ = consumer.get_watermark_offsets(place, 10.0, cached=False)
    return bool(first >= end)
