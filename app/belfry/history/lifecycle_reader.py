"""Reads those partitions of the lifecycle topic that it is given, and keeps what they hold.

    assign {1, 5}   1 from offset 90, 5 from its begin (the store knows nothing of it)
    ask_ends        1 ends at 120, 5 at 3: until then they are backlog
    batch, keep     1: 90 to 119 ─► the store, and 120 as the offset behind them
    assign {5}      1 belongs to another worker now; its records stay until they are swept

Records and the offset behind them go into the store together, so each is kept once, whoever reads
and however often that changes.  A record that is no lifecycle event is passed over: its offset
counts, and nothing is kept of it.

`follower.py` says which partitions, and when; all of this runs in its thread.
"""

from __future__ import annotations

from time import monotonic
from typing import Any, Final

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from belfry.client.decoding import Decoder
from belfry.history.backlog import Backlog
from belfry.history.history_store import HistoryEntry, HistoryStore
from belfry.wire.lifecycle import Headline, encode_record, headline

# Messages of a batch, and seconds for the first of them and for the others.
BATCH: Final = 500
WAIT_S: Final = 0.2
BATCH_S: Final = 0.005
# Seconds between questions about ends, between counts of partitions, and for an answer.
AGAIN_S: Final = 2.0
COUNT_S: Final = 10.0
ASK_S: Final = 1.0

log = structlog.get_logger(__name__)


class LifecycleReader:
    """A consumer of the lifecycle topic, from its begin to `close`.

    It tells `backlog` how far each partition has been read.  `head` is what stands before a body
    that this release wrote: such a record is kept without being decoded.
    """

    def __init__(self, consumer: Consumer, topic: str, backlog: Backlog, head: bytes) -> None:
        self.partitions = 0
        self._consumer = consumer
        self._topic = topic
        self._backlog = backlog
        self._head = head
        self._decoder = Decoder("LifecycleEvent", only=True)
        self._assigned: frozenset[int] = frozenset()
        self._ask_at = 0.0
        self._counted = monotonic()

    def close(self) -> None:
        """Read no more; nothing counts as followed from here on."""
        self._backlog.assign(frozenset())
        self._consumer.close()

    def assign(self, wanted: frozenset[int], store: HistoryStore) -> None:
        """Read these partitions from now on, each from where the store has it."""
        if wanted == self._assigned:
            return
        places = []
        for partition in sorted(wanted):
            position = store.position(partition)
            start = OFFSET_BEGINNING if position is None else position
            places.append(TopicPartition(self._topic, partition, start))
        self._consumer.assign(places)
        self._assigned = wanted
        self._backlog.assign(wanted)
        self._ask_at = 0.0

    def ask_ends(self, store: HistoryStore) -> None:
        """Ask where the partitions end that have come here; the consumer may tell it sooner."""
        wanted = [TopicPartition(self._topic, p, OFFSET_END) for p in self._backlog.unknown()]
        if not wanted or monotonic() < self._ask_at:
            return
        try:
            found = self._consumer.offsets_for_times(wanted, timeout=ASK_S)
        except KafkaException as error:
            log.info("ends of the lifecycle topic not told", reason=str(error))
            found = []
        for each in found:
            if each.error is None and each.offset >= 0:
                position = store.position(each.partition) or 0
                self._backlog.ends_at(each.partition, each.offset, position)
        self._ask_at = monotonic() + AGAIN_S

    def count(self) -> None:
        """See now and then how many partitions the topic has: some may be added, none goes away."""
        if monotonic() - self._counted < COUNT_S:
            return
        self._counted = monotonic()
        try:
            found = self._consumer.list_topics(self._topic, ASK_S).topics[self._topic]
        except KafkaException as error:
            log.info("partitions of the lifecycle topic not told", reason=str(error))
            return
        self.partitions = max(self.partitions, len(found.partitions))

    def batch(self) -> list[Message]:
        """The next messages, and what the consumer says of ends; none where nothing came."""
        first = self._consumer.poll(WAIT_S)
        return [] if first is None else [first, *self._consumer.consume(BATCH - 1, BATCH_S)]

    def keep(self, messages: list[Message], store: HistoryStore) -> None:
        """Put them into the store, each partition's with the offset behind them.

        Raises KafkaException for an error that the consumer does not overcome.
        """
        by_partition: dict[int, list[Message]] = {}
        ended: list[int] = []
        for message in messages:
            error, partition = message.error(), message.partition() or 0
            if error is None:
                by_partition.setdefault(partition, []).append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.append(partition)
            elif error.fatal():
                raise KafkaException(error)
        for partition, read in by_partition.items():
            found = [entry for message in read if (entry := self._entry(message)) is not None]
            position = (read[-1].offset() or 0) + 1
            store.add(partition, found, position)
            self._backlog.reached(partition, position)
        for partition in ended:
            self._backlog.ended(partition)

    def _entry(self, message: Message) -> HistoryEntry | None:
        """The entry of a record; None for a record that is no lifecycle event."""
        value: Any = message.value()
        if value is None:
            return None
        body = value[len(self._head) :] if value.startswith(self._head) else None
        try:
            if body is None:
                record = self._decoder.record(value)
                if record is None:
                    return None
                body = encode_record(record)
            head: Headline = headline(body)
        except (IndexError, ValueError):
            return None
        return HistoryEntry(message.offset() or 0, head, body)
