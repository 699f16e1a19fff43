"""Reads the lifecycle topic into the store: those partitions that this worker answers for.

Partition *p* of the lifecycle topic is followed by the worker that holds the home *p* mod homes.
So the worker that holds a schedule's partition need not be the one that has its history, but each
record
is followed by one.  The reader takes its time: after each batch it rests for as long as the batch
took, 50 ms at most, so that firing has its turn.

A partition counts as followed once it has been read as far as it reached when it came here
(`backlog.py`).  A caller that asks before that is told to ask again, and gets no answer with a hole
in it.

    lifecycle   ─► a batch of up to 500 ─► the store, with the offset behind it ─► rest
    each 0.5 s     which homes are held here? ─► partitions assigned anew
    each 20 s      flush            each 60 s     drop what tenants no longer want

A store that is damaged is thrown away and read again, as far back as the topic reaches.  No firing
waits for this thread.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
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
from belfry.client.kafka import Cluster
from belfry.history.backlog import Backlog
from belfry.history.history_store import HistoryEntry, HistoryStore
from belfry.history.layout import HOUR_MS
from belfry.host.background import Background
from belfry.host.passing import PassThrough, all_pass, at_once
from belfry.host.rocks import RocksMap, wipe
from belfry.settings import ServerSettings
from belfry.store.ordered_map import Damaged
from belfry.wire.lifecycle import Headline, encode_record, headline

BATCH: Final = 500
WAIT_S: Final = 0.2
BATCH_S: Final = 0.005
LOOK_S: Final = 0.5
SWEEP_S: Final = 60.0
FLUSH_S: Final = 20.0
AGAIN_S: Final = 2.0
COUNT_S: Final = 10.0
ASK_S: Final = 1.0
# Who wrote a record may have a clock that is ahead of this one.
AHEAD_MS: Final = HOUR_MS

log = structlog.get_logger(__name__)


class Follower:
    """Keeps a store up to date in a thread of its own."""

    def __init__(
        self,
        settings: ServerSettings,
        head: bytes,
        held: Callable[[], list[int]],
        retention_ms: Callable[[bytes], int],
        now_ms: Callable[[], float],
        through: PassThrough = at_once,
    ) -> None:
        """`held` are the homes of this worker, `retention_ms` is how long a tenant remembers.

        `head` is what stands before a body that this release wrote: such a record is kept without
        being decoded.  What is read comes `through` an agent.
        """
        self._through = through
        self._topic = settings.topic("lifecycle")
        self._group = f"{settings.cluster.app_id}-history"
        self._path = settings.data_dir / "history"
        self._homes = 1
        self._head = head
        self._held = held
        self._retention_ms = retention_ms
        self._now_ms = now_ms
        properties = settings.kafka_properties()
        self._cluster = Cluster(properties.pop("bootstrap.servers"), properties)
        self._decoder = Decoder("LifecycleEvent", only=True)
        self._rows: RocksMap | None = None
        self.store: HistoryStore | None = None
        self.partitions = 0
        self._assigned: frozenset[int] = frozenset()
        self._backlog = Backlog()
        self._ask_at = 0.0
        self._swept = self._flushed = self._counted = monotonic()
        self._thread = Background("history", self._turn, log, "the history is not followed")

    def start(self, homes: int) -> None:
        """Begin to follow; `homes` is the number of homes of all schedules."""
        self._homes = homes
        self._thread.start()

    def stop(self) -> None:
        """Stop, and close the store."""
        self._thread.stop()
        self._close()

    @property
    def followed(self) -> frozenset[int]:
        """The partitions that this worker answers for."""
        return self._backlog.passed

    def home_of(self, partition: int) -> int:
        """The home whose holder follows a partition of the topic: *p* mod homes."""
        return partition % self._homes

    def reach_ms(self, tenant: bytes) -> tuple[int, int]:
        """From when until when there may be records of a tenant, epoch ms.

        The end lies an hour ahead, since the clocks of workers that wrote them may.
        """
        now_ms = int(self._now_ms())
        return max(0, now_ms - self._retention_ms(tenant)), now_ms + AHEAD_MS

    def _turn(self) -> None:
        try:
            if self._rows is None:
                self._rows = _opened(self._path)
                self.store = HistoryStore(self._rows)
            self._follow(self.store or HistoryStore(self._rows), self._rows)
        except Damaged as error:
            log.warning("the history is damaged and is read anew", reason=str(error))
            self._drop()
        except Exception:
            if self._rows is not None and self._rows.stuck:
                self._close()
            raise

    def _drop(self) -> None:
        self._close()
        wipe(self._path)

    def _close(self) -> None:
        self.store, rows, self._rows = None, self._rows, None
        if rows is not None:
            rows.close()

    def _follow(self, store: HistoryStore, rows: RocksMap) -> None:
        consumer = self._cluster.consumer(self._group, from_beginning=True, tells_ends=True)
        try:
            self.partitions = len(self._cluster.partitions(consumer, self._topic))
            looked = 0.0
            while not self._thread.stopping.is_set():
                if monotonic() - looked >= LOOK_S:
                    looked = monotonic()
                    self._assign(consumer, store)
                    self._ask_ends(consumer, store)
                    self._chores(store, rows)
                    self._count(consumer)
                self._take(consumer, store)
        finally:
            self._assigned, self._backlog = frozenset(), Backlog()
            consumer.close()

    def _assign(self, consumer: Consumer, store: HistoryStore) -> None:
        held = set(self._held())
        wanted = frozenset(p for p in range(self.partitions) if self.home_of(p) in held)
        if wanted == self._assigned:
            return
        places = []
        for partition in sorted(wanted):
            position = store.position(partition)
            start = OFFSET_BEGINNING if position is None else position
            places.append(TopicPartition(self._topic, partition, start))
        consumer.assign(places)
        self._assigned = wanted
        self._backlog.assign(wanted)
        self._ask_at = 0.0

    def _ask_ends(self, consumer: Consumer, store: HistoryStore) -> None:
        """Ask where the partitions end that have come here; the reader may tell it sooner."""
        wanted = [TopicPartition(self._topic, p, OFFSET_END) for p in self._backlog.unknown()]
        if not wanted or monotonic() < self._ask_at:
            return
        try:
            found = consumer.offsets_for_times(wanted, timeout=ASK_S)
        except KafkaException as error:
            log.info("ends of the lifecycle topic not told", reason=str(error))
            found = []
        for each in found:
            if each.error is None and each.offset >= 0:
                position = store.position(each.partition) or 0
                self._backlog.ends_at(each.partition, each.offset, position)
        self._ask_at = monotonic() + AGAIN_S

    def _count(self, consumer: Consumer) -> None:
        """Partitions may be added to the topic; none is ever taken away."""
        if monotonic() - self._counted < COUNT_S:
            return
        self._counted = monotonic()
        try:
            found = consumer.list_topics(self._topic, ASK_S).topics[self._topic]
        except KafkaException as error:
            log.info("partitions of the lifecycle topic not told", reason=str(error))
            return
        self.partitions = max(self.partitions, len(found.partitions))

    def _take(self, consumer: Consumer, store: HistoryStore) -> None:
        first = consumer.poll(WAIT_S)
        if first is None:
            return
        messages = [first, *consumer.consume(BATCH - 1, BATCH_S)]
        if not all_pass(self._through, self._topic, messages, self._thread.stopping):
            return
        began = monotonic()
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
            notes = [note for message in read if (note := self._note(message)) is not None]
            position = (read[-1].offset() or 0) + 1
            store.add(partition, notes, position)
            self._backlog.reached(partition, position)
        for partition in ended:
            self._backlog.ended(partition)
        self._thread.stopping.wait(min(monotonic() - began, 0.05))

    def _note(self, message: Message) -> HistoryEntry | None:
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

    def _chores(self, store: HistoryStore, rows: RocksMap) -> None:
        now = monotonic()
        if now - self._flushed >= FLUSH_S:
            self._flushed = now
            rows.flush()
        if now - self._swept >= SWEEP_S:
            self._swept = now
            self.sweep(store)

    def sweep(self, store: HistoryStore) -> None:
        """Drop records that are older than their tenant wants, once a hundredth of them is.

        So a store is not asked for a deletion each minute by each of a hundred thousand tenants.
        """
        for tenant, first_ms in store.tenants():
            keep_ms = self._retention_ms(tenant)
            before_ms = int(self._now_ms()) - keep_ms
            if first_ms < before_ms - keep_ms // 100:
                store.forget(tenant, before_ms)


def _opened(path: Path) -> RocksMap:
    try:
        return RocksMap(path)
    except Damaged:
        wipe(path)
        return RocksMap(path)
