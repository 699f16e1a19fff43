"""Reads the partitions of the lifecycle topic that are assigned to it, and stores their records.

    assign {1, 5}   1 from offset 90, 5 from its begin (the store knows nothing of it)
    ask_ends        1 ends at 120, 5 at 3: until then they are backlog
    batch, keep     1: 90 to 119 ─► the store, and 120 as the offset behind them
    assign {5}      1 belongs to another worker now; its records stay until they are swept

Records and the offset behind them go into the store together, so each is kept once, whichever
worker reads and however often that changes.  A record that is not a lifecycle event is passed over:
its offset counts, and it is not kept.

`follower.py` decides which partitions are read, and when; all of this runs in its thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Final, NamedTuple

import structlog

from belfry.client.decoding import Decoder
from belfry.history.backlog import Backlog
from belfry.history.history_store import HistoryStore
from belfry.kafka.followed_topic import FollowedTopic, portions
from belfry.wire.lifecycle import encode_record
from belfry.wire.lifecycle_heads import Headline, kept_head
from belfry.wire.record import SourceRecord

# Records of a batch, and seconds for the first of them.
BATCH: Final = 1_000
WAIT_S: Final = 0.2
# Seconds between questions about ends, between counts of partitions, and for an answer.
AGAIN_S: Final = 2.0
COUNT_S: Final = 10.0
ASK_S: Final = 1.0

log = structlog.get_logger(__name__)


class LifecycleBatch(NamedTuple):
    """Records of one partition, from an offset on, and the offset behind them.

    A batch without records and with the same offset twice says that no record follows.
    """

    partition: int
    offset: int
    records: list[SourceRecord]
    behind: int


class LifecycleReader:
    """A reader of the lifecycle topic, from its begin to `close`.

    It tells `backlog` how far each partition has been read.  `head` stands before a body of this
    release: such a record is kept without being decoded.
    """

    def __init__(self, topic: FollowedTopic, backlog: Backlog, head: bytes) -> None:
        self.partitions = 0
        self._topic = topic
        self._backlog = backlog
        self._head = head
        self._decoder = Decoder("LifecycleEvent", only=True)
        self._positions: dict[int, int] = {}
        self._batches: Iterator[LifecycleBatch] = iter(())
        self._ask_at = 0.0
        self._counted = monotonic()

    def close(self) -> None:
        """Stop reading; no partition counts as followed from now on."""
        self._backlog.assign(frozenset())
        self._topic.close()

    def assign(self, wanted: frozenset[int], store: HistoryStore) -> None:
        """Read these partitions from now on, each from the position in the store.

        Partitions that are read already go on.
        """
        if wanted == self._positions.keys():
            return
        kept = {each: at for each, at in self._positions.items() if each in wanted}
        for partition in wanted - kept.keys():
            kept[partition] = store.position(partition) or 0
        # Records that were fetched and not kept are fetched again.
        self._batches = iter(())
        self._topic.follow(kept)
        self._positions = kept
        self._backlog.assign(wanted)
        self._ask_at = 0.0

    def ask_ends(self, store: HistoryStore) -> None:
        """Ask for the ends of newly assigned partitions; the reader may find them sooner."""
        wanted = self._backlog.unknown()
        if not wanted or monotonic() < self._ask_at:
            return
        try:
            found = self._topic.ends(wanted, ASK_S)
        except ConnectionError as error:
            log.info("the ends of the lifecycle topic could not be read", reason=str(error))
            found = {}
        for partition, end in found.items():
            self._backlog.ends_at(partition, end, store.position(partition) or 0)
        self._ask_at = monotonic() + AGAIN_S

    def count(self) -> None:
        """Ask now and then how many partitions the topic has: some may be added, none goes away."""
        if monotonic() - self._counted < COUNT_S:
            return
        self._counted = monotonic()
        try:
            found = self._topic.partitions(ASK_S)
        except ConnectionError as error:
            log.info("the partitions of the lifecycle topic could not be read", reason=str(error))
            return
        self.partitions = max(self.partitions, len(found))

    def batch(self) -> LifecycleBatch | None:
        """The next batch of some partition; None where no record comes in `WAIT_S`.

        Raises ConnectionError where a partition may not be read.
        """
        found = next(self._batches, None)
        if found is None:
            self._batches = self._fetched()
            found = next(self._batches, None)
        return found

    def _fetched(self) -> Iterator[LifecycleBatch]:
        """The next fetch, in batches of `BATCH` records at most."""
        answer = self._topic.take(WAIT_S)
        if answer is None:
            return
        partition, offset = answer.where[1], answer.offset
        if not answer.data:
            yield LifecycleBatch(partition, offset, [], offset)
        for records, behind in portions(answer, BATCH):
            # Records of a large batch before the offset are passed over in parts: no part is an
            # end.
            if behind > offset:
                yield LifecycleBatch(partition, offset, records, behind)
                offset = behind

    def keep(self, batch: LifecycleBatch, store: HistoryStore) -> None:
        """Put a batch into the store, with the offset behind it."""
        partition, offset, records, behind = batch
        if behind == offset:
            self._backlog.ended(partition)
            return
        found = self._entries(records)
        store.add(partition, found, behind)
        self._positions[partition] = behind
        self._backlog.reached(partition, behind)

    def _entries(self, records: list[SourceRecord]) -> list[tuple[int, Headline, bytes]]:
        """The entries of records, without records that are not lifecycle events."""
        head, size = self._head, len(self._head)
        found: list[tuple[int, Headline, bytes]] = []
        for offset, _, _, value, _ in records:
            if value is None:
                continue
            try:
                body = value[size:] if value.startswith(head) else self._decoded(value)
                if body is not None:
                    found.append((offset, kept_head(body), body))
            except (IndexError, ValueError):
                pass  # It is not a lifecycle event.
        return found

    def _decoded(self, value: bytes) -> bytes | None:
        """The body of an event that another release wrote, in the schema of this one."""
        record = self._decoder.record(value)
        return None if record is None else encode_record(record)
